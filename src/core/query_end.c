/* query_end: how a read answers its caller, and what it leaves */
#include "core/query.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void
query_free(struct query *q)
{
	if (q->parsing != NULL)
		parser_cancel(q->parsing);
	pool_cancel(q->ticket);
	pool_forget(q->login->pool, q);
	if (q->link != NULL && q->change == NULL)
		pool_drop(q->login->pool, q->link);
	catalog_forget(q->login->catalog, q);
	nearest_cancel(q->nearest);
	reach_forget(q->login->reach, q);
	reach_release(q->login->reach, q->reach);
	event_free(q->begin);
	facts_release(&q->facts);
	grid_release(&q->grid);
	parameters_release(&q->params);
	reply_release(&q->reply);
	free(q->sql);
	free(q->bare);
	q->agent->calls--;
	free(q);
}

/* The change is held again: a read leaves nothing behind. */
void
query_leave_change(struct query *q)
{
	struct change *c = q->change;

	if (c == NULL)
		return;
	q->change = NULL;
	q->link = NULL;
	c->reader = NULL;
	if (c->state == CHANGE_ADDING)
		change_hold(c);
}

static json_t *
record(const struct query *q, const char *kind)
{
	return json_pack("{s:s, s:s, s:s, s:o}", "kind", kind, "agent",
	    q->agent->o->name, "tool", "db_query", "sql",
	    json_stringn(q->sql, q->sql_len));
}

/* Answers with q->reply, and frees. */
void
query_refuse(struct query *q)
{
	outcome_done *done = q->cancelled ? NULL : q->done;
	void *arg = q->arg;
	struct reply reply = q->reply;
	json_t *rec = record(q, "refusal");

	memset(&q->reply, 0, sizeof(q->reply));
	if (rec != NULL) {
		json_object_set_new(rec, "code", json_string(reply.code));
		json_object_set_new(rec, "text",
		    json_string(text_str(&reply.text)));
		(void)gate_record(q->gate, rec, true);
	}
	gate_refused(q->gate, q->agent, reply.code);
	query_leave_change(q);
	query_free(q);
	if (done != NULL)
		change_told(done, arg, false, reply.code, text_str(&reply.text),
		    NULL);
	reply_release(&reply);
}

/* The record is synced lazily anyway: the agent has its answer first. */
void
query_answer(struct query *q)
{
	outcome_done *done = q->cancelled ? NULL : q->done;
	void *arg = q->arg;
	struct gate *g = q->gate;
	json_t *json = grid_json(&q->grid, q->login->catalog);
	json_t *rec = record(q, "read");

	if (rec != NULL) {
		json_object_set_new(rec, "rows",
		    json_integer(grid_count(&q->grid)));
		json_object_set_new(rec, "truncated",
		    json_boolean(q->grid.truncated));
	}
	if (q->change != NULL)
		json_object_set_new(json, "inside_change",
		    json_string(q->change->id));
	query_leave_change(q);
	query_free(q);
	if (done != NULL)
		change_told(done, arg, true, NULL, NULL, json);
	else
		json_decref(json);
	(void)gate_record(g, rec, false);
}
