/* pair: before-images for ON CONFLICT, read by key from the frozen snapshot */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/run.h"

#define PAIR_ROWS 500

/*
 * The rows that RETURNING gave, in pieces.  Those whose key the observer finds
 * at the writer's snapshot, in a row that the writer sees no more, were
 * updated, the others inserted.  A row that the writer still sees at its old
 * place is not the one: another session deleted it or gave its key up
 * meanwhile.  Under REPEATABLE READ a row that is newer than the snapshot is an
 * error, not a conflict; so this is certain where capture_plan allows it, and
 * the counters are compared with it in the end.
 */
struct pair {
	struct run *run;
	size_t ncols, n;
	struct rowid ids[PAIR_ROWS];
	struct value *values;        /* PAIR_ROWS * ncols, owned bytes */
	struct rowid was[PAIR_ROWS]; /* leaf 0: there is no old row */
	struct value *before;        /* as values; NULL where there is none */
	bool last;
};

static void ask(struct pair *p);

static void
clear_values(struct value *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free((void *)(uintptr_t)v[i].p);
		v[i].p = NULL;
	}
}

static void
clear(struct pair *p)
{
	clear_values(p->values, p->n * p->ncols);
	clear_values(p->before, p->n * p->ncols);
	memset(p->was, 0, sizeof(p->was));
	p->n = 0;
}

static void
pair_free(struct pair *p)
{
	p->run->pair = NULL;
	clear(p);
	free(p->values);
	free(p->before);
	free(p);
}

static int
fill(struct pair *p, struct err *e)
{
	int rc = 1;

	while (p->n < PAIR_ROWS) {
		struct value *v = &p->values[p->n * p->ncols];

		rc = spool_next(p->run->spool, &p->ids[p->n], v, p->ncols, e);
		if (rc != 1)
			break;
		for (size_t i = 0; i < p->ncols; i++)
			if (v[i].p != NULL)
				v[i].p = mem_strndup(v[i].p, v[i].len);
		p->n++;
	}
	p->last = rc == 0;
	return rc == -1 ? -1 : 0;
}

static bool
same_key(const struct pair *p, const struct value *v, const struct batch *b,
    size_t step, int row)
{
	const struct relation *rel = p->run->relation;

	for (size_t i = 0; i < p->ncols; i++) {
		const char *cell = batch_cell(b, step, row, 2 + (int)i);

		if (rel->columns[i].key && (cell == NULL || v[i].p == NULL ||
					       strcmp(cell, v[i].p) != 0))
			return false;
	}
	return true;
}

/* The rows of the answer, each to the new row of its key. */
static int
take_old(struct pair *p, const struct batch *b, size_t step, struct err *e)
{
	for (size_t i = 0; i < p->n; i++) {
		struct value *v = &p->before[i * p->ncols];
		int row = 0, n = batch_ntuples(b, step);

		while (row < n &&
		       !same_key(p, &p->values[i * p->ncols], b, step, row))
			row++;
		if (row == n)
			continue;
		if (rowid_parse(batch_cell(b, step, row, 0),
			batch_cell(b, step, row, 1), &p->was[i], e) == -1)
			return -1;
		for (size_t c = 0; c < p->ncols; c++) {
			const char *cell = batch_cell(b, step, row, 2 + (int)c);

			v[c].len = (size_t)PQgetlength(batch_result(b, step),
			    row, 2 + (int)c);
			v[c].p =
			    cell != NULL ? mem_strndup(cell, v[c].len) : NULL;
		}
	}
	return 0;
}

static int
take_row(struct pair *p, size_t i, struct err *e)
{
	struct run *r = p->run;
	struct image im = { .table = r->relation->table,
		.op = IMAGE_INSERT,
		.ncols = p->ncols,
		.names = r->plan.names,
		.key = r->plan.key,
		.shape = r->plan.shape,
		.after = &p->values[i * p->ncols],
		.is = p->ids[i] };

	if (p->was[i].leaf != 0) {
		im.op = IMAGE_UPDATE;
		im.before = &p->before[i * p->ncols];
		im.was = p->was[i];
	}
	return run_take_image(r, &im, e);
}

/* What this piece says, and on to the next. */
static void
take_piece(struct pair *p)
{
	struct run *r = p->run;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < p->n; i++)
		if (take_row(p, i, &e) == -1)
			break;
	clear(p);
	if (e.code != ERR_NONE) {
		pair_free(p);
		if (e.code == ERR_LIMIT)
			(void)run_too_large(r, e.text);
		else
			(void)run_refuse(r, REASON_UNAVAILABLE, "%s", e.text);
		return;
	}
	if (p->last) {
		pair_free(p);
		run_go(r);
		return;
	}
	ask(p);
}

/* The rows are looked for by transaction id instead. */
static void
give_up(struct pair *p, const char *why, const char *text)
{
	struct run *r = p->run;

	log_warnx("%s: %s: %s", r->change->id, why, text);
	r->plan.path = CAPTURE_PLAIN;
	r->plan.why = why;
	pair_free(p);
	run_go(r);
}

/* --- which old rows are ours to replace --- */

static void
drop_seen(struct pair *p, const struct batch *b, size_t step)
{
	for (int row = 0; row < batch_ntuples(b, step); row++) {
		struct rowid seen;
		struct err e = ERR_INIT;

		if (rowid_parse(batch_cell(b, step, row, 0),
			batch_cell(b, step, row, 1), &seen, &e) == -1)
			continue;
		for (size_t i = 0; i < p->n; i++)
			if (p->was[i].leaf == seen.leaf &&
			    p->was[i].block == seen.block &&
			    p->was[i].item == seen.item)
				p->was[i].leaf = 0;
	}
}

static void
looked(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct pair *p = arg;
	struct run *r = p->run;
	size_t seen = 1, back = 3; /* savepoint, the question, sync */

	r->in_batch = false;
	if (batch_is_lost(b)) {
		pair_free(p);
		(void)run_link_failed(r, batch_err(b), true);
		return;
	}
	if (r->cancelled || batch_state(b, back) != BATCH_OK ||
	    batch_state(b, back + 1) != BATCH_OK) {
		pair_free(p);
		(void)run_refuse(r, REASON_UNAVAILABLE, "%s",
		    r->cancelled ? "the call was cancelled"
				 : "the transaction could not be put back "
				   "after a search");
		return;
	}
	if (batch_state(b, seen) != BATCH_OK) {
		give_up(p, "the writer could not read the rows as they are",
		    result_message(batch_result(b, seen)));
		return;
	}
	drop_seen(p, b, seen);
	take_piece(p);
}

static void
ask_writer(struct pair *p)
{
	const struct relation *rel = p->run->relation;
	struct text list = { 0 };
	struct batch *b = batch_new();
	const char *values[1];
	char *sql =
	    mem_printf("SELECT airlock_s.tableoid, airlock_s.ctid FROM %s%s AS "
		       "airlock_s WHERE airlock_s.ctid = ANY "
		       "($1::pg_catalog.tid[])",
		rel->kind == 'p' ? "" : "ONLY ", rel->name);

	for (size_t i = 0; i < p->n; i++)
		if (p->was[i].leaf != 0)
			rowid_add_ctid(&list, &p->was[i]);
	text_end_items(&list);
	values[0] = text_str(&list);
	batch_add(b, "SAVEPOINT airlock_w", 0, NULL);
	batch_add(b, sql, 1, values);
	batch_sync(b);
	batch_add(b, "ROLLBACK TO SAVEPOINT airlock_w", 0, NULL);
	batch_add(b, "RELEASE SAVEPOINT airlock_w", 0, NULL);
	p->run->in_batch = true;
	link_run(p->run->change->link, b, looked, p);
	text_release(&list);
	free(sql);
}

/* --- which old rows there are --- */

static void
answered(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct pair *p = arg;
	struct run *r = p->run;
	struct err e = ERR_INIT;
	size_t step = 3; /* begin, snapshot, lock_timeout, the question */

	r->in_batch = false;
	if (r->cancelled) {
		pair_free(p);
		(void)run_refuse(r, REASON_UNAVAILABLE,
		    "the call was cancelled");
		return;
	}
	if (batch_is_lost(b) || batch_state(b, step) != BATCH_OK) {
		give_up(p, "the observer could not read the rows as they were",
		    batch_is_lost(b)
			? batch_err(b)->text
			: result_message(batch_result(b, batch_failed(b))));
		return;
	}
	if (take_old(p, b, step, &e) == -1) {
		pair_free(p);
		(void)run_refuse(r, REASON_UNAVAILABLE, "%s", e.text);
		return;
	}
	if (batch_ntuples(b, step) > 0)
		ask_writer(p);
	else
		take_piece(p);
}

/* One text[] a key column; gives how many. */
static int
key_arrays(const struct pair *p, struct text *arrays)
{
	const struct relation *rel = p->run->relation;
	int n = 0;

	for (size_t c = 0; c < p->ncols; c++) {
		if (!rel->columns[c].key)
			continue;
		for (size_t i = 0; i < p->n; i++) {
			const struct value *v = &p->values[i * p->ncols + c];

			text_add_item(&arrays[n], v->p, v->len);
		}
		text_end_items(&arrays[n++]);
	}
	return n;
}

static void
ask(struct pair *p)
{
	struct run *r = p->run;
	struct batch *b = batch_new();
	struct text *arrays = mem_array(p->ncols, sizeof(*arrays));
	const char **values = mem_array(p->ncols, sizeof(*values));
	struct err e = ERR_INIT;
	char *sql, *snapshot;
	int n;

	if (fill(p, &e) == -1)
		log_warnx("%s: %s", r->change->id, e.text);
	n = key_arrays(p, arrays);
	for (int i = 0; i < n; i++)
		values[i] = text_str(&arrays[i]);
	sql = capture_lookup_sql(r->relation);
	snapshot =
	    mem_printf("SET TRANSACTION SNAPSHOT '%s'", r->change->snapshot);
	batch_add(b, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", 0,
	    NULL);
	batch_add(b, snapshot, 0, NULL);
	change_add_path(r->change, b);
	/* A piece of the spool that cannot be read must not pass for all. */
	batch_add(b, e.code == ERR_NONE ? sql : "SELECT 1/0",
	    e.code == ERR_NONE ? n : 0, values);
	batch_sync(b);
	batch_add(b, "ROLLBACK", 0, NULL);
	r->in_batch = true;
	pool_ask(r->gate->observer->pool, b, answered, p);
	for (int i = 0; i < n; i++)
		text_release(&arrays[i]);
	free(arrays);
	free(values);
	free(sql);
	free(snapshot);
}

void
run_pair_cancel(struct run *r)
{
	if (r->pair == NULL)
		return;
	pool_forget(r->gate->observer->pool, r->pair);
	pair_free(r->pair);
}

enum run_next
run_pair(struct run *r)
{
	struct err e = ERR_INIT;
	struct pair *p;

	if (r->plan.path != CAPTURE_CONFLICT)
		return RUN_GO;
	if (spool_rewind(r->spool, &e) == -1)
		return run_refuse(r, REASON_UNAVAILABLE, "%s", e.text);
	p = mem_new(sizeof(*p));
	p->run = r;
	r->pair = p;
	p->ncols = r->relation->ncolumns;
	p->values = mem_array(PAIR_ROWS * p->ncols, sizeof(*p->values));
	p->before = mem_array(PAIR_ROWS * p->ncols, sizeof(*p->before));
	ask(p);
	return RUN_WAIT;
}
