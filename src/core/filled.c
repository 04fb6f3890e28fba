/* filled: which columns of a change's tables the replay digest leaves out */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/run.h"
#include "pg/filled.h"

static void
add(struct change_table *t, const char *column)
{
	json_t *name = shown_json(column), *one;
	size_t i;

	if (t->filled == NULL)
		t->filled = json_array();
	json_array_foreach (t->filled, i, one)
		if (json_equal(one, name)) {
			json_decref(name);
			return;
		}
	json_array_append_new(t->filled, name);
}

static bool
is_of(const struct count_row *row, const struct change_table *t)
{
	return !row->catalog &&
	       strcmp(row->root != NULL ? row->root : row->name, t->name) == 0;
}

/* By the definition that is known already, and was verified. */
static void
take_target(struct run *r)
{
	const struct relation *rel = r->relation;
	struct change_table *t;

	if (rel == NULL || rel->domains || strchr("rp", rel->kind) == NULL)
		return;
	t = change_find_table(r->change, rel->table);
	if (t == NULL)
		return;
	t->filled_known = true;
	for (size_t i = 0; i < rel->ncolumns; i++)
		if (rel->columns[i].filled)
			add(t, rel->columns[i].name);
}

size_t
filled_ask(struct run *r, struct batch *b)
{
	struct change *c = r->change;
	struct text oids = { 0 };
	const char *values[1];
	size_t i;

	take_target(r);
	for (i = 0; i < c->counts.n; i++)
		for (size_t k = 0; k < c->ntables; k++)
			if (!c->tables[k].filled_known &&
			    is_of(&c->counts.v[i], &c->tables[k]))
				text_addf(&oids, ",%u", c->counts.v[i].oid);
	if (oids.len == 0)
		return (size_t)-1;
	oids.s[0] = '{';
	text_addc(&oids, '}');
	values[0] = text_str(&oids);
	i = batch_add(b, filled_sql, 1, values);
	text_release(&oids);
	return i;
}

/* What could not be asked stays in: then two runs differ. */
void
filled_take(struct run *r, const struct batch *b, size_t step)
{
	struct change *c = r->change;

	for (int i = 0; i < batch_ntuples(b, step); i++) {
		const char *oid = batch_cell(b, step, i, FILLED_TABLE);
		const char *column = batch_cell(b, step, i, FILLED_COLUMN);
		const struct count_row *row =
		    oid != NULL && column != NULL
			? counts_find(&c->counts,
			      (uint32_t)strtoul(oid, NULL, 10))
			: NULL;

		for (size_t k = 0; row != NULL && k < c->ntables; k++)
			if (is_of(row, &c->tables[k]))
				add(&c->tables[k], column);
	}
}
