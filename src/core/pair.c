/* pair: before-images for ON CONFLICT, read by key from the frozen snapshot */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/run.h"

#define PAIR_ROWS 500

/*
 * The rows that RETURNING gave, in pieces: those whose key the observer finds
 * at the writer's snapshot were updated, the others inserted.  Under REPEATABLE
 * READ a row that is newer than the snapshot is an error, not a conflict; so
 * this is certain where capture_plan allows it.
 */
struct pair {
	struct run *run;
	size_t ncols, n;
	struct rowid ids[PAIR_ROWS];
	struct value *values; /* PAIR_ROWS * ncols, owned bytes */
	bool last;
};

static void ask(struct pair *p);

static void
clear(struct pair *p)
{
	for (size_t i = 0; i < p->n * p->ncols; i++)
		free((void *)(uintptr_t)p->values[i].p);
	p->n = 0;
}

static void
pair_free(struct pair *p)
{
	p->run->pair = NULL;
	clear(p);
	free(p->values);
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

static int
take_row(struct pair *p, size_t i, const struct batch *b, size_t step,
    struct err *e)
{
	struct run *r = p->run;
	struct value *v = &p->values[i * p->ncols];
	const PGresult *res = batch_result(b, step);
	struct image im = { .table = r->relation->table,
		.op = IMAGE_INSERT,
		.ncols = p->ncols,
		.names = r->plan.names,
		.key = r->plan.key,
		.after = v,
		.is = p->ids[i] };
	int row = 0;

	while (row < PQntuples(res) && !same_key(p, v, b, step, row))
		row++;
	if (row < PQntuples(res)) {
		im.op = IMAGE_UPDATE;
		im.before = r->plan.before;
		if (rowid_parse(PQgetvalue(res, row, 0),
			PQgetvalue(res, row, 1), &im.was, e) == -1)
			return -1;
		for (size_t c = 0; c < p->ncols; c++) {
			r->plan.before[c].p =
			    batch_cell(b, step, row, 2 + (int)c);
			r->plan.before[c].len =
			    (size_t)PQgetlength(res, row, 2 + (int)c);
		}
	}
	return run_take_image(r, &im, e);
}

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
		log_warnx("%s: the observer could not read before-images: %s",
		    r->change->id,
		    batch_is_lost(b)
			? batch_err(b)->text
			: result_message(batch_result(b, batch_failed(b))));
		r->plan.path = CAPTURE_PLAIN;
		r->plan.why =
		    "the observer could not read the rows as they were";
		pair_free(p);
		run_go(r);
		return;
	}
	for (size_t i = 0; i < p->n; i++)
		if (take_row(p, i, b, step, &e) == -1)
			break;
	clear(p);
	if (e.code != ERR_NONE) {
		pair_free(p);
		(void)run_refuse(r,
		    e.code == ERR_LIMIT ? REASON_DIFF_TOO_LARGE
					: REASON_UNAVAILABLE,
		    "%s", e.text);
		return;
	}
	if (p->last) {
		pair_free(p);
		run_go(r);
		return;
	}
	ask(p);
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
		for (size_t i = 0; i < p->n; i++)
			capture_add_item(&arrays[n],
			    &p->values[i * p->ncols + c]);
		if (p->n == 0)
			text_addc(&arrays[n], '{');
		text_addc(&arrays[n++], '}');
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
	batch_add(b, "SET LOCAL lock_timeout = '500ms'", 0, NULL);
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
	ask(p);
	return RUN_WAIT;
}
