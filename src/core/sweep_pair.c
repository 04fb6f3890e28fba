/* sweep_pair: old rows and new ones of a leaf, each checked against the other
 * side and put together */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/sweep.h"

static sweep_answer after_paired, before_paired;

static int
fill(struct sweep *s, struct side *d, struct err *e)
{
	size_t n = s->leaf->ncolumns;
	int rc = 1;

	sweep_side_clear(d, n);
	while (d->n < PIECE) {
		struct value *v = &d->values[d->n * n];

		rc = spool_next(d->spool, &d->ids[d->n], v, n, e);
		if (rc != 1)
			break;
		for (size_t i = 0; i < n; i++)
			if (v[i].p != NULL)
				v[i].p = mem_strndup(v[i].p, v[i].len);
		d->n++;
	}
	d->last = rc == 0;
	return rc == -1 ? -1 : 0;
}

/* Which of these places the other side sees, and its rows of these keys. */
static void
add_questions(struct sweep *s, const struct side *d, struct batch *b)
{
	const struct relation *rel = s->leaf;
	struct text *arrays = mem_array(rel->ncolumns + 1, sizeof(*arrays));
	const char **values = mem_array(rel->ncolumns + 1, sizeof(*values));
	char *sql;
	int n = 0;

	text_addc(&arrays[0], '{');
	for (size_t i = 0; i < d->n; i++)
		text_addf(&arrays[0], "%s\"(%u,%u)\"", i > 0 ? "," : "",
		    d->ids[i].block, d->ids[i].item);
	text_addc(&arrays[0], '}');
	values[0] = text_str(&arrays[0]);
	sql =
	    mem_printf("SELECT airlock_s.ctid FROM ONLY %s AS airlock_s WHERE "
		       "airlock_s.ctid = ANY ($1::pg_catalog.tid[])",
		rel->name);
	batch_add(b, sql, 1, values);
	free(sql);
	for (size_t c = 0; s->keyed && c < rel->ncolumns; c++) {
		struct text *t = &arrays[n + 1];

		if (!rel->columns[c].key)
			continue;
		for (size_t i = 0; i < d->n; i++)
			capture_add_item(t, &d->values[i * rel->ncolumns + c]);
		if (d->n == 0)
			text_addc(t, '{');
		text_addc(t, '}');
		values[n++] = text_str(t);
	}
	if (s->keyed) {
		sql = capture_lookup_sql(rel);
		batch_add(b, sql, n, values);
		free(sql);
	}
	for (size_t i = 0; i <= rel->ncolumns; i++)
		text_release(&arrays[i]);
	free(arrays);
	free(values);
}

static bool
sees_place(const struct batch *b, size_t step, const struct rowid *id)
{
	char place[32];

	snprintf(place, sizeof(place), "(%u,%u)", id->block, id->item);
	for (int i = 0; i < batch_ntuples(b, step); i++) {
		const char *cell = batch_cell(b, step, i, 0);

		if (cell != NULL && strcmp(cell, place) == 0)
			return true;
	}
	return false;
}

/* The row of the answer that has this key, or -1. */
static int
find_key(const struct sweep *s, const struct value *v, const struct batch *b,
    size_t step)
{
	for (int row = 0; s->keyed && row < batch_ntuples(b, step); row++) {
		size_t i = 0;

		for (; i < s->leaf->ncolumns; i++) {
			const char *cell = batch_cell(b, step, row, 2 + (int)i);

			if (s->key[i] && (cell == NULL || v[i].p == NULL ||
					     strcmp(cell, v[i].p) != 0))
				break;
		}
		if (i == s->leaf->ncolumns)
			return row;
	}
	return -1;
}

static int
store(struct sweep *s, struct image *im, struct err *e)
{
	struct change *c = s->run->change;

	im->table = sweep_table(s)->name;
	im->collateral = sweep_table(s)->collateral;
	im->ncols = s->leaf->ncolumns;
	im->names = s->names;
	im->key = s->key;
	if (image_is_unchanged(im)) {
		s->unchanged++;
		return 0;
	}
	return store_add(c->store, im, e);
}

static int
take_after(struct sweep *s, size_t i, const struct batch *b, struct err *e)
{
	size_t n = s->leaf->ncolumns;
	struct value *v = &s->after.values[i * n], *before;
	struct image im = { .op = IMAGE_INSERT,
		.after = v,
		.is = s->after.ids[i] };
	int row, rc;

	if (sees_place(b, 0, &s->after.ids[i]))
		return 0; /* an old row whose id has come round */
	s->after.found++;
	if (s->twins != NULL && twins_take(s->twins, v, n)) {
		s->unchanged++;
		return 0;
	}
	row = find_key(s, v, b, 1);
	if (row == -1)
		return store(s, &im, e);
	before = mem_array(n, sizeof(*before));
	for (size_t c = 0; c < n; c++) {
		before[c].p = batch_cell(b, 1, row, 2 + (int)c);
		before[c].len =
		    (size_t)PQgetlength(batch_result(b, 1), row, 2 + (int)c);
	}
	im.op = IMAGE_UPDATE;
	im.before = before;
	rc = rowid_parse(batch_cell(b, 1, row, 0), batch_cell(b, 1, row, 1),
	    &im.was, e);
	if (rc == 0)
		rc = store(s, &im, e);
	free(before);
	return rc;
}

static void
pair_after(struct sweep *s)
{
	struct err e = ERR_INIT;
	struct batch *b = batch_new();

	if (fill(s, &s->after, &e) == -1) {
		batch_free(b);
		(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
		return;
	}
	add_questions(s, &s->after, b);
	sweep_ask(s, false, b, after_paired);
}

static void
stored(struct sweep *s, const struct err *e)
{
	(void)sweep_fail(s,
	    e->code == ERR_LIMIT ? REASON_DIFF_TOO_LARGE : REASON_UNAVAILABLE,
	    e->text);
}

static void
pair_before(struct sweep *s)
{
	struct err e = ERR_INIT;
	struct batch *b = sweep_guarded_batch();

	if (fill(s, &s->before, &e) == -1) {
		batch_free(b);
		(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
		return;
	}
	add_questions(s, &s->before, b);
	sweep_add_back(b);
	sweep_ask(s, true, b, before_paired);
}

static void
after_paired(struct sweep *s, struct batch *b)
{
	struct err e = ERR_INIT;

	if (!batch_is_ok(b)) {
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the observer could not read rows as they were");
		return;
	}
	for (size_t i = 0; i < s->after.n; i++)
		if (take_after(s, i, b, &e) == -1) {
			stored(s, &e);
			return;
		}
	if (!s->after.last)
		pair_after(s);
	else
		pair_before(s);
}

static int
take_before(struct sweep *s, size_t i, const struct batch *b, struct err *e)
{
	struct value *v = &s->before.values[i * s->leaf->ncolumns];
	struct image im = { .op = IMAGE_DELETE,
		.before = v,
		.was = s->before.ids[i] };

	if (sees_place(b, 1, &s->before.ids[i]))
		return 0; /* only locked, or changed and rolled back */
	if (s->counting) {
		twins_add(s->twins, v, s->leaf->ncolumns);
		return 0;
	}
	s->before.found++;
	if (find_key(s, v, b, 2) != -1)
		return 0; /* paired with its new version */
	if (s->twins != NULL && twins_was_taken(s->twins, v, s->leaf->ncolumns))
		return 0;
	return store(s, &im, e);
}

/* What was found against what was counted; see struct sweep. */
static void
prove_leaf(struct sweep *s)
{
	const uint64_t *n = sweep_row(s)->n;
	uint64_t most_after = n[IMAGE_INSERT] + n[IMAGE_UPDATE];
	uint64_t most_before = n[IMAGE_UPDATE] + n[IMAGE_DELETE];
	bool equal =
	    s->after.found == most_after && s->before.found == most_before;
	bool within =
	    s->after.found <= most_after && s->before.found <= most_before;

	if (s->hidden ? !equal : !within) {
		struct err e = ERR_INIT;

		if (store_forget(s->run->change->store, sweep_table(s)->name,
			&e) == -1) {
			stored(s, &e);
			return;
		}
		sweep_give_up(s, s->hidden
				     ? "row security hides rows of it"
				     : "more rows were found than counted");
		return;
	}
	if (!sweep_table(s)->swept)
		sweep_table(s)->unchanged = 0;
	sweep_table(s)->swept = true;
	sweep_table(s)->unchanged += s->unchanged;
	s->unchanged = 0;
	sweep_leaf_done(s);
	s->at++;
	sweep_next_leaf(s);
}

static void
count_done(struct sweep *s)
{
	struct err e = ERR_INIT;

	s->counting = false;
	if (spool_rewind(s->before.spool, &e) == -1)
		(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
	else
		pair_after(s);
}

static void
before_paired(struct sweep *s, struct batch *b)
{
	size_t asked = s->keyed ? 3 : 2;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < asked; i++)
		if (batch_state(b, i) != BATCH_OK) {
			(void)sweep_fail(s, REASON_UNAVAILABLE,
			    "the writer could not read rows as they are");
			return;
		}
	if (!batch_is_ok(b)) {
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the transaction could not be put back after a search");
		return;
	}
	for (size_t i = 0; i < s->before.n; i++)
		if (take_before(s, i, b, &e) == -1) {
			stored(s, &e);
			return;
		}
	if (!s->before.last)
		pair_before(s);
	else if (s->counting)
		count_done(s);
	else
		prove_leaf(s);
}

/* Where no key tells which new row was which old one, the same content does:
 * the old rows are met twice, first to know what there is. */
void
sweep_pair(struct sweep *s)
{
	s->counting = !s->keyed;
	if (!s->keyed)
		s->twins = twins_new();
	if (s->counting)
		pair_before(s);
	else
		pair_after(s);
}
