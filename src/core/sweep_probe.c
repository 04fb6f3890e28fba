/* sweep_probe: rows of a leaf that foreign keys lead to from other rows of the
 * change */
#include "core/sweep_probe.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define TUPLES_MAX 10000

/* A column of a key: of the other table, and of the leaf. */
struct lead {
	char *field;
	char *column, *type; /* quoted */
	struct text values;  /* an array literal */
};

struct probe {
	char *table; /* the other */
	struct lead *v;
	size_t n, ntuples;
};

struct probes {
	struct probe *v;
	size_t n, ntuples;
	bool failed;
};

/* A row for each column of each key, in the key's order.  A partition may have
 * a key of its topmost table and a copy of that, which are one. */
const char probes_sql[] =
    "WITH me AS (SELECT $1::pg_catalog.oid AS oid, COALESCE("
    "  pg_catalog.pg_partition_root($1::pg_catalog.oid)::pg_catalog.oid,"
    "  $1::pg_catalog.oid) AS root), "
    "o AS (SELECT n.name, pg_catalog.to_regclass(n.name)::pg_catalog.oid AS oid"
    "  FROM pg_catalog.unnest($2::pg_catalog.text[]) AS n(name)), "
    "x AS (SELECT o.name, k.oid AS id, true AS refers, k.confrelid AS other,"
    "  k.confkey AS fields, k.conrelid AS mine, k.conkey AS nums FROM me"
    "  JOIN pg_catalog.pg_constraint k ON k.contype = 'f'"
    "   AND k.conrelid IN (me.oid, me.root) JOIN o ON o.oid = k.confrelid"
    " UNION ALL SELECT o.name, k.oid, false, k.conrelid, k.conkey, k.confrelid,"
    "  k.confkey FROM me JOIN pg_catalog.pg_constraint k ON k.contype = 'f'"
    "   AND k.confrelid IN (me.oid, me.root) JOIN o ON o.oid = k.conrelid), "
    "g AS (SELECT x.name,"
    "  pg_catalog.array_agg(f.attname::pg_catalog.text ORDER BY c.at) AS fs,"
    "  pg_catalog.array_agg(pg_catalog.quote_ident(a.attname) ORDER BY c.at)"
    "   AS cs,"
    "  pg_catalog.array_agg(pg_catalog.format_type(a.atttypid, NULL)"
    "   ORDER BY c.at) AS ts"
    " FROM me CROSS JOIN x CROSS JOIN LATERAL ROWS FROM ("
    "  pg_catalog.unnest(x.fields), pg_catalog.unnest(x.nums))"
    "  WITH ORDINALITY AS c(field, num, at)"
    " JOIN pg_catalog.pg_attribute f ON f.attrelid = x.other"
    "  AND f.attnum = c.field"
    " JOIN pg_catalog.pg_attribute m ON m.attrelid = x.mine"
    "  AND m.attnum = c.num"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = me.oid"
    "  AND a.attname = m.attname AND a.attnum > 0"
    " JOIN pg_catalog.pg_type t ON t.oid = a.atttypid AND t.typelem = '0'"
    " WHERE EXISTS (SELECT FROM pg_catalog.pg_index i"
    "   JOIN pg_catalog.pg_attribute l ON l.attrelid = me.oid"
    "    AND l.attnum = i.indkey[0]"
    "   JOIN pg_catalog.pg_attribute n ON n.attrelid = x.mine"
    "    AND n.attname = l.attname AND n.attnum = ANY (x.nums)"
    "   WHERE i.indrelid = me.oid AND i.indisvalid AND i.indpred IS NULL)"
    " GROUP BY x.name, x.id, x.refers, x.nums"
    " HAVING pg_catalog.count(*) = pg_catalog.cardinality(x.nums)) "
    "SELECT d.name, c.f, c.c, c.t, c.at"
    " FROM (SELECT DISTINCT g.name, g.fs, g.cs, g.ts FROM g) AS d"
    " CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(d.fs),"
    "  pg_catalog.unnest(d.cs), pg_catalog.unnest(d.ts))"
    "  WITH ORDINALITY AS c(f, c, t, at)"
    " ORDER BY d.name, d.fs, d.cs, c.at";

/* --- keys ---------------------------------------------------------------- */

static void
probe_free(struct probe *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i].field);
		free(p->v[i].column);
		free(p->v[i].type);
		text_release(&p->v[i].values);
	}
	free(p->v);
	free(p->table);
}

void
probes_free(struct probes *p)
{
	if (p == NULL)
		return;
	for (size_t i = 0; i < p->n; i++)
		probe_free(&p->v[i]);
	free(p->v);
	free(p);
}

static char *
dup(const struct batch *b, size_t step, int row, int col)
{
	const char *cell = batch_cell(b, step, row, col);

	return mem_strdup(cell != NULL ? cell : "");
}

static void
read_keys(struct probes *p, const struct batch *b, size_t step)
{
	int n = batch_ntuples(b, step);

	for (int i = 0; i < n; i++) {
		const char *at = batch_cell(b, step, i, 4);
		struct probe *k;

		if (p->n == 0 || (at != NULL && strcmp(at, "1") == 0)) {
			p->v = mem_grow(p->v, p->n + 1, sizeof(*p->v));
			p->v[p->n++] =
			    (struct probe){ .table = dup(b, step, i, 0) };
		}
		k = &p->v[p->n - 1];
		k->v = mem_grow(k->v, k->n + 1, sizeof(*k->v));
		k->v[k->n++] = (struct lead){ .field = dup(b, step, i, 1),
			.column = dup(b, step, i, 2),
			.type = dup(b, step, i, 3) };
	}
}

/* --- values -------------------------------------------------------------- */

static bool
same_key(const struct probe *k, const json_t *a, const json_t *b)
{
	for (size_t i = 0; i < k->n; i++)
		if (!json_equal(json_object_get(a, k->v[i].field),
			json_object_get(b, k->v[i].field)))
			return false;
	return true;
}

/* Where a column is NULL the key leads nowhere. */
static void
add_tuple(struct probes *p, struct probe *k, const json_t *image)
{
	for (size_t i = 0; i < k->n; i++)
		if (!json_is_string(json_object_get(image, k->v[i].field)))
			return;
	for (size_t i = 0; i < k->n; i++) {
		const json_t *j = json_object_get(image, k->v[i].field);

		text_add_item(&k->v[i].values, json_string_value(j),
		    json_string_length(j));
	}
	k->ntuples++;
	p->failed = p->failed || ++p->ntuples > TUPLES_MAX;
}

static bool
take_row(void *arg, const char *line, size_t len)
{
	struct probes *p = arg;
	json_t *row = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
	const char *table = json_string_value(json_object_get(row, "table"));
	const json_t *before = json_object_get(row, "before");
	const json_t *after = json_object_get(row, "after");

	p->failed = p->failed || table == NULL;
	for (size_t i = 0; !p->failed && i < p->n; i++) {
		struct probe *k = &p->v[i];

		if (strcmp(k->table, table) != 0)
			continue;
		add_tuple(p, k, before);
		if (!same_key(k, before, after))
			add_tuple(p, k, after);
	}
	json_decref(row);
	return !p->failed;
}

static void
drop_empty(struct probes *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct probe *k = &p->v[i];

		if (k->ntuples == 0) {
			probe_free(k);
			continue;
		}
		for (size_t c = 0; c < k->n; c++)
			text_end_items(&k->v[c].values);
		p->v[n++] = *k;
	}
	p->n = n;
}

struct probes *
probes_read(const struct batch *b, size_t step, struct store *rows)
{
	struct probes *p = mem_new(sizeof(*p));
	struct err e = ERR_INIT;
	uint64_t next;

	read_keys(p, b, step);
	if (p->n > 0 && (store_rows(rows) > PROBE_ROWS_MAX ||
			    store_read(rows, 0, take_row, p, &next, &e) == -1 ||
			    p->failed)) {
		probes_free(p);
		return NULL;
	}
	drop_empty(p);
	return p;
}

/* --- SQL ----------------------------------------------------------------- */

bool
probes_any(const struct probes *p)
{
	return p->n > 0;
}

size_t
probes_nvalues(const struct probes *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += p->v[i].n;
	return n;
}

/* Values of one column are looked up as a list, of several as rows. */
static void
add_one(const struct lead *l, const char *leaf, const char *where,
    struct text *sql, int n)
{
	text_addf(sql,
	    " UNION ALL SELECT airlock_s.ctid FROM ONLY %s AS airlock_s"
	    " WHERE airlock_s.%s = ANY ($%d::pg_catalog.text[]::%s[]) AND %s",
	    leaf, l->column, n, l->type, where);
}

static void
add_rows(const struct probe *k, const char *leaf, const char *where,
    struct text *sql, int n)
{
	text_add(sql, " UNION ALL SELECT airlock_s.ctid FROM ROWS FROM (");
	for (size_t i = 0; i < k->n; i++)
		text_addf(sql,
		    "%spg_catalog.unnest($%d::pg_catalog.text[]::%s[])",
		    i > 0 ? ", " : "", n + (int)i, k->v[i].type);
	text_add(sql, ") AS airlock_k(");
	for (size_t i = 0; i < k->n; i++)
		text_addf(sql, "%sk%zu", i > 0 ? ", " : "", i);
	text_addf(sql, ") JOIN ONLY %s AS airlock_s ON ", leaf);
	for (size_t i = 0; i < k->n; i++)
		text_addf(sql, "%sairlock_s.%s = airlock_k.k%zu",
		    i > 0 ? " AND " : "", k->v[i].column, i);
	text_addf(sql, " WHERE %s", where);
}

int
probes_add(const struct probes *p, const char *leaf, const char *where,
    struct text *sql, const char **values, int n)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct probe *k = &p->v[i];

		if (k->n == 1)
			add_one(&k->v[0], leaf, where, sql, n + 1);
		else
			add_rows(k, leaf, where, sql, n + 1);
		for (size_t c = 0; c < k->n; c++)
			values[n++] = text_str(&k->v[c].values);
	}
	return n;
}
