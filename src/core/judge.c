/* judge: what the catalog says of what a statement would run */
#include "core/judge.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/nearest.h"
#include "core/run.h"
#include "rule/functions.h"

const struct reach_rules *
judge_rules(void)
{
	static struct reach_rules rules;

	if (rules.outside == NULL)
		rules = (struct reach_rules){
			.harmless = functions_harmless,
			.outside = functions_pattern(),
			.extensions = functions_extensions,
		};
	return &rules;
}

void
judge_bounds(const struct facts *f, const struct limits *l, struct verdict *v)
{
	size_t names = f->reads.n + f->writes.n + f->functions.n + f->implied.n;

	if (f->depth > l->statement_depth_max)
		verdict_add(v, REASON_STATEMENT_TOO_COMPLEX, f->position,
		    "the statement is nested %d levels deep, %d at most "
		    "(statement_depth_max)",
		    f->depth, l->statement_depth_max);
	if (names > (size_t)l->statement_names_max)
		verdict_add(v, REASON_STATEMENT_TOO_COMPLEX, f->position,
		    "the statement names %zu different things, %d at most "
		    "(statement_names_max)",
		    names, l->statement_names_max);
}

static long
position_of(const struct facts_names *v, const char *name)
{
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->v[i].name, name) == 0)
			return v->v[i].position;
	return -1;
}

/* The relation of "view public.v", if the text names it. */
static long
relation_position(const struct facts *f, const char *through)
{
	const char *dot = strrchr(through, '.');

	return dot != NULL ? position_of(&f->reads, dot + 1) : -1;
}

/* Where it stands in the text: else what leads to it, else all of it. */
static long
place_of(const struct reach *r, const struct facts *f)
{
	long at = -1;

	if (r->through != NULL)
		at = relation_position(f, r->through);
	else if ((at = position_of(&f->functions, r->name)) == -1)
		at = position_of(&f->implied, r->name);
	return at != -1 ? at : f->position;
}

void
judge_reached(const struct reach *r, const struct facts *f, struct verdict *v)
{
	const char *through = r->through != NULL ? r->through : "";
	const char *calls =
	    r->through != NULL ? " calls " : "the statement would call ";

	if (r->temporary != NULL)
		verdict_add(v, REASON_NOT_UNDERSTOOD,
		    position_of(&f->reads, r->temporary),
		    "the statement would use %.64s, which is a temporary "
		    "table: nothing that an agent may send makes one",
		    r->temporary);
	if (r->function == NULL)
		return;
	if (r->outside)
		verdict_add(v, REASON_FUNCTION_OUTSIDE, place_of(r, f),
		    "%s%.120s%s%.160s, which acts outside the transaction, "
		    "runs text as SQL or only waits",
		    r->through != NULL ? "the statement would do so too: " : "",
		    through, calls, r->function);
	else
		verdict_add(v, REASON_FUNCTION_UNKNOWN, place_of(r, f),
		    "%s%.120s%s%.160s, which is VOLATILE: it may write, and "
		    "db_query only reads",
		    r->through != NULL ? "the statement would do so too: " : "",
		    through, calls, r->function);
}

void
judge_unanswered(struct reply *reply, const struct err *e)
{
	if (e->code == ERR_DENIED)
		reply_denied(reply, e);
	else if (e->code == ERR_GONE)
		reply_reason(reply, REASON_UNAVAILABLE,
		    "the server's catalog cannot be asked what the statement "
		    "would run: %s",
		    e->text);
	else
		reply_link(reply, e, false);
}

/* --- a write --- */

static void
learned(void *arg, const struct reach *r, const struct err *e)
{
	struct run *run = arg;
	struct verdict v = { 0 };
	struct reply reply = { 0 };
	const struct finding *f;

	run->reach = r;
	if (r == NULL) {
		judge_unanswered(&reply, e);
		(void)run_reply(run, &reply);
		return;
	}
	judge_reached(r, &run->facts, &v);
	f = verdict_refusal(&v);
	if (f != NULL)
		(void)run_refuse_finding(run, f);
	else
		run_go(run);
}

static struct reach_list *
reach_of(const struct run *r)
{
	return ((struct agent_logins *)r->agent->links)->writer->reach;
}

static void
still(void *arg, const struct err *e)
{
	struct run *run = arg;
	struct reach_list *l = reach_of(run);
	struct reply reply = { 0 };

	if (e->code == ERR_NONE) {
		run_go(run);
	} else if (e->code != ERR_UNFIT) {
		judge_unanswered(&reply, e);
		(void)run_reply(run, &reply);
	} else if (!run->ran && run->looks++ < JUDGE_LOOKS_MAX) {
		reach_drop(l, run->reach);
		run->reach = NULL;
		reach_learn(l, &run->facts, true, learned, run);
	} else {
		(void)run_refuse(run, REASON_DEFINITION_CHANGED, "%s",
		    reasons[REASON_DEFINITION_CHANGED].meaning);
	}
}

/* What is remembered may be old: it is looked at again before, in the very
 * batch of the statement (a change that is added to has an old snapshot), and
 * after. */
enum run_next
run_consult(struct run *r)
{
	struct reach_list *l = reach_of(r);

	if (reach_is_empty(&r->facts))
		return RUN_GO;
	reach_release(l, r->reach);
	r->ran = false;
	r->reach = reach_cached(l, &r->facts, true);
	if (r->reach != NULL && !r->adding)
		return RUN_GO;
	if (r->reach != NULL)
		reach_verify(l, r->reach, still, r);
	else
		reach_learn(l, &r->facts, true, learned, r);
	return RUN_WAIT;
}

void
run_look_before(struct run *r, struct batch *b)
{
	r->i_before = (size_t)-1;
	if (r->reach == NULL || r->adding)
		return;
	r->way = reach_way(reach_of(r), r->reach);
	r->i_before = reach_before(r->reach, r->way, b);
}

void
run_look_again(struct run *r)
{
	bool again = r->again;

	if (r->looks++ >= JUDGE_LOOKS_MAX) {
		(void)run_refuse(r, REASON_DEFINITION_CHANGED, "%s",
		    reasons[REASON_DEFINITION_CHANGED].meaning);
		return;
	}
	if (r->way == REACH_LONG) {
		reach_drop(reach_of(r), r->reach);
		r->reach = NULL;
	}
	run_again(r);
	r->again = again; /* that one is for what is found afterwards */
}

bool
run_looked_before(struct run *r, const struct batch *b)
{
	if (r->i_before == (size_t)-1)
		return true;
	reach_before_read(reach_of(r), r->reach, r->way, b, r->i_before);
	if (!reach_says_no(b, r->i_before))
		return true;
	run_look_again(r);
	return false;
}

static void
verified(struct run *r, const struct err *e)
{
	if (e->code == ERR_NONE)
		run_go(r);
	else if (e->code == ERR_UNFIT && !r->again)
		run_again(r);
	else if (e->code == ERR_UNFIT)
		(void)run_refuse(r, REASON_UNAVAILABLE,
		    "the definition of the table changed while the statement "
		    "ran: %s",
		    e->text);
	else
		(void)run_refuse(r, REASON_DATABASE_DOWN,
		    "the table could not be verified: %s", e->text);
}

static void
looked(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct look *look = arg;
	struct run *r =
	    (struct run *)(void *)((char *)look - offsetof(struct run, look));
	const char *snapshot;

	look->answered = true;
	if (batch_is_lost(b))
		look->e = *batch_err(b);
	else if (look->table)
		(void)catalog_read_look(r->change->login->catalog, r->relation,
		    b, 0, &look->e);
	if (look->e.code == ERR_NONE && r->reach != NULL &&
	    (snapshot = batch_cell(b, look->table, 0, 0)) != NULL)
		look->snapshot = mem_strdup(snapshot);
	if (look->awaited)
		verified(r, &look->e);
}

/* The table by its definition, all else by the snapshot, where that will do. */
void
run_look_behind(struct run *r)
{
	struct look *look = &r->look;
	struct batch *b;

	look->table = r->plan.path != CAPTURE_PLAIN;
	if (look->asked || (!look->table && r->reach == NULL))
		return;
	b = batch_new();
	if (look->table)
		(void)catalog_add_look(r->relation, b);
	if (r->reach != NULL)
		(void)reach_after(b);
	look->asked = true;
	pool_ask(r->change->login->pool, b, looked, look);
}

void
run_look_cancel(struct run *r)
{
	static const struct look none;

	if (r->look.asked && r->change != NULL)
		pool_forget(r->change->login->pool, &r->look);
	free(r->look.snapshot);
	r->look = none;
}

enum run_next
run_verify(struct run *r)
{
	struct look *look = &r->look;

	look->awaited = true;
	if (!look->asked || (look->answered && look->e.code == ERR_NONE))
		return RUN_GO;
	if (look->answered)
		verified(r, &look->e);
	return RUN_WAIT;
}

enum run_next
run_consult_again(struct run *r)
{
	if (r->reach == NULL || reach_is_of(r->reach, r->look.snapshot))
		return RUN_GO;
	r->ran = true;
	reach_verify(reach_of(r), r->reach, still, r);
	return RUN_WAIT;
}

void
run_consult_cancel(struct run *r)
{
	struct reach_list *l = reach_of(r);

	nearest_cancel(r->nearest);
	reach_forget(l, r);
	reach_release(l, r->reach);
	r->reach = NULL;
}

static void
named(void *arg, const char *names)
{
	struct run *r = arg;

	r->nearest = NULL;
	reply_nearest(&r->reply, names);
	run_answer(r);
}

bool
run_suggest(struct run *r)
{
	struct agent_logins *l = r->agent->links;

	if (r->suggested || r->cancelled || r->reply.byte < 0 ||
	    !nearest_fits(r->reply.code))
		return false;
	r->suggested = true;
	r->change = NULL; /* it has gone its own way */
	r->adding = false;
	r->nearest = nearest_ask(l->writer->pool, r->reply.code,
	    r->sql + r->reply.byte, &r->facts, named, r);
	return true;
}
