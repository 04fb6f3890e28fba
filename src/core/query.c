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

/* --- telling --- */

static void
typed(void *arg, const struct err *e UNUSED)
{
	query_answer(arg);
}

void
query_show(struct query *q)
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
	looked(arg, e, query_show);
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
void
query_conclude(struct query *q)
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
		query_show(q);
	else
		reach_verify(q->login->reach, q->reach, looked_after, q);
}

/* --- judging --- */

static void
looked_before(void *arg, const struct err *e)
{
	looked(arg, e, query_go);
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
		query_go(q);
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
		query_go(q);
}

static void
judged(struct query *q)
{
	struct verdict v = { 0 };
	const struct finding *f;

	judge_bounds(&q->facts, &q->gate->o->limits, &v);
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
		query_go(q);
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

	if (q->reply.text.len > 0 || gate_cools_off(q->agent, &q->reply)) {
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
	event_active(q->begin, EV_TIMEOUT, 0);
	return &q->call;
}
