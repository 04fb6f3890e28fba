/* sweep: rows of a table by transaction id: new ones in the writer, old ones in
 * the observer's frozen snapshot, each side checked against the other */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/sweep.h"

static sweep_answer ready, checked, closed;

/* --- small parts --- */

const struct count_row *
sweep_row(const struct sweep *s)
{
	return &s->run->change->counts.v[s->leaves[s->at]];
}

/* A statement that failed leaves counts of a table that the change is without:
 * what it rolled back stays counted. */
static struct change_table *
find_table(const struct sweep *s)
{
	return change_find_table(s->run->change, counts_shown_as(sweep_row(s)));
}

struct change_table *
sweep_table(const struct sweep *s)
{
	struct change_table *t = find_table(s);

	assert(t != NULL); /* wants_sweep has looked */
	return t;
}

void
sweep_leaf_done(struct sweep *s)
{
	struct agent_logins *l = s->run->agent->links;
	struct side *const sides[] = { &s->after, &s->before };

	for (size_t i = 0; i < 2; i++) {
		spool_close(sides[i]->spool);
		piece_release(&sides[i]->piece);
		memset(sides[i], 0, sizeof(*sides[i]));
	}
	sweep_narrow_free(s);
	free(s->seen.v);
	free(s->followed.v);
	memset(&s->seen, 0, sizeof(s->seen));
	memset(&s->followed, 0, sizeof(s->followed));
	piece_release(&s->coming);
	free(s->cells);
	s->cells = NULL;
	met_release(&s->heirs);
	met_release(&s->gone);
	s->heirs_met = 0;
	s->lazy = s->mapped = false;
	s->doubt = NULL;
	s->given_up = NULL;
	free(s->names);
	free(s->key);
	s->names = NULL;
	s->key = NULL;
	catalog_release(l->writer->catalog, s->leaf);
	s->leaf = NULL;
}

static void
sweep_free(struct sweep *s)
{
	struct agent_logins *l = s->run->agent->links;

	catalog_forget(l->writer->catalog, s);
	sweep_leaf_done(s);
	pool_cancel(s->ticket);
	if (s->observer != NULL)
		pool_drop(s->run->gate->observer->pool, s->observer);
	s->run->sweep = NULL;
	free(s->failed_text);
	free(s->leaves);
	free(s);
}

void
run_sweep_cancel(struct run *r)
{
	if (r->sweep != NULL)
		sweep_free(r->sweep);
}

/* This leaf cannot be had; the table stays incomplete, with its counts. */
void
sweep_give_up(struct sweep *s, const char *why)
{
	struct err e = ERR_INIT;

	if (s->asked[false] != NULL) { /* its rows are let go */
		s->given_up = why;
		link_go_on(s->observer);
		return;
	}
	log_info("%s: %s is shown by its counts: %s", s->run->change->id,
	    sweep_row(s)->name, why);
	/* Rows of other leaves may stand already; a part is worse than counts.
	 */
	if (store_forget(s->run->change->store, sweep_table(s)->name, &e) ==
	    -1) {
		(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
		return;
	}
	sweep_table(s)->why = why;
	sweep_table(s)->exact = sweep_table(s)->complete = false;
	sweep_table(s)->opaque = true;
	sweep_leaf_done(s);
	s->at++;
	sweep_next_leaf(s);
}

/* The change's link cannot be used for anything before it has answered. */
static enum run_next
end_run(struct sweep *s, bool too_large, enum reason reason, const char *text)
{
	struct run *r = s->run;

	if (s->failed)
		return RUN_WAIT;
	if (s->asked[true] != NULL) {
		s->failed = true;
		s->too_large = too_large;
		s->failed_reason = reason;
		s->failed_text = mem_strdup(text);
		return RUN_WAIT;
	}
	/* text may be of what run_refuse frees; it is copied there first */
	r->in_batch = false;
	return too_large ? run_too_large(r, text)
	                 : run_refuse(r, reason, "%s", text);
}

enum run_next
sweep_fail(struct sweep *s, enum reason reason, const char *text)
{
	return end_run(s, false, reason, text);
}

void
sweep_too_large(struct sweep *s, const char *text)
{
	(void)end_run(s, true, REASON_DIFF_TOO_LARGE, text);
}

/* --- questions --- */

static void
answered(struct sweep *s, bool writer, struct link *l, struct batch *b)
{
	sweep_answer *then = s->asked[writer];
	struct run *r = s->run;

	s->asked[writer] = NULL;
	r->in_batch = s->asked[!writer] != NULL;
	if (batch_is_lost(b) && writer) {
		(void)run_link_failed(r, batch_err(b), true);
	} else if (batch_is_lost(b)) {
		s->observer = NULL;
		pool_drop(r->gate->observer->pool, l);
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the observer's link was lost while the diff was made");
	} else if (r->cancelled) {
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the call was cancelled");
	} else if (!s->failed) {
		then(s, b);
	}
}

static void
observer_answered(void *arg, struct link *l, struct batch *b)
{
	answered(arg, false, l, b);
}

static void
writer_answered(void *arg, struct link *l, struct batch *b)
{
	struct sweep *s = arg;

	if (s->failed && !batch_is_lost(b)) {
		s->asked[true] = NULL;
		s->failed = false;
		(void)end_run(s, s->too_large, s->failed_reason,
		    s->failed_text);
		return;
	}
	answered(s, true, l, b);
}

void
sweep_ask(struct sweep *s, bool writer, struct batch *b, sweep_answer *then)
{
	s->asked[writer] = then;
	s->run->in_batch = true;
	link_run(writer ? s->run->change->link : s->observer, b,
	    writer ? writer_answered : observer_answered, s);
}

/* The writer's transaction must survive a question that fails. */
struct batch *
sweep_guarded_batch(void)
{
	struct batch *b = batch_new();

	batch_add(b, "SAVEPOINT airlock_w", 0, NULL);
	return b;
}

void
sweep_add_back(struct batch *b)
{
	batch_sync(b);
	batch_add(b, "ROLLBACK TO SAVEPOINT airlock_w", 0, NULL);
	batch_add(b, "RELEASE SAVEPOINT airlock_w", 0, NULL);
}

static void
add_begin(struct sweep *s, struct batch *b)
{
	char *snapshot = mem_printf("SET TRANSACTION SNAPSHOT '%s'",
	    s->run->change->snapshot);
	/* Its reading takes as long as the writer is asked about the rows. */
	char *timeout = mem_printf("SET LOCAL statement_timeout = '%llds'",
	    s->run->gate->o->limits.write_timeout_ms / 1000 * 10LL + 1);

	batch_add(b, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", 0,
	    NULL);
	batch_add(b, snapshot, 0, NULL);
	change_add_path(s->run->change, b);
	batch_add(b, timeout, 0, NULL);
	free(snapshot);
	free(timeout);
}

/* --- looking up --- */

static void
found(void *arg, struct relation *rel, const struct err *e)
{
	struct sweep *s = arg;
	struct batch *b;
	char oid[16];
	const char *values[] = { oid, s->run->change->multixact };

	s->leaf = rel;
	if (rel == NULL) {
		log_warnx("%s", e->text);
		sweep_give_up(s,
		    e->code == ERR_DENIED
			? "the writer's login may not look into its schema"
			: "it could not be looked up");
		return;
	}
	if (!rel->heap || rel->persistence == 't') {
		sweep_give_up(s, "its storage cannot be searched");
		return;
	}
	if (!rel->readable) {
		sweep_give_up(s, "the writer's login may not read it");
		return;
	}
	snprintf(oid, sizeof(oid), "%u", rel->oid);
	b = batch_new();
	batch_add(b,
	    "SELECT pg_catalog.has_table_privilege($1::pg_catalog.oid, "
	    "'SELECT'), pg_catalog.row_security_active($1::pg_catalog.oid), "
	    "pg_catalog.pg_relation_size($1::pg_catalog.oid), " SWEEP_SPAN(
		"$2"),
	    2, values);
	sweep_ask(s, false, b, checked);
}

void
sweep_next_leaf(struct sweep *s)
{
	struct agent_logins *l = s->run->agent->links;
	struct batch *b;

	/* One leaf that cannot be had makes its whole table so. */
	while (s->at < s->n && sweep_table(s)->opaque)
		s->at++;
	if (s->at < s->n) {
		catalog_named(l->writer->catalog, sweep_row(s)->name, found, s);
		return;
	}
	b = batch_new();
	batch_add(b, "ROLLBACK", 0, NULL);
	sweep_ask(s, false, b, closed);
}

void
sweep_add_columns(const struct relation *rel, struct text *t)
{
	text_add(t, "airlock_s.ctid");
	for (size_t i = 0; i < rel->ncolumns; i++)
		text_addf(t, ", airlock_s.%s", rel->columns[i].quoted);
}

void
sweep_add_scan(const struct sweep *s, const char *where, struct text *t)
{
	text_add(t, "SELECT ");
	sweep_add_columns(s->leaf, t);
	text_addf(t, " FROM ONLY %s AS airlock_s WHERE %s", s->leaf->name,
	    where);
}

static void
prepare_leaf(struct sweep *s)
{
	const struct relation *rel = s->leaf;

	s->names = mem_array(rel->ncolumns, sizeof(*s->names));
	s->key = mem_array(rel->ncolumns, sizeof(*s->key));
	s->shape = image_shape();
	for (size_t i = 0; i < rel->ncolumns; i++) {
		s->names[i] = rel->columns[i].name;
		s->key[i] = rel->columns[i].key;
	}
	s->cells = mem_array(rel->ncolumns, sizeof(*s->cells));
	piece_begin(&s->after.piece, rel->ncolumns);
	piece_begin(&s->before.piece, rel->ncolumns);
	piece_begin(&s->coming, rel->ncolumns);
}

/* --- how it is read --- */

/* The other leaves first, once: their rows may lead to its own. */
static bool
put_off(struct sweep *s)
{
	size_t leaf = s->leaves[s->at], left = s->n - s->at - 1;

	if (left == 0 || s->again > s->n)
		return false;
	s->again++;
	memmove(&s->leaves[s->at], &s->leaves[s->at + 1],
	    left * sizeof(*s->leaves));
	s->leaves[s->n - 1] = leaf;
	return true;
}

void
sweep_leaf_whole(struct sweep *s)
{
	if (put_off(s)) {
		sweep_leaf_done(s);
		sweep_next_leaf(s);
	} else if (sweep_visible(s)) {
		return;
	} else if (s->size > s->run->gate->o->limits.sweep_limit) {
		sweep_give_up(s, "it is larger than sweep_limit");
	} else if (sweep_open_spools(s)) {
		s->lazy = sweep_row(s)->n[IMAGE_INSERT] == 0;
		if (s->lazy)
			sweep_read_before(s);
		else
			sweep_read_after(s);
	}
}

/* Another table's rows than those of the leaf in hand have moved. */
static bool
wrote_others(const struct sweep *s)
{
	const struct counts *c = &s->run->change->counts;

	for (size_t i = 0; i < c->n; i++) {
		const struct count_row *row = &c->v[i];

		if (row != sweep_row(s) && !row->catalog &&
		    (row->exclusive || row->n[IMAGE_INSERT] +
					       row->n[IMAGE_UPDATE] +
					       row->n[IMAGE_DELETE] >
					   0))
			return true;
	}
	return false;
}

/*
 * One login's two sessions see the same rows of a table with row security where
 * its policies go by the row alone, or read what the change has not written.
 * Else a row that we only locked can be seen by the observer and not by the
 * writer, and looks deleted, while one that was deleted is seen by neither.
 */
static bool
sees_alike(const struct sweep *s)
{
	return !s->leaf->row_security || s->leaf->policies == 'f' ||
	       (s->leaf->policies == 'r' && !wrote_others(s));
}

static void
checked(struct sweep *s, struct batch *b)
{
	const char *may = batch_cell(b, 0, 0, 0), *rls = batch_cell(b, 0, 0, 1);
	const char *size = batch_cell(b, 0, 0, 2), *span;
	bool apart; /* the observer sees rows that are hidden from the writer */

	if (!batch_is_ok(b) || may == NULL || rls == NULL || size == NULL) {
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the observer could not be asked about a table");
		return;
	}
	if (may[0] != 't') {
		sweep_give_up(s, "the observer's login may not read it");
		return;
	}
	apart = s->leaf->row_security &&
	        s->run->gate->observer != s->run->change->login;
	if (apart && rls[0] == 't') {
		sweep_give_up(s, "row security hides rows of it");
		return;
	}
	if (!apart && !sees_alike(s)) {
		sweep_give_up(s, "what row security hides of it may depend "
				 "on more than its rows");
		return;
	}
	s->moves = s->moves || apart;
	s->size = strtoull(size, NULL, 10);
	span = batch_cell(b, 0, 0, 3);
	sweep_set_span(s,
	    span != NULL ? strtoull(span, NULL, 10) + SPAN_ROOM : SPAN_ANY);
	s->doubt = rls[0] == 't' || s->leaf->row_security
	               ? "row security hides rows of it"
	               : NULL;
	prepare_leaf(s);
	if (sweep_open_spools(s) && (apart || !sweep_narrow(s)))
		sweep_leaf_whole(s);
}

/* --- from beginning to end --- */

/* A policy's function wrote as we read.  All of that is taken back, and stays
 * counted: it is the new base. */
static void
counted_anew(struct sweep *s, struct batch *b)
{
	struct run *r = s->run;
	struct counts now = { 0 };
	struct err e = ERR_INIT;

	if (counts_read(b, 0, &now, &e) == -1) {
		(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
		return;
	}
	counts_put_back(r->change, &now);
	sweep_free(s);
	run_go(r);
}

static void
closed(struct sweep *s, struct batch *b)
{
	struct run *r = s->run;
	struct link *l = s->observer;

	s->observer = NULL;
	pool_put(r->gate->observer->pool, l);
	for (size_t i = 0; i < s->n; i++) {
		struct change_table *t;

		s->at = i;
		t = sweep_table(s);
		t->complete = t->exact = !t->opaque;
	}
	if (s->moves) {
		b = batch_new();
		(void)counts_ask(b, r->change);
		sweep_ask(s, true, b, counted_anew);
		return;
	}
	sweep_free(s);
	run_go(r);
}

static void
ready(struct sweep *s, struct batch *b)
{
	if (!batch_is_ok(b))
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the observer could not enter the change's snapshot");
	else
		sweep_next_leaf(s);
}

static void
lost(void *arg, const struct err *e UNUSED)
{
	struct sweep *s = arg;

	s->observer = NULL;
	(void)sweep_fail(s, REASON_UNAVAILABLE, "the observer's link was lost");
}

static void
got(void *arg, struct link *l, const struct err *e)
{
	struct sweep *s = arg;
	struct batch *b;

	s->ticket = NULL;
	if (l == NULL) {
		/* Held all the same, by its counts. */
		struct run *r = s->run;

		log_warnx("%s: no link to observe with: %s", r->change->id,
		    e->text);
		r->change->why_incomplete = "there was no link to observe with";
		sweep_free(s);
		run_go(r);
		return;
	}
	s->observer = l;
	b = batch_new();
	add_begin(s, b);
	sweep_ask(s, false, b, ready);
}

static bool
wants_sweep(const struct sweep *s)
{
	const struct count_row *row = sweep_row(s);
	const struct change_table *t;

	if (row->catalog || (row->kind != 'r' && row->kind != 'm') ||
	    row->n[IMAGE_INSERT] + row->n[IMAGE_UPDATE] +
		    row->n[IMAGE_DELETE] ==
		0)
		return false;
	t = find_table(s);
	return t != NULL && !t->exact && !t->opaque;
}

enum run_next
run_sweep(struct run *r)
{
	struct change *c = r->change;
	struct sweep *s = mem_new(sizeof(*s));
	size_t n = 0;

	s->run = r;
	r->sweep = s;
	s->leaves = mem_array(c->counts.n, sizeof(*s->leaves));
	for (size_t i = 0; i < c->counts.n; i++) {
		s->leaves[n] = i;
		s->at = n;
		n += wants_sweep(s);
	}
	s->n = n;
	s->at = 0;
	if (n == 0) {
		sweep_free(s);
		return RUN_GO;
	}
	s->ticket = pool_get(r->gate->observer->pool, got, lost, s);
	return RUN_WAIT;
}
