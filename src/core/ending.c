/* ending: how a run answers its caller, and what becomes of its change */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/run.h"
#include "diff/replay.h"
#include "pg/session.h"

void
run_quit(struct run *r)
{
	struct agent_logins *logins = r->agent->links;

	run_stop_watching(r);
	run_look_cancel(r);
	run_pair_cancel(r);
	run_sizes_cancel(r);
	run_sweep_cancel(r);
	if (r->parsing != NULL)
		parser_cancel(r->parsing);
	r->parsing = NULL;
	pool_cancel(r->ticket);
	r->ticket = NULL;
	catalog_forget(logins->writer->catalog, r);
	run_consult_cancel(r);
}

void
run_free(struct run *r)
{
	struct agent_logins *logins = r->agent->links;
	struct catalog *catalog = logins->writer->catalog;

	run_quit(r);
	if (r->relation != NULL)
		catalog_release(catalog, r->relation);
	event_free(r->tick);
	facts_release(&r->facts);
	capture_release(&r->plan);
	rewrite_result_release(&r->rewrite);
	grid_release(&r->returned);
	spool_close(r->spool);
	replay_free(r->replay);
	json_decref(r->filled);
	counts_release(&r->counts);
	parameters_release(&r->params);
	text_release(&r->blocker);
	reply_release(&r->reply);
	free(r->leaves);
	free(r->sql);
	free(r->bare);
	free(r->deferrable);
	free(r->intent);
	r->agent->calls--;
	free(r);
}

void
run_answer(struct run *r)
{
	outcome_done *done = r->cancelled ? NULL : r->done;
	void *arg = r->arg;
	struct reply reply = r->reply;

	if (run_suggest(r))
		return;
	memset(&r->reply, 0, sizeof(r->reply));
	run_free(r);
	if (done != NULL)
		change_told(done, arg, false, reply.code, text_str(&reply.text),
		    NULL);
	reply_release(&reply);
}

static void send_undo(struct run *r);

static void
undone(void *arg, struct link *l, struct batch *b)
{
	struct run *r = arg;
	struct change *c = r->change;
	struct err e = ERR_INIT;

	r->in_batch = false;
	if (!r->repaired && !batch_is_lost(b) && session_misses(b)) {
		r->repaired = true;
		send_undo(r);
		return;
	}
	c->run = NULL;
	store_fold_abort(c->store);
	counts_release(&r->counts); /* of what is undone */
	if (batch_is_lost(b) || !batch_is_ok(b) ||
	    counts_read(b, r->i_counts, &r->counts, &e) == -1) {
		if (batch_is_lost(b)) {
			c->link = NULL;
			pool_drop(c->login->pool, l);
		}
		change_end(c, WHY_LOST,
		    "the change could not be put back to "
		    "what it was before the last statement",
		    NULL);
	} else {
		/* Rolled-back rows stay counted: they are the new base. */
		counts_put_back(c, &r->counts);
		change_hold(c);
	}
	run_answer(r);
}

static void
send_undo(struct run *r)
{
	struct change *c = r->change;
	struct batch *b = batch_new();

	batch_add(b, "ROLLBACK TO SAVEPOINT airlock_s", 0, NULL);
	if (r->repaired)
		session_prepare(b);
	r->i_counts = counts_ask(b, c); /* the savepoint is still there */
	batch_add(b, "RELEASE SAVEPOINT airlock_s", 0, NULL);
	r->in_batch = true;
	link_run(c->link, b, undone, r);
}

static void
quiet(void *arg, struct link *l UNUSED, struct batch *b UNUSED)
{
	send_undo(arg);
}

/* What was asked for on the control link before has been done: no late cancel
 * hits what comes next. */
static void
wait_for_quiet(struct run *r)
{
	struct batch *b = batch_new();

	batch_add(b, "SELECT 1", 0, NULL);
	pool_ask(r->change->login->pool, b, quiet, r);
}

/* The change cannot be told apart from the statement any more. */
static void
end_with_change(struct run *r)
{
	struct change *c = r->change;

	c->run = NULL;
	text_addf(&r->reply.text, " (%s is rolled back)", c->id);
	change_end(c, WHY_LOST,
	    "the diff could not be kept after a statement was added", NULL);
	run_answer(r);
}

/* An added statement that did not go through leaves the change as it was. */
static void
undo_added(struct run *r)
{
	struct change *c = r->change;

	/* It was not asked what its functions do. */
	c->leaves_setting = c->leaves_setting || r->executed;
	if (r->proved) {
		end_with_change(r);
	} else if (r->executed && r->cancelled) {
		wait_for_quiet(r);
	} else if (r->executed) {
		send_undo(r);
	} else {
		c->run = NULL;
		store_fold_abort(c->store);
		change_hold(c);
		run_answer(r);
	}
}

void
run_record_refusal(struct run *r)
{
	json_t *rec = json_pack("{s:s, s:s, s:s, s:s, s:s}", "kind", "refusal",
	    "agent", r->agent->o->name, "tool", "db_execute", "code",
	    r->reply.code, "text", text_str(&r->reply.text));

	if (rec == NULL)
		rec = json_pack("{s:s, s:s, s:s, s:s}", "kind", "refusal",
		    "agent", r->agent->o->name, "tool", "db_execute", "code",
		    r->reply.code);
	json_object_set_new(rec, "sql", json_stringn(r->sql, r->sql_len));
	if (r->change != NULL)
		json_object_set_new(rec, "change", json_string(r->change->id));
	(void)gate_record(r->gate, rec, true);
	gate_refused(r->gate, r->agent, r->reply.code);
}

/* A statement that ran and is refused afterwards has an id that the agent can
 * ask for; one that the server refused never was a change. */
static void
end_new(struct run *r)
{
	struct change *c = r->change;

	if (c == NULL)
		return;
	c->run = NULL;
	r->change = NULL;
	if (!r->executed || r->cancelled ||
	    !text_starts_with(text_str(&r->reply.text), "REFUSED")) {
		change_free(c);
		return;
	}
	text_addf(&r->reply.text, " (%s is rolled back)", c->id);
	c->why = WHY_REFUSED;
	c->reason = mem_strdup(text_str(&r->reply.text));
	change_enter(c, CHANGE_ROLLED_BACK);
}

enum run_next
run_reply(struct run *r, struct reply *reply)
{
	reply_release(&r->reply);
	r->reply = *reply;
	memset(reply, 0, sizeof(*reply));
	run_quit(r);
	run_record_refusal(r);
	if (r->adding && r->change != NULL) {
		undo_added(r);
		return RUN_OVER;
	}
	end_new(r);
	run_answer(r);
	return RUN_OVER;
}

enum run_next
run_refuse(struct run *r, enum reason reason, const char *fmt, ...)
{
	struct reply reply = { 0 };
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	reply_reason(&reply, reason, "%s", text);
	return run_reply(r, &reply);
}

enum run_next
run_refuse_finding(struct run *r, const struct finding *f)
{
	struct reply reply = { 0 };

	reply_finding(&reply, f, r->sql);
	return run_reply(r, &reply);
}

/* The link is dead: nothing of the transaction is left. */
enum run_next
run_link_failed(struct run *r, const struct err *e, bool started)
{
	struct change *c = r->change;

	reply_link(&r->reply, e, started);
	run_record_refusal(r);
	run_stop_watching(r);
	run_look_cancel(r);
	if (c != NULL && c->link != NULL) {
		pool_drop(c->login->pool, c->link);
		c->link = NULL;
	}
	if (c != NULL) {
		c->run = NULL;
		r->change = NULL;
		if (r->adding)
			change_end(c, WHY_LOST, e->text, NULL);
		else
			change_free(c);
	}
	run_answer(r);
	return RUN_OVER;
}

void
run_abort(struct run *r)
{
	struct change *c = r->change;

	reply_reason(&r->reply, REASON_CHANGE_NOT_PENDING,
	    "change %s was ended while the statement was under way", c->id);
	c->run = NULL;
	run_stop_watching(r);
	run_look_cancel(r);
	run_answer(r);
}
