/* execute: the batch that runs one statement inside its change's transaction */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/judge.h"
#include "core/run.h"
#include "pg/session.h"

#define LOOK_MS 150 /* then, and each such while again, who is in the way */

/* --- the batch ---------------------------------------------------------- */

void
run_stop(struct run *r)
{
	struct change *c = r->change;

	if (r->pair == NULL && c->link != NULL && (r->stoppable || !r->adding))
		pool_stop(c->login->pool, c->link);
}

/* An error before there is a savepoint would end the whole transaction, so that
 * nothing is stopped until the server has said that there is one. */
static void
saved(void *arg, struct batch *b UNUSED)
{
	struct run *r = arg;

	r->stoppable = true;
	if (r->cancelled)
		run_stop(r);
}

/* The definitions are looked at over another link meanwhile: the statement has
 * its locks, so that they stay what they are. */
static void
ran(void *arg, struct batch *b)
{
	struct run *r = arg;

	if (batch_state(b, r->i_statement) == BATCH_OK && !r->cancelled)
		run_look_behind(r);
}

static const char *
sent(const struct run *r)
{
	return r->rewrite.sql;
}

/* One round trip: begin or savepoint, pins, the statement, pins, what COMMIT
 * would run, pins, and the counters. */
static struct batch *
make_batch(struct run *r)
{
	struct batch *b = batch_new();

	batch_add(b,
	    r->adding ? "SAVEPOINT airlock_s"
		      : "BEGIN ISOLATION LEVEL REPEATABLE READ",
	    0, NULL);
	run_look_before(r, b); /* the snapshot is taken with it */
	if (r->adding)
		batch_sync_tell(b, saved, r);
	else
		r->i_open = batch_add_prepared(b, SESSION_OPEN, 0, NULL);
	r->i_pinned = run_add_pins(r, b);
	if (r->deferrable != NULL)
		r->i_deferrable = batch_add(b, r->deferrable, 0, NULL);
	r->i_statement =
	    batch_add(b, sent(r), r->params.n, parameters_values(&r->params));
	batch_rows(b, run_row, r);
	batch_sync_tell(b, ran, r);
	/* A function may have set what it liked. */
	r->i_left = run_add_pins(r, b);
	run_add_examination(r, b);
	return b;
}

/* --- who is in the way ---------------------------------------------------- */

static void
name_blockers(struct run *r, const struct batch *b)
{
	text_reset(&r->blocker);
	for (int i = 0; i < batch_ntuples(b, 0); i++) {
		const char *pid = batch_cell(b, 0, i, 0);
		const struct change *c;

		TAILQ_FOREACH (c, &r->gate->changes, next)
			if (pid != NULL && c->link != NULL &&
			    link_backend_pid(c->link) == strtol(pid, NULL, 10))
				break;
		text_add(&r->blocker, r->blocker.len > 0 ? ", " : "");
		if (c != NULL && c != r->change)
			text_addf(&r->blocker, "change %s (%s)", c->id,
			    change_status[c->state]);
		else
			text_addf(&r->blocker,
			    "a session outside Airlock (pid %.10s)",
			    pid != NULL ? pid : "?");
	}
}

static void
looked(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct run *r = arg;
	struct timeval tv = { 0, LOOK_MS * 1000 };

	if (!batch_is_lost(b) && batch_is_ok(b) && batch_ntuples(b, 0) > 0)
		name_blockers(r, b);
	if (r->in_batch)
		evtimer_add(r->tick, &tv);
}

/* The blocker has often gone when one asks after the error, so it is asked for
 * while the statement waits. */
static void
look(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct run *r = arg;
	struct batch *b = batch_new();
	char pid[16];
	const char *values[] = { pid };

	snprintf(pid, sizeof(pid), "%d", link_backend_pid(r->change->link));
	batch_add(b,
	    "SELECT pg_catalog.unnest("
	    "pg_catalog.pg_blocking_pids($1::pg_catalog.int4))",
	    1, values);
	pool_ask(r->change->login->pool, b, looked, r);
}

void
run_stop_watching(struct run *r)
{
	event_del(r->tick);
	if (r->change != NULL)
		pool_forget(r->change->login->pool, r);
}

/* --- what came back ------------------------------------------------------- */

static enum run_next
statement_failed(struct run *r, const struct batch *b)
{
	const PGresult *res = batch_result(b, r->i_statement);
	const char *state = result_sqlstate(res);
	struct reply reply = { 0 };

	reply_server(&reply, res, sent(r), r->sql, r->rewrite.inserts,
	    r->rewrite.ninserts);
	if (strcmp(state, "55P03") == 0 && r->blocker.len > 0)
		text_addf(&reply.text,
		    ". In the way: %s. Try again when it has been decided",
		    text_str(&r->blocker));
	if (strcmp(state, "57014") == 0)
		text_addf(&reply.text,
		    " (write_timeout is %d ms). Nothing was applied",
		    r->gate->o->limits.write_timeout_ms);
	if (strcmp(state, "40001") == 0 || strcmp(state, "40P01") == 0)
		text_addf(&reply.text, ". %s",
		    r->adding
			? "The change is still held as it was; rows of "
			  "this statement have moved on since it began, so "
			  "it cannot take them: withdraw it and send all "
			  "its statements again"
			: "Nothing was applied: read the rows again, then "
			  "send the statement again");
	if (r->plan.path != CAPTURE_PLAIN && !r->again && !r->cancelled &&
	    text_starts_with(state, "42")) {
		r->reply = reply;
		return run_blame_splice(r);
	}
	return run_reply(r, &reply);
}

static int
read_opening(struct run *r, const struct batch *b, struct err *e)
{
	struct change *c = r->change;
	const char *xid = batch_cell(b, r->i_open, 0, 0);
	const char *xid32 = batch_cell(b, r->i_open, 0, 1);
	const char *snapshot = batch_cell(b, r->i_open, 0, 2);
	const char *multixact = batch_cell(b, r->i_open, 0, 3);
	const char *path = batch_cell(b, r->i_open, 0, 4);

	if (xid == NULL || xid32 == NULL || snapshot == NULL ||
	    multixact == NULL || path == NULL)
		return err_set(e, ERR_DATABASE,
		    "the server did not tell the transaction's id");
	if (text_copy(c->xid8, sizeof(c->xid8), xid, e) == -1 ||
	    text_copy(c->xid, sizeof(c->xid), xid32, e) == -1 ||
	    text_copy(c->multixact, sizeof(c->multixact), multixact, e) == -1 ||
	    text_copy(c->snapshot, sizeof(c->snapshot), snapshot, e) == -1)
		return -1;
	free(c->path);
	c->path = mem_strdup(path);
	assert(c != NULL);
	/* It goes into SQL, where no parameter may stand. */
	if (strspn(c->snapshot, "0123456789ABCDEFabcdef-") !=
	    strlen(c->snapshot))
		return err_set(e, ERR_DATABASE,
		    "the server's snapshot has a name that is not understood");
	return 0;
}

/* A RETURNING that gave no row still has columns to tell. */
static int
lay_out(struct run *r, const struct batch *b, struct err *e)
{
	const PGresult *res = batch_result(b, r->i_statement);

	if (capture_lay_out(&r->plan, res, e) == -1)
		return -1;
	if (r->plan.nagent > 0)
		grid_columns(&r->returned, res, r->plan.agent, r->plan.nagent);
	/* The rows are there, but not as they are printed elsewhere: they are
	 * read anew. */
	if (r->misprinted) {
		r->plan.path = CAPTURE_PLAIN;
		r->plan.why = "a function changed how values are printed";
	}
	return 0;
}

/* RUN_GO: the statement did what it should, whatever comes of deferred work. */
static enum run_next
look_at(struct run *r, const struct batch *b)
{
	struct err e = ERR_INIT;
	size_t failed = batch_failed(b);

	if (r->row_err.code == ERR_LIMIT) {
		if (failed == (size_t)-1 && run_read_counts(r, b, &e) == -1)
			log_warnx("%s: %s", r->change->id, e.text);
		return run_too_large(r, r->row_err.text);
	}
	if (r->row_err.code != ERR_NONE)
		return run_refuse(r, REASON_UNAVAILABLE,
		    "the diff could not be kept: %s", r->row_err.text);
	if (failed == r->i_statement)
		return statement_failed(r, b);
	if (batch_state(b, r->i_statement) == BATCH_OK && session_misses(b))
		return run_refuse(r, REASON_SETTING_CHANGED,
		    "a function or trigger removed what Airlock had prepared "
		    "in its session");
	if (!r->adding && batch_state(b, r->i_open) == BATCH_OK &&
	    read_opening(r, b, &e) == -1)
		return run_refuse(r, REASON_UNAVAILABLE, "%s", e.text);
	if (batch_state(b, r->i_statement) != BATCH_OK)
		return RUN_GO; /* what failed before it is told with the rest */
	if (run_look_at_settings(r, b, r->i_left) != RUN_GO)
		return RUN_OVER;
	if (lay_out(r, b, &e) == -1)
		return run_refuse(r, REASON_UNAVAILABLE, "%s", e.text);
	return RUN_GO;
}

/* A first statement that lost a race before anyone saw it is tried once more,
 * in a transaction of its own. */
static bool
is_worth_a_retry(const struct run *r, const struct batch *b)
{
	return !r->adding && !r->retried && !r->cancelled &&
	       batch_failed(b) == r->i_statement &&
	       strcmp(result_sqlstate(batch_result(b, r->i_statement)),
		   "40001") == 0;
}

static void
began_again(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct run *r = arg;

	r->in_batch = false;
	if (batch_is_lost(b)) {
		(void)run_link_failed(r, batch_err(b), true);
		return;
	}
	r->step--;
	run_go(r); /* run_execute once more, if anybody still waits */
}

static void
try_again(struct run *r)
{
	struct batch *b = batch_new();

	r->retried = true;
	r->nleaves = 0;
	grid_release(&r->returned);
	r->in_batch = true;
	batch_add(b, "ROLLBACK", 0, NULL);
	link_run(r->change->link, b, began_again, r);
}

bool
run_is_whole(struct run *r, const struct link *l, const struct batch *b)
{
	struct err e = ERR_INIT;

	if (batch_is_lost(b))
		(void)run_link_failed(r, batch_err(b), true);
	else if (r->cancelled)
		(void)run_refuse(r, REASON_UNAVAILABLE,
		    "the call was cancelled");
	else if (batch_is_ok(b) && link_transaction(l) != PQTRANS_INTRANS)
		(void)run_refuse(r, REASON_UNAVAILABLE,
		    "the transaction is not as it was left");
	else if (batch_is_ok(b) && link_check_pins(l, &e) == -1)
		(void)run_refuse(r, REASON_SETTING_CHANGED, "%s", e.text);
	else
		return true;
	return false;
}

/* A constraint that was to be deferred again has gone since its name was asked
 * for, or its schema has, or it defers no more: nothing of the statement has
 * run. */
static bool
names_have_gone(const struct run *r, const struct batch *b)
{
	const char *state;

	if (r->deferrable == NULL || batch_failed(b) != r->i_deferrable ||
	    r->looks >= JUDGE_LOOKS_MAX)
		return false;
	state = result_sqlstate(batch_result(b, r->i_deferrable));
	return text_starts_with(state, "42") || text_starts_with(state, "3F");
}

static void
executed(void *arg, struct link *l, struct batch *b)
{
	struct run *r = arg;

	r->in_batch = r->stoppable = false;
	run_stop_watching(r);
	if (!run_is_whole(r, l, b) || !run_looked_before(r, b))
		return;
	if (is_worth_a_retry(r, b))
		try_again(r);
	else if (names_have_gone(r, b))
		run_look_again(r);
	else if (look_at(r, b) == RUN_GO && run_examine(r, b) == RUN_GO)
		run_go(r);
}

/* Made while the server works: nothing has come of the statement yet.  Without
 * it the statement is stopped and nothing of it kept. */
static void
make_store(struct run *r)
{
	struct change *c = r->change;

	/* A retry: nothing of the first try may stay. */
	store_close(c->store, true);
	c->store = NULL;
	if (store_open(r->gate->changes_fd, c->id,
		r->gate->o->limits.diff_bytes_max, &c->store,
		&r->row_err) == -1)
		run_stop(r);
}

enum run_next
run_execute(struct run *r)
{
	const struct limits *l = &r->gate->o->limits;
	struct timeval tv = { 0, LOOK_MS * 1000 };
	struct err e = ERR_INIT;

	if (r->adding &&
	    store_fold_begin(r->change->store, l->fold_rows_max, &e) == -1)
		return run_refuse(r,
		    e.code == ERR_LIMIT ? REASON_CHANGE_TOO_LARGE
					: REASON_UNAVAILABLE,
		    "%s", e.text);
	spool_close(r->spool);
	r->spool = NULL;
	if (r->plan.path == CAPTURE_CONFLICT &&
	    spool_open(r->gate->changes_fd, &r->spool, &e) == -1)
		return run_refuse(r, REASON_UNAVAILABLE, "%s", e.text);
	run_look_cancel(r); /* of a try before */
	r->misprinted = r->unsettled = false;
	r->deferred[0] = '\0'; /* of a try before */
	r->returned.rows_max = l->rows_default;
	r->returned.bytes_max = l->result_bytes_max / 2;
	r->returned.cell_max = l->cell_bytes_max;
	r->in_batch = r->executed = true;
	event_assign(r->tick, r->gate->base, -1, 0, look, r);
	evtimer_add(r->tick, &tv);
	link_run(r->change->link, make_batch(r), executed, r);
	if (!r->adding)
		make_store(r);
	return RUN_WAIT;
}
