/* sweep_pair: old rows and new ones of a leaf, each checked against the other
 * side and put together */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/sweep.h"

static sweep_answer after_paired, before_paired;

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
 * writer sees; where that is no other, the row itself is looked for: one that
 * was only locked is still there, one that was deleted is not.  Each place has
 * one row in the answer.
 */
enum { HEIR_WAS, HEIR_IS, HEIR_SEEN, HEIR_COLUMNS };
#define ANSWERED 2 /* that step, behind a savepoint and settings */

static void
add_heirs(struct sweep *s, const char *list, struct batch *b)
{
	const char *values[] = { list, s->leaf->name };
	const char *name = s->leaf->name;
	struct text t = { 0 };

	text_addf(&t,
	    "SELECT airlock_k.was, airlock_s.ctid, CASE WHEN airlock_s.ctid IS "
	    "NULL THEN (SELECT true FROM ONLY %s AS airlock_o WHERE "
	    "airlock_o.ctid = airlock_k.was) END",
	    name);
	for (size_t i = 0; i < s->leaf->ncolumns; i++)
		text_addf(&t, ", airlock_s.%s", s->leaf->columns[i].quoted);
	text_addf(&t,
	    " FROM (SELECT airlock_u.was, pg_catalog.currtid2("
	    "$2::pg_catalog.text, airlock_u.was) AS is_now FROM "
	    "pg_catalog.unnest($1::pg_catalog.tid[]) AS airlock_u(was)) AS "
	    "airlock_k LEFT JOIN ONLY %s AS airlock_s ON airlock_s.ctid = "
	    "airlock_k.is_now AND airlock_k.is_now <> airlock_k.was",
	    name);
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

/* An old row that we replaced, with the one in its place. */
static int
take_pair(struct sweep *s, struct image *im, const struct batch *b, int row,
    struct err *e)
{
	const PGresult *res = batch_result(b, ANSWERED);

	for (size_t c = 0; c < s->leaf->ncolumns; c++)
		sweep_value(res, row, HEIR_COLUMNS + (int)c, &s->cells[c]);
	im->op = IMAGE_UPDATE;
	im->after = s->cells;
	met_add(&s->heirs, place_of(&im->is));
	return store(s, im, e);
}

static int
take_old(struct sweep *s, const struct piece *p, size_t i,
    const struct batch *b, struct err *e)
{
	struct image im = { .op = IMAGE_DELETE,
		.before = &p->values[i * s->leaf->ncolumns],
		.was = p->ids[i] };
	int row = find_place(&s->followed, &im.was);
	const char *is;

	if (row == -1)
		return err_set(e, ERR_BUG,
		    "a row was asked after and not answered");
	if (batch_cell(b, ANSWERED, row, HEIR_SEEN) != NULL)
		return 0; /* only locked, or others did it, or rolled back */
	is = batch_cell(b, ANSWERED, row, HEIR_IS);
	if (is == NULL && met_has(&s->gone, place_of(&im.was)))
		return 0; /* taken when it was read before */
	im.is.leaf = is != NULL ? s->leaf->oid : 0;
	if (is != NULL && rowid_parse_ctid(is, &im.is, e) == -1)
		return -1;
	if (is != NULL && met_has(&s->heirs, place_of(&im.is)))
		return 0;
	s->before.found++;
	if (is != NULL)
		return take_pair(s, &im, b, row, e);
	if (s->span != SPAN_ANY)
		met_add(&s->gone, place_of(&im.was));
	return store(s, &im, e);
}

static int
take_after(struct sweep *s, size_t i, struct err *e)
{
	const struct piece *p = &s->after.piece;
	struct image im = { .op = IMAGE_INSERT,
		.after = &p->values[i * s->leaf->ncolumns],
		.is = p->ids[i] };

	if (find_place(&s->seen, &im.is) != -1)
		return 0; /* an old row whose id has come round */
	s->after.found++;
	if (!met_has(&s->heirs, place_of(&im.is)))
		return store(s, &im, e);
	s->heirs_met++;
	return 0;
}

static void
stored(struct sweep *s, const struct err *e)
{
	if (e->code == ERR_LIMIT)
		sweep_too_large(s, e->text);
	else
		(void)sweep_fail(s, REASON_UNAVAILABLE, e->text);
}

/* --- old rows --- */

/* Whatever the planner thinks of a table of that size, each row is looked up
 * by its place. */
#define BY_PLACE                                                               \
	"SELECT pg_catalog.set_config(s, 'off', true) FROM pg_catalog.unnest(" \
	"'{enable_hashjoin,enable_mergejoin,enable_seqscan}'::pg_catalog.text" \
	"[]) AS airlock_u(s)"

void
sweep_ask_heirs(struct sweep *s, sweep_answer *then)
{
	struct batch *b = sweep_guarded_batch();
	char *list = piece_places(&s->before.piece);

	batch_add(b, BY_PLACE, 0, NULL);
	add_heirs(s, list, b);
	free(list);
	sweep_add_back(b);
	sweep_ask(s, true, b, then);
}

bool
sweep_heirs_told(struct sweep *s, const struct batch *b)
{
	size_t back = ANSWERED + 2; /* behind a sync */

	if (batch_state(b, back) != BATCH_OK ||
	    batch_state(b, back + 1) != BATCH_OK) {
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the transaction could not be put back after a search");
		return false;
	}
	if (batch_state(b, ANSWERED) == BATCH_OK)
		return true;
	sweep_give_up(s, "the writer could not follow its rows");
	return false;
}

bool
sweep_take_before(struct sweep *s, const struct piece *p, const struct batch *b)
{
	struct err e = ERR_INIT;

	read_answer(&s->followed, b, ANSWERED);
	for (size_t i = 0; i < p->n; i++)
		if (take_old(s, p, i, b, &e) == -1) {
			stored(s, &e);
			return false;
		}
	return true;
}

/* Nothing was inserted, and each row updated has been met by its old one: what
 * the writer holds of ours cannot be more. */
static bool
all_are_heirs(struct sweep *s)
{
	const uint64_t *n = sweep_row(s)->n;

	if (s->before.found != n[IMAGE_UPDATE] + n[IMAGE_DELETE] ||
	    s->heirs.n != n[IMAGE_UPDATE])
		return false;
	s->after.found = s->heirs_met = s->heirs.n;
	return true;
}

static void prove_leaf(struct sweep *s);

void
sweep_before_done(struct sweep *s)
{
	struct err e = ERR_INIT;

	if (s->lazy && all_are_heirs(s)) {
		prove_leaf(s);
		return;
	}
	met_sort(&s->heirs);
	if (s->lazy)
		sweep_read_after(s);
	else if (spool_rewind(s->after.spool, &e) == -1)
		(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
	else
		sweep_pair_after(s);
}

static void
pair_before(struct sweep *s)
{
	struct err e = ERR_INIT;

	if (piece_fill(&s->before.piece, s->before.spool, s->leaf->ncolumns,
		&e) == -1)
		(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
	else
		sweep_ask_heirs(s, before_paired);
}

static void
before_paired(struct sweep *s, struct batch *b)
{
	if (!sweep_heirs_told(s, b) ||
	    !sweep_take_before(s, &s->before.piece, b))
		return;
	if (s->before.piece.last)
		sweep_before_done(s);
	else
		pair_before(s);
}

/* Old rows first: each knows the new one that took its place.  New rows that
 * none has led to were inserted.  What was deleted and inserted again under
 * the same key is found when the change is settled (store_settle). */
void
sweep_pair(struct sweep *s)
{
	pair_before(s);
}

/* --- new rows --- */

void
sweep_pair_after(struct sweep *s)
{
	struct err e = ERR_INIT;
	struct batch *b;
	char *list;

	if (piece_fill(&s->after.piece, s->after.spool, s->leaf->ncolumns,
		&e) == -1) {
		(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
		return;
	}
	b = batch_new();
	list = piece_places(&s->after.piece);
	add_seen(s, list, b);
	free(list);
	sweep_ask(s, false, b, after_paired);
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

	if (s->heirs_met != s->heirs.n) {
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
	for (size_t i = 0; i < s->after.piece.n; i++)
		if (take_after(s, i, &e) == -1) {
			stored(s, &e);
			return;
		}
	if (!s->after.piece.last)
		sweep_pair_after(s);
	else
		prove_leaf(s);
}
