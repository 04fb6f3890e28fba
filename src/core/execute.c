/* execute: the batch that runs one statement inside its change's transaction */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/run.h"
#include "pg/session.h"

#define DEAD_MAN_MS 30000 /* beyond the time left; see session pins */
#define SETTLE_ROUNDS 8   /* of deferred work that puts off more */
#define LOOK_MS 150 /* then, and each such while again, who is in the way */

/* --- the batch ---------------------------------------------------------- */

/* What the server is to do when nobody tells it anything more: end the
 * transaction a little after its time to live. */
static size_t
add_pins(struct run *r, struct batch *b)
{
	const struct limits *l = &r->gate->o->limits;
	const struct change *c = r->change;
	int64_t left = c->expires_boot != 0 ? c->expires_boot - clock_boot_ms()
	                                    : l->ttl_ms;
	char lock[16], statement[16], idle[24], name[64];
	const char *values[] = { lock, statement, idle, name,
		pool_search_path(c->login->pool) };

	snprintf(lock, sizeof(lock), "%d", l->lock_timeout_ms);
	snprintf(statement, sizeof(statement), "%d", l->write_timeout_ms);
	snprintf(idle, sizeof(idle), "%lld",
	    (long long)(left > 0 ? left : 0) + DEAD_MAN_MS);
	snprintf(name, sizeof(name), "airlock: %.32s %s", r->agent->o->name,
	    c->id);
	return batch_add_prepared(b, SESSION_PIN, 5, values);
}

/* Small tables are counted; a large one is not worth a scan. */
static bool
is_countable(const struct run *r)
{
	const struct relation *rel = r->relation;

	return rel != NULL && rel->readable && !rel->row_security &&
	       (rel->kind == 'r' || rel->kind == 'p') &&
	       rel->estimate <= 2.0 * (double)r->gate->o->limits.count_rows_max;
}

static void
add_examination(struct run *r, struct batch *b)
{
	const char *oids[] = { catalog_oids(r->change->login->catalog) };
	char *count;

	/* A deferred trigger may have set what it liked, and COMMIT and the
	 * dead man go by it. */
	r->i_settled = add_pins(r, b);
	batch_add(b, "SET LOCAL plan_cache_mode = force_generic_plan", 0, NULL);
	r->i_counts = batch_add_prepared(b, SESSION_COUNTS, 1, oids);
	r->i_lsn = batch_add(b,
	    "SELECT pg_catalog.pg_current_wal_insert_lsn(), " SESSION_HOLDS, 0,
	    NULL);
	r->i_rows = 0;
	if (!is_countable(r))
		return;
	count =
	    mem_printf("SELECT pg_catalog.count(*) FROM (SELECT 1 FROM %s%s "
		       "LIMIT %lld) AS airlock_s",
		r->relation->kind == 'p' ? "" : "ONLY ", r->relation->name,
		(long long)r->gate->o->limits.count_rows_max + 1);
	r->i_rows = batch_add(b, count, 0, NULL);
	free(count);
}

/* Each time all that waits is run; what it puts off in turn waits for the next.
 * Whether the last one still found work is shown by the counters, as nothing
 * waits but for rows. */
static void
add_settling(struct run *r, struct batch *b)
{
	static const char sql[] = "SET CONSTRAINTS ALL IMMEDIATE";
	const char *oids[] = { catalog_oids(r->change->login->catalog) };

	batch_add(b, "SAVEPOINT airlock_c", 0, NULL);
	r->i_constraints = batch_add(b, sql, 0, NULL);
	for (int i = 2; i < SETTLE_ROUNDS; i++)
		batch_add(b, sql, 0, NULL);
	r->i_settling = batch_add_prepared(b, SESSION_COUNTS, 1, oids);
	r->i_last = batch_add(b, sql, 0, NULL);
	batch_add(b, "RELEASE SAVEPOINT airlock_c", 0, NULL);
}

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

static const char *
sent(const struct run *r)
{
	return r->rewrite.sql;
}

/*
 * One round trip: begin or savepoint, pins, the statement, pins, what COMMIT
 * would run, pins, and the counters.  The savepoint around the deferred
 * checks is behind the statement, so that the statement's rows carry the top
 * transaction id.
 */
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
	r->i_pinned = add_pins(r, b);
	if (r->deferrable != NULL)
		batch_add(b, r->deferrable, 0, NULL);
	r->i_statement =
	    batch_add(b, sent(r), r->params.n, parameters_values(&r->params));
	batch_rows(b, run_row, r);
	r->i_left = add_pins(r, b); /* a function may have set what it liked */
	add_settling(r, b);
	add_examination(r, b);
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

/* What ran inside the statement, or deferred, can have changed a setting for
 * the rest of the transaction.  It is set back by now. */
static enum run_next
look_at_settings(struct run *r, const struct batch *b, size_t is)
{
	const char *path = pool_search_path(r->change->login->pool), *name;

	if (batch_state(b, is) != BATCH_OK)
		return RUN_GO; /* deferred work failed, and is taken back */
	switch (session_moved(b, r->i_pinned, is, path, &name)) {
	case SESSION_RULES:
		return run_refuse(r, REASON_SETTING_CHANGED,
		    "a function or trigger left %s changed", name);
	case SESSION_IMAGES:
		r->misprinted = r->misprinted || is == r->i_left;
		return RUN_GO;
	default:
		return RUN_GO;
	}
}

/* A held cursor's query is run by COMMIT itself. */
static enum run_next
look_at_cursors(struct run *r, const struct batch *b)
{
	const char *holds = batch_cell(b, r->i_lsn, 0, 1);

	if (batch_state(b, r->i_lsn) != BATCH_OK ||
	    (holds != NULL && holds[0] == 'f'))
		return RUN_GO; /* or it is not read at all */
	return run_refuse(r, REASON_HOLDABLE_CURSOR,
	    "a function or trigger left a cursor WITH HOLD open");
}

/* The last round did something: more may wait, and be run by COMMIT. */
static int
read_settling(struct run *r, const struct batch *b, struct err *e)
{
	struct counts before = { 0 };

	if (counts_read(b, r->i_settling, &before, e) == -1)
		return -1;
	r->unsettled = !counts_equal(&before, &r->counts);
	if (r->unsettled)
		snprintf(r->deferred, sizeof(r->deferred),
		    "deferred triggers put off more work each time they run, "
		    "%d times and on",
		    SETTLE_ROUNDS);
	counts_release(&before);
	return 0;
}

static int
read_examination(struct run *r, const struct batch *b, struct err *e)
{
	const char *lsn = batch_cell(b, r->i_lsn, 0, 0);
	const char *rows =
	    r->i_rows != 0 ? batch_cell(b, r->i_rows, 0, 0) : NULL;

	if (lsn == NULL ||
	    text_copy(r->insert_lsn, sizeof(r->insert_lsn), lsn, e) == -1)
		return err_set(e, ERR_DATABASE,
		    "the server did not tell its WAL position");
	r->rows_now = rows != NULL ? strtoll(rows, NULL, 10) : -1;
	if (r->rows_now > r->gate->o->limits.count_rows_max)
		r->rows_now = -2;
	counts_release(&r->counts);
	return counts_read(b, r->i_counts, &r->counts, e);
}

/* Deferred work fails: COMMIT would be refused.  The change is held all the
 * same, so that the missing statement can be added. */
static void
recovered(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct run *r = arg;
	struct err e = ERR_INIT;

	r->in_batch = false;
	if (batch_is_lost(b))
		(void)run_link_failed(r, batch_err(b), true);
	else if (look_at_cursors(r, b) != RUN_GO)
		return;
	else if (!batch_is_ok(b) || read_examination(r, b, &e) == -1)
		(void)run_refuse(r, REASON_UNAVAILABLE,
		    "the transaction could not be examined: %s",
		    e.code != ERR_NONE
			? e.text
			: result_message(batch_result(b, batch_failed(b))));
	else
		run_go(r);
}

static enum run_next
recover_constraints(struct run *r, const struct batch *failed)
{
	const PGresult *res = batch_result(failed, batch_failed(failed));
	const char *name = PQresultErrorField(res, PG_DIAG_CONSTRAINT_NAME);
	struct batch *b = batch_new();

	snprintf(r->deferred, sizeof(r->deferred), "%s%s%.63s: %.180s",
	    result_sqlstate(res), name != NULL ? " " : "",
	    name != NULL ? name : "", result_message(res));
	batch_add(b, "ROLLBACK TO SAVEPOINT airlock_c", 0, NULL);
	batch_add(b, "RELEASE SAVEPOINT airlock_c", 0, NULL);
	add_examination(r, b);
	r->in_batch = true;
	link_run(r->change->link, b, recovered, r);
	return RUN_WAIT;
}

/* RUN_GO: all is well. */
static enum run_next
look_at(struct run *r, const struct batch *b, struct err *e)
{
	size_t failed = batch_failed(b);

	if (r->row_err.code == ERR_LIMIT) {
		if (failed == (size_t)-1 && read_examination(r, b, e) == -1)
			log_warnx("%s: %s", r->change->id, e->text);
		return run_too_large(r, r->row_err.text);
	}
	if (r->row_err.code != ERR_NONE)
		return run_refuse(r, REASON_UNAVAILABLE,
		    "a row of the diff could not be kept: %s", r->row_err.text);
	if (failed == r->i_statement)
		return statement_failed(r, b);
	if (!r->adding && batch_state(b, r->i_open) == BATCH_OK &&
	    read_opening(r, b, e) == -1)
		return run_refuse(r, REASON_UNAVAILABLE, "%s", e->text);
	if (batch_state(b, r->i_left) == BATCH_OK &&
	    (look_at_settings(r, b, r->i_left) != RUN_GO ||
		look_at_settings(r, b, r->i_settled) != RUN_GO))
		return RUN_OVER;
	if (failed >= r->i_constraints && failed <= r->i_last &&
	    failed != r->i_settling)
		return recover_constraints(r, b);
	if (failed != (size_t)-1)
		return run_refuse(r, REASON_UNAVAILABLE,
		    "the transaction could not be opened or examined: %s",
		    result_message(batch_result(b, failed)));
	if (look_at_cursors(r, b) != RUN_GO)
		return RUN_OVER;
	if (read_examination(r, b, e) == -1 || read_settling(r, b, e) == -1)
		return run_refuse(r, REASON_UNAVAILABLE, "%s", e->text);
	return RUN_GO;
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

static void
executed(void *arg, struct link *l, struct batch *b)
{
	struct run *r = arg;
	struct err e = ERR_INIT;

	r->in_batch = r->stoppable = false;
	run_stop_watching(r);
	if (batch_is_lost(b)) {
		(void)run_link_failed(r, batch_err(b), true);
		return;
	}
	if (r->cancelled) {
		(void)run_refuse(r, REASON_UNAVAILABLE,
		    "the call was cancelled");
		return;
	}
	/* The statement must have left the transaction as ours. */
	if (batch_is_ok(b) && link_transaction(l) != PQTRANS_INTRANS) {
		(void)run_refuse(r, REASON_UNAVAILABLE,
		    "the transaction is not as it was left");
		return;
	}
	if (batch_is_ok(b) && link_check_pins(l, &e) == -1) {
		(void)run_refuse(r, REASON_SETTING_CHANGED, "%s", e.text);
		return;
	}
	if (!run_looked_before(r, b))
		return;
	if (is_worth_a_retry(r, b)) {
		try_again(r);
		return;
	}
	if (look_at(r, b, &e) != RUN_GO)
		return;
	if (lay_out(r, b, &e) == -1)
		(void)run_refuse(r, REASON_UNAVAILABLE, "%s", e.text);
	else
		run_go(r);
}

static int
prepare_store(struct run *r, struct err *e)
{
	struct change *c = r->change;
	const struct limits *l = &r->gate->o->limits;

	if (r->adding)
		return store_fold_begin(c->store, l->fold_rows_max, e);
	if (c->store == NULL)
		return store_open(r->gate->changes_fd, c->id, l->diff_bytes_max,
		    &c->store, e);
	/* A retry: nothing of the first try may stay. */
	store_close(c->store, true);
	c->store = NULL;
	return store_open(r->gate->changes_fd, c->id, l->diff_bytes_max,
	    &c->store, e);
}

enum run_next
run_execute(struct run *r)
{
	const struct limits *l = &r->gate->o->limits;
	struct timeval tv = { 0, LOOK_MS * 1000 };
	struct err e = ERR_INIT;

	if (prepare_store(r, &e) == -1)
		return run_refuse(r,
		    e.code == ERR_LIMIT ? REASON_CHANGE_TOO_LARGE
					: REASON_UNAVAILABLE,
		    "%s", e.text);
	spool_close(r->spool);
	r->spool = NULL;
	if (r->plan.path == CAPTURE_CONFLICT &&
	    spool_open(r->gate->changes_fd, &r->spool, &e) == -1)
		return run_refuse(r, REASON_UNAVAILABLE, "%s", e.text);
	r->misprinted = r->unsettled = false;
	r->deferred[0] = '\0'; /* of a try before */
	r->returned.rows_max = l->rows_default;
	r->returned.bytes_max = l->result_bytes_max / 2;
	r->returned.cell_max = l->cell_bytes_max;
	r->in_batch = r->executed = true;
	event_assign(r->tick, r->gate->base, -1, 0, look, r);
	evtimer_add(r->tick, &tv);
	link_run(r->change->link, make_batch(r), executed, r);
	return RUN_WAIT;
}
