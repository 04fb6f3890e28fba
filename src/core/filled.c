/* filled: which columns of a change's tables the replay digest leaves out */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/run.h"
#include "pg/filled.h"

/* --- sets of columns --- */

static bool
has(const json_t *set, const json_t *name)
{
	json_t *one;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)set, i, one)
		if (json_equal(one, name))
			return true;
	return false;
}

static void
add(json_t **set, const char *column)
{
	json_t *name = shown_json(column);

	if (*set == NULL)
		*set = json_array();
	if (!has(*set, name))
		json_array_append(*set, name);
	json_decref(name);
}

json_t *
filled_json(const struct change_table *t)
{
	json_t *list = json_array(), *one;
	size_t i;

	json_array_foreach (t->filled, i, one)
		if (!t->all_given && !has(t->given, one))
			json_array_append(list, one);
	if (json_array_size(list) > 0)
		return list;
	json_decref(list);
	return NULL;
}

/* --- what the statement says --- */

/* The definition of the table, where it is the statement's own target. */
static const struct relation *
definition(const struct run *r, const struct change_table *t)
{
	const struct relation *rel = r->relation;

	return rel != NULL && (rel->kind == 'r' || rel->kind == 'p') &&
	               strcmp(rel->table, t->name) == 0
	           ? rel
	           : NULL;
}

/* As sql/given.h names it. */
static bool
is_meant(const struct relation *rel, size_t column, const char *name)
{
	return *name == '='
	           ? strcmp(rel->columns[column].name, name + 1) == 0
	           : *name == '#' && strtoul(name + 1, NULL, 10) == column + 1;
}

static void
add_meant(const struct relation *rel, const struct facts_texts *names,
    json_t **set)
{
	for (size_t i = 0; i < names->n; i++)
		for (size_t k = 0; k < rel->ncolumns; k++)
			if (is_meant(rel, k, names->v[i]))
				add(set, rel->columns[k].name);
}

/* Behind a view's columns stand those of its tables by other names. */
static void
take_given(const struct run *r, struct change_table *t)
{
	const struct relation *rel = definition(r, t);
	const struct facts *f = &r->facts;
	bool view =
	    t->viewed || (r->relation != NULL && r->relation->kind == 'v');

	t->all_given = t->all_given || (view && f->given.n + f->made.n > 0);
	for (size_t i = 0; i < f->given.n; i++) {
		if (*f->given.v[i] == '*')
			t->all_given = true;
		if (*f->given.v[i] == '=' && rel == NULL)
			add(&t->given, f->given.v[i] + 1);
	}
	if (rel != NULL)
		add_meant(rel, &f->given, &t->given);
}

/* --- what the catalog says --- */

static bool
is_of(const struct count_row *row, const struct change_table *t)
{
	return !row->catalog && strcmp(counts_shown_as(row), t->name) == 0;
}

/* By the definition that is known already, and was verified; a domain's default
 * is no part of it. */
static void
take_target(const struct run *r, struct change_table *t)
{
	const struct relation *rel = definition(r, t);

	t->filled_known = t->filled_known || (rel != NULL && !rel->domains);
	if (rel == NULL)
		return;
	for (size_t i = 0; i < rel->ncolumns; i++)
		if (rel->columns[i].filled && !rel->domains)
			add(&t->filled, rel->columns[i].name);
	add_meant(rel, &r->facts.made, &t->filled);
}

/* Its columns may be among those that the statement names. */
static bool
is_asked(const struct run *r, const struct change_table *t)
{
	return !t->filled_known ||
	       (t->named && r->facts.made.n > 0 && definition(r, t) == NULL);
}

static void
add_made(const struct facts *f, struct text *names)
{
	for (size_t i = 0; i < f->made.n; i++)
		if (*f->made.v[i] == '=')
			text_add_string(names, f->made.v[i] + 1);
	text_end_items(names);
}

size_t
filled_ask(struct run *r, struct batch *b)
{
	struct change *c = r->change;
	struct text oids = { 0 }, names = { 0 };
	const char *values[2];
	size_t step = (size_t)-1;

	for (size_t k = 0; k < c->ntables; k++) {
		take_target(r, &c->tables[k]);
		for (size_t i = 0; i < c->counts.n; i++)
			if (is_asked(r, &c->tables[k]) &&
			    is_of(&c->counts.v[i], &c->tables[k]))
				text_add_number(&oids, c->counts.v[i].oid);
	}
	if (oids.len > 0) {
		text_end_items(&oids);
		add_made(&r->facts, &names);
		values[0] = text_str(&oids);
		values[1] = text_str(&names);
		step = batch_add_kept(b, filled_sql, 2, values);
	}
	text_release(&oids);
	text_release(&names);
	return step;
}

static void
take(struct change *c, const struct batch *b, size_t step, int row)
{
	const char *oid = batch_cell(b, step, row, FILLED_TABLE);
	const char *column = batch_cell(b, step, row, FILLED_COLUMN);
	const char *asked = batch_cell(b, step, row, FILLED_ASKED);
	const struct count_row *of =
	    oid != NULL && column != NULL
		? counts_find(&c->counts, (uint32_t)strtoul(oid, NULL, 10))
		: NULL;

	for (size_t k = 0; of != NULL && k < c->ntables; k++) {
		struct change_table *t = &c->tables[k];

		if (is_of(of, t) &&
		    (t->named || (asked != NULL && *asked == 'f')))
			add(&t->filled, column);
	}
}

/* What could not be asked stays in: then two runs differ. */
void
filled_take(struct run *r, const struct batch *b, size_t step)
{
	struct change *c = r->change;

	for (int i = 0; step != (size_t)-1 && i < batch_ntuples(b, step); i++)
		take(c, b, step, i);
	for (size_t k = 0; k < c->ntables; k++)
		if (c->tables[k].named)
			take_given(r, &c->tables[k]);
}

/* Names that are not UTF-8 are listed mended, as the rows have them once they
 * are stored. */
static bool
is_shown_as_is(const struct relation *rel)
{
	for (size_t i = 0; i < rel->ncolumns; i++)
		if (!text_is_utf8(rel->columns[i].name,
			strlen(rel->columns[i].name)))
			return false;
	return true;
}

/* What is known of it before it runs; where it turns out otherwise, the rows
 * are read once more. */
const json_t *
filled_target(struct run *r)
{
	struct change_table t = { .collateral = false };

	if (r->filled_ready || r->relation == NULL || r->adding)
		return r->filled;
	t.name = r->relation->table;
	take_target(r, &t);
	take_given(r, &t);
	if (is_shown_as_is(r->relation))
		r->filled = filled_json(&t);
	r->filled_ready = true;
	json_decref(t.filled);
	json_decref(t.given);
	return r->filled;
}
