/* query: one read of an agent, in a READ ONLY transaction that never commits */
#include "core/query.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/grid.h"
#include "core/internal.h"
#include "core/judge.h"
#include "core/nearest.h"
#include "pg/session.h"

static void consult(struct query *q);

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

static void
add_pins(struct query *q, struct batch *b)
{
	const struct limits *l = &q->gate->o->limits;
	char lock[16], statement[16], idle[16], name[48];
	const char *values[] = { lock, statement, idle, name,
		pool_search_path(q->login->pool) };

	snprintf(lock, sizeof(lock), "%d", l->lock_timeout_ms);
	snprintf(statement, sizeof(statement), "%d", l->read_timeout_ms);
	snprintf(idle, sizeof(idle), "%d", l->read_timeout_ms + 30000);
	snprintf(name, sizeof(name), "airlock: %.32s", q->agent->o->name);
	batch_add_prepared(b, SESSION_PIN, 5, values);
}

/*
 * Inside a change: a savepoint made READ ONLY and rolled back.  Else a
 * transaction of its own, always ended by ROLLBACK: READ ONLY alone does not
 * keep everything from staying.  The definitions are looked at just before and
 * just after; inside a change by another link, for its snapshot is an old one.
 */
static struct batch *
make_batch(struct query *q)
{
	struct batch *b = batch_new();

	if (q->change != NULL) {
		batch_add(b, "SAVEPOINT airlock_r", 0, NULL);
		batch_add(b, "SET TRANSACTION READ ONLY", 0, NULL);
	} else {
		batch_add(b, "BEGIN READ ONLY", 0, NULL);
		add_pins(q, b);
	}
	q->i_before = q->i_after = (size_t)-1;
	if (q->reach != NULL && q->change == NULL)
		q->i_before = reach_before(q->reach, b);
	q->i_statement =
	    batch_add(b, q->bare, q->params.n, parameters_values(&q->params));
	batch_rows(b, row, q);
	if (q->change == NULL) {
		batch_sync(b);
		batch_add(b, "ROLLBACK", 0, NULL);
		q->i_looked = session_look_over(b);
	}
	if (q->i_before != (size_t)-1)
		q->i_after = reach_after(q->reach, b);
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
typed(void *arg, const struct err *e UNUSED)
{
	query_answer(arg);
}

static void
show(struct query *q)
{
	uint32_t oids[64];
	size_t n = grid_unknown_types(&q->grid, q->login->catalog, oids, 64);

	if (n > 0)
		catalog_learn_types(q->login->catalog, oids, n, typed, q);
	else
		query_answer(q);
}

/* What was judged is not what is there: nothing of it is shown. */
static void
stale(struct query *q)
{
	struct grid fresh = { .rows_max = q->grid.rows_max };

	reach_drop(q->login->reach, q->reach);
	q->reach = NULL;
	grid_release(&q->grid);
	q->grid = fresh;
	q->full = false;
	q->definitions = NOT_KNOWN;
	if (q->looks++ < JUDGE_LOOKS_MAX && !q->cancelled) {
		consult(q);
		return;
	}
	reply_reason(&q->reply, REASON_DEFINITION_CHANGED, "%s",
	    reasons[REASON_DEFINITION_CHANGED].meaning);
	query_refuse(q);
}

static void
looked(struct query *q, const struct err *e, void (*next)(struct query *q))
{
	if (e->code == ERR_NONE) {
		next(q);
	} else if (e->code == ERR_UNFIT) {
		stale(q);
	} else {
		judge_unanswered(&q->reply, e);
		query_refuse(q);
	}
}

static void
looked_after(void *arg, const struct err *e)
{
	looked(arg, e, show);
}

static void
named(void *arg, const char *names)
{
	struct query *q = arg;

	q->nearest = NULL;
	reply_nearest(&q->reply, names);
	query_refuse(q);
}

/* What the statement gave, or its failure, is taken already. */
static void
conclude(struct query *q)
{
	if (q->reply.text.len > 0 && q->reply.byte >= 0 && !q->cancelled &&
	    nearest_fits(q->reply.code))
		q->nearest = nearest_ask(q->login->pool, q->reply.code,
		    q->sql + q->reply.byte, &q->facts, named, q);
	else if (q->reply.text.len > 0)
		query_refuse(q);
	else if (q->definitions == CHANGED)
		stale(q);
	else if (q->reach == NULL || q->definitions == SAME)
		show(q);
	else
		reach_verify(q->login->reach, q->reach, looked_after, q);
}

static void
link_lost(struct query *q, const struct err *e)
{
	if (e->code == ERR_LIMIT)
		reply_reason(&q->reply, REASON_UNAVAILABLE,
		    "a row of the result is too large to be read: ask for "
		    "parts of the value, as with substr() or left()");
	else
		reply_reason(&q->reply, REASON_DATABASE_DOWN,
		    "the database connection was lost: %s", e->text);
	query_refuse(q);
}

static void
give_back(struct query *q, struct link *l, bool clean)
{
	if (q->change != NULL)
		return;
	q->link = NULL;
	if (clean)
		pool_put_clean(q->login->pool, l);
	else
		pool_put(q->login->pool, l);
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
	if (!batch_is_ok(b)) {
		q->change = NULL;
		c->reader = NULL;
		q->link = NULL;
		change_end(c, WHY_LOST,
		    "the change could not be put back to what it was before it "
		    "was read",
		    NULL);
	}
	conclude(q);
}

static void
undo(void *arg, struct link *l UNUSED, struct batch *answered UNUSED)
{
	struct query *q = arg;
	struct batch *b = batch_new();

	batch_add(b, "ROLLBACK TO SAVEPOINT airlock_r", 0, NULL);
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

static void
executed(void *arg, struct link *l, struct batch *b)
{
	static const enum definitions after[] = { NOT_KNOWN, CHANGED, SAME };
	struct query *q = arg;
	const PGresult *res = batch_result(b, q->i_statement);
	size_t failed = batch_failed(b);
	bool clean;

	q->in_batch = q->running = false;
	if (batch_is_lost(b)) {
		batch_lost(q, l, batch_err(b));
		return;
	}
	clean = q->change == NULL && session_is_as_begun(l, b, q->i_looked);
	if (q->i_after != (size_t)-1)
		q->definitions =
		    failed == q->i_before ? CHANGED
		    : !clean              ? NOT_KNOWN
			     : after[reach_after_read(b, q->i_after) + 1];
	/* Being stopped because enough was read is not a failure. */
	if (failed != (size_t)-1 && failed != q->i_before &&
	    !(q->full && failed == q->i_statement))
		statement_failed(q, b, failed);
	else if (res != NULL && PQresultStatus(res) == PGRES_TUPLES_OK)
		grid_columns(&q->grid, res, NULL, PQnfields(res));
	give_back(q, l, clean);
	if (q->change != NULL)
		undo_when_quiet(q);
	else
		conclude(q);
}

static void
run(struct query *q, struct link *l)
{
	const struct limits *lim = &q->gate->o->limits;

	q->link = l;
	q->grid.bytes_max = lim->result_bytes_max;
	q->grid.cell_max = lim->cell_bytes_max;
	q->in_batch = q->running = true;
	link_run(l, make_batch(q), executed, q);
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

/* --- judging --- */

static void
go(struct query *q)
{
	if (q->change != NULL)
		run(q, q->change->link);
	else
		q->ticket = pool_get(q->login->pool, got_link, lost, q);
}

static void
looked_before(void *arg, const struct err *e)
{
	looked(arg, e, go);
}

static void
learned(void *arg, const struct reach *r, const struct err *e)
{
	struct query *q = arg;
	struct verdict v = { 0 };
	const struct finding *f;

	q->reach = r;
	if (r == NULL) {
		judge_unanswered(&q->reply, e);
		query_refuse(q);
		return;
	}
	judge_reached(r, &q->facts, &v);
	f = verdict_refusal(&v);
	if (f != NULL) {
		reply_finding(&q->reply, f, q->sql);
		query_refuse(q);
	} else {
		go(q);
	}
}

static void
consult(struct query *q)
{
	struct reach_list *l = q->login->reach;

	q->reach = reach_cached(l, &q->facts, false);
	if (q->reach == NULL)
		reach_learn(l, &q->facts, false, learned, q);
	else if (q->change != NULL)
		reach_verify(l, q->reach, looked_before, q);
	else
		go(q);
}

static void
judged(struct query *q)
{
	struct verdict v = { 0 };
	const struct finding *f;

	verdict_ask(TOOL_QUERY, &q->facts, &v);
	f = verdict_refusal(&v);
	if (f != NULL) {
		reply_finding(&q->reply, f, q->sql);
		query_refuse(q);
	} else if (q->params.n != q->facts.params) {
		reply_reason(&q->reply, REASON_PARAMETERS,
		    "the statement uses %d parameters, %d were given",
		    q->facts.params, q->params.n);
		query_refuse(q);
	} else if (reach_is_empty(&q->facts)) {
		go(q);
	} else {
		consult(q);
	}
}

static void
parsed(void *arg, const struct parser_answer *a)
{
	struct query *q = arg;

	q->parsing = NULL;
	if (a->status != PARSER_OK) {
		reply_parser(&q->reply, a, q->sql);
		query_refuse(q);
		return;
	}
	q->facts = *a->facts;
	memset(a->facts, 0, sizeof(*a->facts));
	q->bare = mem_strdup(a->sql);
	judged(q);
}

static void
begin(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct query *q = arg;

	if (q->reply.text.len > 0) {
		query_refuse(q);
		return;
	}
	q->parsing = parser_facts(q->gate->parser, q->agent->o->name, q->sql,
	    q->sql_len, parsed, q);
}

void
query_abort(struct query *q)
{
	reply_reason(&q->reply, REASON_CHANGE_NOT_PENDING,
	    "change %s was ended while it was being read", q->change->id);
	q->change->reader = NULL;
	q->change = NULL;
	q->link = NULL;
	query_refuse(q);
}

static void
cancel(struct call *call)
{
	struct query *q =
	    (struct query *)(void *)((char *)call -
				     offsetof(struct query, call));

	q->cancelled = true;
	if (q->running)
		pool_stop(q->login->pool, q->link);
	if (q->in_batch)
		return;
	query_leave_change(q);
	query_free(q);
}

static void
find_change(struct query *q, const char *id)
{
	struct change *c = change_find(q->gate, id, q->agent->o->name);
	enum reason reason = c == NULL             ? REASON_CHANGE_UNKNOWN
	                     : change_has_ended(c) ? REASON_CHANGE_NOT_PENDING
	                     : c->state != CHANGE_HELD ? REASON_CHANGE_BUSY
	                                               : REASON_N;

	if (reason != REASON_N) {
		reply_reason(&q->reply, reason, "%s ('%.40s')",
		    reasons[reason].meaning, id);
		return;
	}
	q->change = c;
	c->reader = q;
	q->login = c->login;
	change_enter(c, CHANGE_ADDING);
}

struct call *
query_run(struct gate *g, struct agent *a, const struct read_request *r,
    outcome_done *done, void *arg)
{
	static const struct timeval now = { 0, 0 };
	const struct limits *l = &g->o->limits;
	struct query *q = mem_new(sizeof(*q));
	struct err e = ERR_INIT;

	q->call.cancel = cancel;
	q->gate = g;
	q->agent = a;
	q->login = ((struct agent_logins *)a->links)->reader;
	q->done = done;
	q->arg = arg;
	q->sql = mem_strndup(r->sql, r->sql_len);
	q->sql_len = r->sql_len;
	q->grid.rows_max = r->max_rows > 0 ? r->max_rows : l->rows_default;
	a->calls++;
	q->begin = evtimer_new(g->base, begin, q);
	if (parameters_read(r->params, l, &q->params, &e) == -1)
		reply_reason(&q->reply, REASON_PARAMETERS, "%s", e.text);
	else if (r->change_id != NULL)
		find_change(q, r->change_id);
	evtimer_add(q->begin, &now);
	return &q->call;
}
