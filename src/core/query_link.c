/* query_link: a read on its link: what is sent, and what comes back */
#include "core/query.h"

#include <stdio.h>
#include <string.h>

/* --- the batch --- */

/* One row above the cap tells that there are more; then the server need not go
 * on, and what still comes is let go. */
static void
row(void *arg, const PGresult *res)
{
	struct query *q = arg;

	if (q->full)
		return;
	grid_columns(&q->grid, res, NULL, PQnfields(res));
	q->full = !grid_row(&q->grid, res, NULL);
	if (q->full && q->change == NULL)
		pool_stop(q->login->pool, q->link);
}

/* Settings of the session, not of the transaction: a ROLLBACK leaves them, and
 * what a statement changes is undone by it, so that they are set but once. */
static void
set_up(struct query *q, struct batch *b)
{
	static const char sql[] =
	    "SELECT pg_catalog.set_config('lock_timeout', $1, false),"
	    " pg_catalog.set_config('statement_timeout', $2, false),"
	    " pg_catalog.set_config("
	    "'idle_in_transaction_session_timeout', $3, false),"
	    " pg_catalog.set_config('application_name', $4, false)";
	const struct limits *l = &q->gate->o->limits;
	char lock[16], statement[16], idle[16], name[48],
	    setting[POOL_SETTING_SIZE];
	const char *values[] = { lock, statement, idle, name };

	snprintf(lock, sizeof(lock), "%d", l->lock_timeout_ms);
	snprintf(statement, sizeof(statement), "%d", l->read_timeout_ms);
	snprintf(idle, sizeof(idle), "%d", l->read_timeout_ms + 30000);
	snprintf(name, sizeof(name), "airlock: %.32s", q->agent->o->name);
	snprintf(setting, sizeof(setting), "%s %s %s", lock, statement, name);
	if (!pool_set(q->login->pool, q->link, setting))
		return;
	batch_add(b, sql, 4, values);
	batch_sync(b);
}

/* Nothing is stopped before there is a savepoint: the change would end with
 * it. */
static void
saved(void *arg, struct batch *b UNUSED)
{
	struct query *q = arg;

	q->running = true;
	if (q->cancelled)
		pool_stop(q->login->pool, q->link);
}

/* A savepoint made READ ONLY and rolled back.  Its snapshot is an old one, so
 * another link looks at the definitions. */
static struct batch *
batch_inside(struct query *q)
{
	struct batch *b = batch_new();

	batch_add(b, "SAVEPOINT airlock_r", 0, NULL);
	batch_sync_tell(b, saved, q);
	batch_add(b, "SET TRANSACTION READ ONLY", 0, NULL);
	q->i_before = q->i_after = (size_t)-1;
	q->i_statement =
	    batch_add(b, q->bare, q->params.n, parameters_values(&q->params));
	batch_rows(b, row, q);
	return b;
}

/*
 * A transaction of its own, always ended by ROLLBACK when the agent has its
 * answer: READ ONLY alone does not keep everything from staying.  The
 * definitions are looked at just before the statement and just after.
 */
static struct batch *
batch_alone(struct query *q)
{
	struct batch *b = batch_new();

	q->i_before = q->i_after = (size_t)-1;
	set_up(q, b);
	batch_add(b, "BEGIN READ ONLY", 0, NULL);
	if (q->reach != NULL) {
		q->way = reach_way(q->login->reach, q->reach);
		q->i_before = reach_before(q->reach, q->way, b);
	}
	if (q->params.n > 0) /* ours are planned once, not the agent's own */
		batch_add(b, "SET LOCAL plan_cache_mode = auto", 0, NULL);
	q->i_statement =
	    batch_add(b, q->bare, q->params.n, parameters_values(&q->params));
	batch_rows(b, row, q);
	if (q->reach != NULL)
		q->i_after = reach_after(b);
	return b;
}

/* --- what came back --- */

static void
statement_failed(struct query *q, const struct batch *b, size_t failed)
{
	const PGresult *res = batch_result(b, failed);
	const char *state = result_sqlstate(res);

	reply_server(&q->reply, res, q->bare, q->sql, NULL, 0);
	if (strcmp(state, "57014") == 0)
		text_addf(&q->reply.text,
		    ". The statement timeout is %d ms (read_timeout): ask for "
		    "less, or for an aggregate over an index",
		    q->gate->o->limits.read_timeout_ms);
	if (strcmp(state, "25006") == 0)
		text_add(&q->reply.text,
		    ". db_query only reads; send a write to db_execute");
}

static void
link_lost(struct query *q, const struct err *e)
{
	if (e->code == ERR_LIMIT)
		reply_reason(&q->reply, REASON_UNAVAILABLE,
		    "a row of the result is too large to be read: ask for "
		    "parts of the value, as with substr() or left() "
		    "(row_bytes_max)");
	else
		reply_reason(&q->reply, REASON_DATABASE_DOWN,
		    "the database connection was lost: %s", e->text);
	query_refuse(q);
}

/* PostgreSQL's own code leaves the session as it was. */
static bool
runs_own_code(const struct query *q)
{
	return q->reach == NULL ||
	       (q->reach->own_code && q->definitions == SAME);
}

static void
give_back(struct query *q, struct link *l)
{
	if (q->change != NULL)
		return;
	q->link = NULL;
	pool_put_unwound(q->login->pool, l, runs_own_code(q));
}

/* The link is dead, and with it the change that was read. */
static void
batch_lost(struct query *q, struct link *l, const struct err *e)
{
	struct change *c = q->change;
	struct err why = *e;

	if (c != NULL) {
		q->change = NULL;
		c->reader = NULL;
		q->link = c->link = NULL;
		pool_drop(c->login->pool, l);
		change_end(c, WHY_LOST, why.text, NULL);
	}
	link_lost(q, &why);
}

static void undone(void *arg, struct link *l, struct batch *b);

/* A function took away what is prepared; the savepoint is still there where
 * even that could not be asked. */
static void
repair(struct query *q, bool saved)
{
	struct batch *b = batch_new();

	q->i_vouch = (size_t)-1;
	if (saved) {
		batch_add(b, "ROLLBACK TO SAVEPOINT airlock_r", 0, NULL);
		batch_add(b, "RELEASE SAVEPOINT airlock_r", 0, NULL);
	}
	session_prepare(b);
	q->in_batch = true;
	link_run(q->link, b, undone, q);
}

static void
undone(void *arg, struct link *l, struct batch *b)
{
	struct query *q = arg;
	struct change *c = q->change;

	q->in_batch = false;
	if (batch_is_lost(b)) {
		batch_lost(q, l, batch_err(b));
		return;
	}
	if (q->i_vouch != (size_t)-1 && !session_vouched(b, q->i_vouch)) {
		repair(q, !batch_is_ok(b));
		return;
	}
	if (!batch_is_ok(b)) {
		q->change = NULL;
		c->reader = NULL;
		q->link = NULL;
		change_end(c, WHY_LOST,
		    "the change could not be put back to what it was before it "
		    "was read",
		    NULL);
	}
	query_conclude(q);
}

static void
undo(void *arg, struct link *l UNUSED, struct batch *answered UNUSED)
{
	struct query *q = arg;
	struct batch *b = batch_new();

	q->i_vouch = (size_t)-1;
	batch_add(b, "ROLLBACK TO SAVEPOINT airlock_r", 0, NULL);
	if (!runs_own_code(q)) {
		q->change->leaves_setting = true; /* for all that is known */
		q->i_vouch = session_vouch(b);
	}
	batch_add(b, "RELEASE SAVEPOINT airlock_r", 0, NULL);
	link_run(q->link, b, undone, q);
}

/* After a cancel only when that has been done, so that it hits nothing else. */
static void
undo_when_quiet(struct query *q)
{
	struct batch *b;

	q->in_batch = true;
	if (!q->cancelled) {
		undo(q, NULL, NULL);
		return;
	}
	b = batch_new();
	batch_add(b, "SELECT 1", 0, NULL);
	pool_ask(q->login->pool, b, undo, q);
}

/* What the looks at the definitions gave; false where the statement did not run
 * because they might have changed. */
static bool
read_looks(struct query *q, const struct batch *b)
{
	bool ran;

	q->definitions = NOT_KNOWN;
	if (q->i_before == (size_t)-1)
		return true;
	ran = batch_failed(b) != q->i_before;
	reach_before_read(q->login->reach, q->reach, q->way, b, q->i_before);
	if (!ran && q->way == REACH_LONG)
		q->definitions = CHANGED;
	else if (ran && reach_after_read(q->reach, b, q->i_after))
		q->definitions = SAME;
	return ran;
}

static void
executed(void *arg, struct link *l, struct batch *b)
{
	struct query *q = arg;
	const PGresult *res = batch_result(b, q->i_statement);
	size_t failed = batch_failed(b);
	bool ran;

	q->in_batch = q->running = false;
	if (batch_is_lost(b)) {
		batch_lost(q, l, batch_err(b));
		return;
	}
	ran = read_looks(q, b);
	/* Being stopped because enough was read is not a failure. */
	if (failed != (size_t)-1 && ran &&
	    !(q->full && failed == q->i_statement))
		statement_failed(q, b, failed);
	else if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK)
		grid_columns(&q->grid, res, NULL, PQnfields(res));
	give_back(q, l);
	if (q->change != NULL)
		undo_when_quiet(q);
	else if (!ran && q->way == REACH_SHORT && !q->cancelled)
		query_go(q); /* once more, the long way */
	else
		query_conclude(q);
}

static void
run(struct query *q, struct link *l)
{
	const struct limits *lim = &q->gate->o->limits;

	q->link = l;
	q->grid.bytes_max = lim->result_bytes_max;
	q->grid.cell_max = lim->cell_bytes_max;
	q->in_batch = true;
	q->running = q->change == NULL;
	link_run(l, q->change != NULL ? batch_inside(q) : batch_alone(q),
	    executed, q);
}

static void
got_link(void *arg, struct link *l, const struct err *e)
{
	struct query *q = arg;

	q->ticket = NULL;
	if (l != NULL) {
		run(q, l);
		return;
	}
	reply_reason(&q->reply,
	    e->code == ERR_LIMIT ? REASON_TOO_MANY_CHANGES
				 : REASON_DATABASE_DOWN,
	    "no connection to read with: %s; %zu changes are pending", e->text,
	    change_pending(q->gate, NULL));
	query_refuse(q);
}

/* Between batches nothing is under way that a lost link could tell. */
static void
lost(void *arg, const struct err *e)
{
	struct query *q = arg;

	q->link = NULL;
	link_lost(q, e);
}

void
query_go(struct query *q)
{
	if (q->change != NULL)
		run(q, q->change->link);
	else
		q->ticket = pool_get(q->login->pool, got_link, lost, q);
}
