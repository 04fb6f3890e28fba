/* grid: rows of a result as an agent gets them, cut at stated sizes */
#include "core/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

void
grid_release(struct grid *g)
{
	json_decref(g->rows);
	json_decref(g->cut);
	for (int i = 0; i < g->ncols; i++)
		free(g->names[i]);
	free(g->names);
	free(g->types);
	memset(g, 0, sizeof(*g));
}

void
grid_columns(struct grid *g, const PGresult *res, const int *cols, int n)
{
	if (g->names != NULL)
		return;
	g->names = mem_array((size_t)n, sizeof(*g->names));
	g->types = mem_array((size_t)n, sizeof(*g->types));
	g->ncols = n;
	g->rows = json_array();
	g->cut = json_array();
	for (int i = 0; i < n; i++) {
		int col = cols != NULL ? cols[i] : i;

		g->names[i] = mem_strdup(PQfname(res, col));
		g->types[i] = PQftype(res, col);
	}
}

/* A server in SQL_ASCII may send anything; JSON takes UTF-8 alone. */
static json_t *
string(const char *p, size_t n)
{
	json_t *j = json_stringn(p, n);
	struct text t = { 0 };

	if (j != NULL)
		return j;
	text_quote(&t, p, n);
	j = json_string(text_str(&t));
	text_release(&t);
	return j;
}

static json_t *
cell(struct grid *g, const PGresult *res, int col, int shown)
{
	size_t len, keep;

	if (PQgetisnull(res, 0, col))
		return json_null();
	len = (size_t)PQgetlength(res, 0, col);
	keep = text_utf8_cut(PQgetvalue(res, 0, col), len, g->cell_max);
	if (keep < len)
		json_array_append_new(g->cut,
		    json_pack("{s:I, s:i, s:I}", "row",
			(json_int_t)json_array_size(g->rows), "column", shown,
			"bytes", (json_int_t)len));
	return string(PQgetvalue(res, 0, col), keep);
}

static size_t
row_bytes(const struct grid *g, const PGresult *res, const int *cols)
{
	size_t n = 3;

	for (int i = 0; i < g->ncols; i++) {
		int col = cols != NULL ? cols[i] : i;
		size_t len = (size_t)PQgetlength(res, 0, col);

		n += 3 + (len < g->cell_max ? len : g->cell_max);
	}
	return n;
}

bool
grid_row(struct grid *g, const PGresult *res, const int *cols)
{
	size_t size = row_bytes(g, res, cols);
	json_t *row;

	if (grid_count(g) >= g->rows_max ||
	    (grid_count(g) > 0 && g->bytes + size > g->bytes_max)) {
		g->truncated = true;
		return false;
	}
	row = json_array();
	for (int i = 0; i < g->ncols; i++)
		json_array_append_new(row,
		    cell(g, res, cols != NULL ? cols[i] : i, i));
	json_array_append_new(g->rows, row);
	g->bytes += size;
	return true;
}

long
grid_count(const struct grid *g)
{
	return (long)json_array_size(g->rows);
}

size_t
grid_unknown_types(const struct grid *g, struct catalog *c, uint32_t *oids,
    size_t n)
{
	size_t found = 0;

	for (int i = 0; i < g->ncols && found < n; i++)
		if (catalog_type(c, g->types[i]) == NULL)
			oids[found++] = g->types[i];
	return found;
}

json_t *
grid_json(const struct grid *g, struct catalog *c)
{
	json_t *columns = json_array(), *j;

	for (int i = 0; i < g->ncols; i++) {
		const char *type = catalog_type(c, g->types[i]);
		char oid[24];

		snprintf(oid, sizeof(oid), "oid %u", g->types[i]);
		json_array_append_new(columns,
		    json_pack("{s:o, s:s}", "name",
			string(g->names[i], strlen(g->names[i])), "type",
			type != NULL ? type : oid));
	}
	j = json_pack("{s:o, s:o, s:I, s:b}", "columns", columns, "rows",
	    g->rows != NULL ? json_incref(g->rows) : json_array(), "row_count",
	    (json_int_t)grid_count(g), "truncated", g->truncated);
	if (json_array_size(g->cut) > 0)
		json_object_set(j, "cut", g->cut);
	return j;
}
