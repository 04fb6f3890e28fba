/* sweep_pair: old rows and new ones of a leaf, each checked against the other
 * side and put together */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/sweep.h"

#define BYTES_KEPT ((size_t)1 << 20) /* more is given back */

static sweep_answer after_paired, before_paired;

/* --- pieces --- */

static int
fill(struct sweep *s, struct side *d, struct err *e)
{
	size_t n = s->leaf->ncolumns, at = 0;
	int rc = 1;

	if (d->bytes.size > BYTES_KEPT)
		text_release(&d->bytes);
	text_reset(&d->bytes);
	d->n = 0;
	while (d->n < PIECE) {
		struct value *v = &d->values[d->n * n];

		rc = spool_next(d->spool, &d->ids[d->n], v, n, e);
		if (rc != 1)
			break;
		for (size_t i = 0; i < n; i++)
			if (v[i].p != NULL)
				text_addn(&d->bytes, v[i].p, v[i].len);
		d->n++;
	}
	/* The memory has stopped moving. */
	for (size_t i = 0; i < d->n * n; i++)
		if (d->values[i].p != NULL) {
			d->values[i].p = text_str(&d->bytes) + at;
			at += d->values[i].len;
		}
	d->last = rc == 0;
	return rc == -1 ? -1 : 0;
}

/* The places of a piece, as an array of tid. */
static char *
places(const struct side *d)
{
	struct text t = { 0 };

	for (size_t i = 0; i < d->n; i++)
		rowid_add_ctid(&t, &d->ids[i]);
	text_end_items(&t);
	return text_take(&t);
}

/* Which of these places a side sees: what both see is not changed by us. */
static void
add_seen(struct sweep *s, const char *list, struct batch *b)
{
	const char *values[] = { list };
	char *sql =
	    mem_printf("SELECT airlock_s.ctid FROM ONLY %s AS airlock_s WHERE "
		       "airlock_s.ctid = ANY ($1::pg_catalog.tid[])",
		s->leaf->name);

	batch_add(b, sql, 1, values);
	free(sql);
}

/*
 * What became of old rows: currtid2 follows the chain of versions that an
 * UPDATE leaves, whatever of the row it changed, to the last one that the
 * writer sees; of a row that was deleted there is none.
 */
static void
add_heirs(struct sweep *s, const char *list, struct batch *b)
{
	const char *values[] = { list, s->leaf->name };
	struct text t = { 0 };

	text_add(&t, "SELECT airlock_k.was, airlock_s.ctid");
	for (size_t i = 0; i < s->leaf->ncolumns; i++)
		text_addf(&t, ", airlock_s.%s", s->leaf->columns[i].quoted);
	text_addf(&t,
	    " FROM (SELECT airlock_u.was, pg_catalog.currtid2("
	    "$2::pg_catalog.text, airlock_u.was) AS is_now FROM "
	    "pg_catalog.unnest($1::pg_catalog.tid[]) AS airlock_u(was)) AS "
	    "airlock_k JOIN ONLY %s AS airlock_s ON airlock_s.ctid = "
	    "airlock_k.is_now WHERE airlock_k.is_now <> airlock_k.was",
	    s->leaf->name);
	batch_add(b, text_str(&t), 2, values);
	text_release(&t);
}

/* --- places in answers --- */

static uint64_t
place_of(const struct rowid *id)
{
	return (uint64_t)id->block << 16 | id->item;
}

/* What is no place is none that anybody looks for. */
static void
read_answer(struct places *p, const struct batch *b, size_t step)
{
	struct err e = ERR_INIT;

	p->n = batch_ntuples(b, step);
	p->hint = 0;
	if (p->n > p->size) {
		p->v = mem_grow(p->v, (size_t)p->n, sizeof(*p->v));
		p->size = p->n;
	}
	for (int i = 0; i < p->n; i++) {
		const char *cell = batch_cell(b, step, i, 0);
		struct rowid id = { 0 };

		p->v[i] = cell != NULL && rowid_parse_ctid(cell, &id, &e) == 0
		              ? place_of(&id)
		              : UINT64_MAX;
	}
}

/* Its row in the answer, or -1. */
static int
find_place(struct places *p, const struct rowid *id)
{
	uint64_t place = place_of(id);

	for (int k = 0; k < p->n; k++) {
		int i = (p->hint + k) % p->n;

		if (p->v[i] == place) {
			p->hint = i + 1;
			return i;
		}
	}
	return -1;
}

/* --- new rows that have their old ones --- */

static int
by_place(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void
add_heir(struct sweep *s, const struct rowid *id)
{
	if (s->nheirs == s->heirs_size) {
		s->heirs_size += s->heirs_size / 4 + 1024;
		s->heirs = mem_grow(s->heirs, s->heirs_size, sizeof(*s->heirs));
	}
	s->heirs[s->nheirs++] = place_of(id);
}

static bool
is_heir(const struct sweep *s, const struct rowid *id)
{
	uint64_t place = place_of(id);

	return s->nheirs > 0 && bsearch(&place, s->heirs, s->nheirs,
				    sizeof(place), by_place) != NULL;
}

/* --- images --- */

static int
store(struct sweep *s, struct image *im, struct err *e)
{
	struct store *to = s->run->change->store;

	im->table = sweep_table(s)->name;
	im->collateral = sweep_table(s)->collateral;
	im->ncols = s->leaf->ncolumns;
	im->names = s->names;
	im->key = s->key;
	im->shape = s->shape;
	if (!image_is_unchanged(im))
		return store_add(to, im, e);
	store_note_unchanged(to, im);
	return 0;
}

/* An old row that we replaced, with the one in its place: row of step 2. */
static int
take_pair(struct sweep *s, struct image *im, const struct batch *b, int row,
    struct err *e)
{
	size_t n = s->leaf->ncolumns;
	struct value *after = mem_array(n, sizeof(*after));
	int rc = rowid_parse_ctid(batch_cell(b, 2, row, 1), &im->is, e);

	im->is.leaf = s->leaf->oid;
	for (size_t c = 0; c < n; c++) {
		after[c].p = batch_cell(b, 2, row, 2 + (int)c);
		after[c].len =
		    (size_t)PQgetlength(batch_result(b, 2), row, 2 + (int)c);
	}
	im->op = IMAGE_UPDATE;
	im->after = after;
	if (rc == 0) {
		add_heir(s, &im->is);
		rc = store(s, im, e);
	}
	free(after);
	return rc;
}

static int
take_before(struct sweep *s, size_t i, const struct batch *b, struct err *e)
{
	struct image im = { .op = IMAGE_DELETE,
		.before = &s->before.values[i * s->leaf->ncolumns],
		.was = s->before.ids[i] };
	int row;

	if (find_place(&s->seen, &im.was) != -1)
		return 0; /* only locked, or others did it, or rolled back */
	s->before.found++;
	row = find_place(&s->followed, &im.was);
	return row == -1 ? store(s, &im, e) : take_pair(s, &im, b, row, e);
}

static int
take_after(struct sweep *s, size_t i, struct err *e)
{
	struct image im = { .op = IMAGE_INSERT,
		.after = &s->after.values[i * s->leaf->ncolumns],
		.is = s->after.ids[i] };

	if (find_place(&s->seen, &im.is) != -1)
		return 0; /* an old row whose id has come round */
	s->after.found++;
	if (!is_heir(s, &im.is))
		return store(s, &im, e);
	s->heirs_met++;
	return 0;
}

/* --- one piece after the other --- */

void
sweep_pair_after(struct sweep *s)
{
	struct err e = ERR_INIT;
	struct batch *b = batch_new();
	char *list;

	if (fill(s, &s->after, &e) == -1) {
		batch_free(b);
		(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
		return;
	}
	list = places(&s->after);
	add_seen(s, list, b);
	free(list);
	sweep_ask(s, false, b, after_paired);
}

static void
pair_before(struct sweep *s)
{
	struct err e = ERR_INIT;
	struct batch *b = sweep_guarded_batch();
	char *list;

	if (fill(s, &s->before, &e) == -1) {
		batch_free(b);
		(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
		return;
	}
	list = places(&s->before);
	add_seen(s, list, b);
	add_heirs(s, list, b);
	free(list);
	sweep_add_back(b);
	sweep_ask(s, true, b, before_paired);
}

static void
stored(struct sweep *s, const struct err *e)
{
	if (e->code != ERR_LIMIT) {
		(void)sweep_fail(s, REASON_UNAVAILABLE, e->text);
		return;
	}
	s->run->in_batch = false;
	(void)run_too_large(s->run, e->text);
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

	if (s->heirs_met != s->nheirs) {
		sweep_give_up(s,
		    "its old rows and new ones do not fit together");
		return;
	}
	if (s->doubt != NULL ? !equal : !within) {
		sweep_give_up(s, s->doubt != NULL
				     ? s->doubt
				     : "more rows were found than counted");
		return;
	}
	sweep_leaf_done(s);
	s->at++;
	sweep_next_leaf(s);
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
	read_answer(&s->seen, b, 0);
	for (size_t i = 0; i < s->after.n; i++)
		if (take_after(s, i, &e) == -1) {
			stored(s, &e);
			return;
		}
	if (!s->after.last)
		sweep_pair_after(s);
	else
		prove_leaf(s);
}

/* Nothing was inserted, and each row updated has been met by its old one: what
 * the writer holds of ours cannot be more. */
static bool
all_are_heirs(struct sweep *s)
{
	const uint64_t *n = sweep_row(s)->n;

	if (s->before.found != n[IMAGE_UPDATE] + n[IMAGE_DELETE] ||
	    s->nheirs != n[IMAGE_UPDATE])
		return false;
	s->after.found = s->heirs_met = s->nheirs;
	return true;
}

static void
before_paired(struct sweep *s, struct batch *b)
{
	struct err e = ERR_INIT;
	size_t back = 4; /* savepoint, seen, heirs, sync */

	if (batch_state(b, back) != BATCH_OK ||
	    batch_state(b, back + 1) != BATCH_OK) {
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the transaction could not be put back after a search");
		return;
	}
	if (batch_state(b, 1) != BATCH_OK || batch_state(b, 2) != BATCH_OK) {
		sweep_give_up(s, "the writer could not follow its rows");
		return;
	}
	read_answer(&s->seen, b, 1);
	read_answer(&s->followed, b, 2);
	for (size_t i = 0; i < s->before.n; i++)
		if (take_before(s, i, b, &e) == -1) {
			stored(s, &e);
			return;
		}
	if (!s->before.last) {
		pair_before(s);
		return;
	}
	if (s->nheirs > 0)
		qsort(s->heirs, s->nheirs, sizeof(*s->heirs), by_place);
	if (!s->lazy)
		sweep_pair_after(s);
	else if (all_are_heirs(s))
		prove_leaf(s);
	else
		sweep_read_after(s);
}

/* Old rows first: each knows the new one that took its place.  New rows that
 * none has led to were inserted.  What was deleted and inserted again under
 * the same key is found when the change is settled (store_settle). */
void
sweep_pair(struct sweep *s)
{
	pair_before(s);
}
