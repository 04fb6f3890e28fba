/* run: one statement of an agent on its way into a change, step by step */
#include "core/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/judge.h"

static run_step parse, relate, rewrite_it, take_link, know_catalogs, weigh,
    release_it, learn_types, list_it, record_it;

/* The way of one write; each either goes on at once or waits to be told. */
static run_step *const steps[] = {
	parse,             /* the child reads the text: facts, refusals */
	run_consult,       /* what it would run, by the server's catalog */
	relate,            /* what the catalog says of the target */
	rewrite_it,        /* the child splices RETURNING in, with proof */
	take_link,         /* a change, and a link of its own */
	know_catalogs,     /* the first write after the start waits for them */
	run_deferrable,    /* what is deferred again before one is added */
	run_execute,       /* begin, statement, counters: one round trip */
	run_settle,        /* what deferred work puts off in its turn */
	run_verify,        /* the target is still what it was taken for */
	weigh,             /* the condition, by that definition */
	run_consult_again, /* and so is all that it ran */
	run_pair,          /* before-images for ON CONFLICT */
	run_fold,          /* an added statement's rows into those before */
	run_prove,         /* counters against images */
	run_causes,        /* by what the tables that are not named */
	run_effects,       /* what functions may have done beside rows */
	run_sizes,         /* what tables held before */
	run_sweep,         /* rows of the tables where they disagree */
	run_judge,         /* what it all amounts to */
	release_it,        /* an added statement's savepoint */
	learn_types,       /* names of types in the agent's own RETURNING */
	list_it,           /* the statement, among those of the change */
	run_seal,          /* the digest */
	run_seal_replay,   /* that of a second run */
	record_it,         /* journal, then held and answered */
};
#define NSTEPS (sizeof(steps) / sizeof(steps[0]))

void
run_go(struct run *r)
{
	enum run_next next = RUN_GO;

	while (next == RUN_GO && r->step < NSTEPS) {
		if (r->cancelled) {
			(void)run_refuse(r, REASON_UNAVAILABLE,
			    "the call was cancelled");
			return;
		}
		next = steps[r->step++](r);
	}
}

static void
lost_first(void *arg, const struct err *e)
{
	struct run *r = arg;

	r->change->link = NULL; /* the pool has freed it */
	(void)run_link_failed(r, e, true);
}

static void
cancel(struct call *call)
{
	struct run *r =
	    (struct run *)(void *)((char *)call - offsetof(struct run, call));

	/* Too late: the change has it, and cannot be put back. */
	if (r->adding && r->proved) {
		r->done = NULL;
		return;
	}
	r->cancelled = true;
	if (r->in_batch)
		run_stop(r);
	else
		(void)run_refuse(r, REASON_UNAVAILABLE,
		    "the call was cancelled");
}

/* --- judging --- */

static void
judge(struct run *r)
{
	const struct finding *f;

	if (r->agent->o->access == ACCESS_READ) {
		(void)run_refuse(r, REASON_ACCESS, "%s",
		    reasons[REASON_ACCESS].meaning);
		return;
	}
	judge_bounds(&r->facts, &r->gate->o->limits, &r->asked);
	verdict_ask(TOOL_EXECUTE, &r->facts, &r->asked);
	f = verdict_refusal(&r->asked);
	if (f != NULL)
		(void)run_refuse_finding(r, f);
	else if (r->params.n != r->facts.params)
		(void)run_refuse(r, REASON_PARAMETERS,
		    "the statement uses %d parameters, %d were given",
		    r->facts.params, r->params.n);
	else
		run_go(r);
}

/* False where the child said no: the run is over then. */
static bool
parser_agrees(struct run *r, const struct parser_answer *a)
{
	struct reply reply = { 0 };

	r->parsing = NULL;
	if (a->status == PARSER_OK)
		return true;
	reply_parser(&reply, a, r->sql);
	(void)run_reply(r, &reply);
	return false;
}

static void
parsed(void *arg, const struct parser_answer *a)
{
	struct run *r = arg;

	if (!parser_agrees(r, a))
		return;
	r->facts = *a->facts;
	memset(a->facts, 0, sizeof(*a->facts));
	r->bare = mem_strdup(a->sql);
	judge(r);
}

static enum run_next
parse(struct run *r)
{
	r->parsing = parser_facts(r->gate->parser, r->agent->o->name, r->sql,
	    r->sql_len, parsed, r);
	return RUN_WAIT;
}

/* Nothing that could be asked: a change that is added to stays as it was. */
static enum run_next
refuse_down(struct run *r, const struct err *e)
{
	return run_refuse(r, REASON_DATABASE_DOWN, "%s: %s",
	    reasons[REASON_DATABASE_DOWN].meaning, e->text);
}

static void
found(void *arg, struct relation *rel, const struct err *e)
{
	struct run *r = arg;

	r->relation = rel;
	if (rel == NULL && e->code != ERR_GONE && e->code != ERR_DENIED)
		(void)refuse_down(r, e);
	else
		run_go(r); /* not there, or closed: the server says so best */
}

static enum run_next
relate(struct run *r)
{
	struct agent_logins *l = r->agent->links;
	const struct facts_name *target = r->facts.writes.v;

	if (r->facts.kind == STMT_SELECT || r->facts.writes.n == 0)
		return RUN_GO;
	r->relation =
	    catalog_cached(l->writer->catalog, target->schema, target->name);
	if (r->relation != NULL)
		return RUN_GO;
	catalog_relation(l->writer->catalog, target->schema, target->name,
	    found, r);
	return RUN_WAIT;
}

static void
rewritten(void *arg, const struct parser_answer *a)
{
	struct run *r = arg;

	if (!parser_agrees(r, a))
		return;
	r->rewrite = *a->rewrite;
	memset(a->rewrite, 0, sizeof(*a->rewrite));
	run_go(r);
}

/* The observer shows the rows as they were before the change, not as an
 * earlier statement of it left them. */
static bool
was_touched(const struct run *r)
{
	return r->adding &&
	       change_find_table(r->change, r->relation->table) != NULL;
}

static enum run_next
rewrite_it(struct run *r)
{
	capture_plan(&r->plan, r->bare, &r->facts, r->relation);
	if (r->plan.path != CAPTURE_PLAIN && run_is_read(r)) {
		r->plan.path = CAPTURE_PLAIN;
		r->plan.why = "the text of the statement is read";
	}
	if (r->plan.path == CAPTURE_CONFLICT && was_touched(r)) {
		r->plan.path = CAPTURE_PLAIN;
		r->plan.why = "ON CONFLICT on a table that an earlier "
			      "statement of the change wrote";
	}
	rewrite_result_release(&r->rewrite);
	if (r->plan.path == CAPTURE_PLAIN) {
		r->rewrite.sql = mem_strdup(r->bare);
		return RUN_GO;
	}
	r->parsing = parser_rewrite(r->gate->parser, r->agent->o->name, r->bare,
	    r->sql_len, &r->plan.edit, rewritten, r);
	return RUN_WAIT;
}

/* --- running --- */

void
run_from_catalog(struct run *r)
{
	r->step = 0;
	while (steps[r->step] != run_consult)
		r->step++;
	run_go(r);
}

static void
got_link(void *arg, struct link *l, const struct err *e)
{
	struct run *r = arg;

	r->ticket = NULL;
	if (l == NULL) {
		(void)run_link_failed(r, e, false);
		return;
	}
	r->change->link = l;
	run_go(r);
}

static enum run_next
take_link(struct run *r)
{
	const struct limits *l = &r->gate->o->limits;

	if (r->gate->stopping || journal_is_low(r->gate->journal))
		return run_refuse(r, REASON_UNAVAILABLE,
		    r->gate->stopping ? "Airlock is stopping"
				      : "the disk of the journal is full");
	if (r->adding || r->change != NULL)
		return RUN_GO;
	if (change_pending(r->gate, NULL) >= (size_t)l->changes_max ||
	    change_pending(r->gate, r->agent) >= (size_t)l->agent_changes_max)
		return run_refuse(r, REASON_TOO_MANY_CHANGES,
		    "%zu changes are held, %d at most (changes_max), %zu of "
		    "them this agent's, %d at most (agent_changes_max)",
		    change_pending(r->gate, NULL), l->changes_max,
		    change_pending(r->gate, r->agent), l->agent_changes_max);
	r->change = change_new(r->gate, r->agent, r->intent);
	r->change->run = r;
	r->ticket = pool_get(r->change->login->pool, got_link, lost_first, r);
	return RUN_WAIT;
}

static void
asked(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct run *r = arg;

	if (batch_is_lost(b))
		(void)refuse_down(r, batch_err(b));
	else
		run_go(r);
}

/* On a fresh connection a question waits until the one about the catalogs has
 * been asked too, and the next one until that is answered. */
static enum run_next
know_catalogs(struct run *r)
{
	struct login *login = r->change->login;
	struct batch *b;

	if (catalog_oids(login->catalog) != NULL || r->questions++ == 2)
		return RUN_GO;
	r->step--;
	b = batch_new();
	batch_add(b, "SELECT 1", 0, NULL);
	pool_ask(login->pool, b, asked, r);
	return RUN_WAIT;
}

static bool
is_not_null(const void *arg, const char *column)
{
	const struct relation *rel = arg;

	for (size_t i = 0; i < rel->ncolumns; i++)
		if (strcmp(rel->columns[i].name, column) == 0)
			return rel->columns[i].not_null;
	return false;
}

/* Not before it is known that the definition is what it was taken for. */
static enum run_next
weigh(struct run *r)
{
	if (r->relation != NULL)
		verdict_not_null(&r->facts, is_not_null, r->relation,
		    &r->asked);
	return RUN_GO;
}

/* A TRUNCATE is counted by savepoint, and counts otherwise once that is gone:
 * the base of what comes is what is counted then.  Nothing else may differ. */
static int
count_anew(struct run *r, const struct batch *b, struct err *e)
{
	struct counts *was = &r->change->counts, now = { 0 };
	bool same;

	if (counts_read(b, 1, &now, e) == -1)
		return -1;
	for (size_t i = 0; i < was->n; i++) {
		const struct count_row *row = counts_find(&now, was->v[i].oid);

		if (row != NULL && row->exclusive)
			memcpy(was->v[i].n, row->n, sizeof(row->n));
	}
	same = counts_equal(was, &now);
	counts_release(&now);
	return same
	           ? 0
	           : err_set(e, ERR_DATABASE,
			 "the server's counters moved after the diff was made");
}

static void
released(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct run *r = arg;
	struct err e = ERR_INIT;

	r->in_batch = false;
	if (batch_is_lost(b))
		(void)run_link_failed(r, batch_err(b), true);
	else if (!batch_is_ok(b))
		(void)run_refuse(r, REASON_UNAVAILABLE,
		    "the statement's savepoint could not be released");
	else if (count_anew(r, b, &e) == -1)
		(void)run_refuse(r, REASON_UNAVAILABLE, "%s", e.text);
	else
		run_go(r);
}

static enum run_next
release_it(struct run *r)
{
	struct batch *b;

	if (!r->adding)
		return RUN_GO;
	b = batch_new();
	batch_add(b, "RELEASE SAVEPOINT airlock_s", 0, NULL);
	(void)counts_ask(b, r->change);
	r->in_batch = true;
	link_run(r->change->link, b, released, r);
	return RUN_WAIT;
}

/* --- telling --- */

static void
learned(void *arg, const struct err *e UNUSED)
{
	run_go(arg); /* a type that stays unknown is shown by its oid */
}

static enum run_next
learn_types(struct run *r)
{
	struct catalog *catalog = r->change->login->catalog;
	uint32_t oids[64];
	size_t n = grid_unknown_types(&r->returned, catalog, oids, 64);

	if (n == 0)
		return RUN_GO;
	catalog_learn_types(catalog, oids, n, learned, r);
	return RUN_WAIT;
}

static json_t *
statement_json(const struct run *r)
{
	json_t *params = json_array();

	for (int i = 0; i < r->params.n; i++)
		json_array_append_new(params, r->params.v[i] != NULL
						  ? json_string(r->params.v[i])
						  : json_null());
	return json_pack("{s:o, s:o}", "sql", json_stringn(r->sql, r->sql_len),
	    "params", params);
}

static enum run_next
list_it(struct run *r)
{
	json_array_append_new(r->change->statements, statement_json(r));
	return RUN_GO;
}

static bool
write_record(struct run *r)
{
	struct change *c = r->change;
	json_t *rec = change_record(c, r->adding ? "added" : "held");

	if (r->intent != NULL)
		json_object_set_new(rec, "intent", json_string(r->intent));
	json_object_set_new(rec, "statement", statement_json(r));
	json_object_set_new(rec, "tables", change_tables_json(c, true));
	json_object_set_new(rec, "complete", json_boolean(c->complete));
	json_object_set_new(rec, "risk", json_string(severity_name[c->risk]));
	json_object_set_new(rec, "reasons", reasons_json(&c->verdict));
	json_object_set_new(rec, "digest", json_string(c->digest));
	json_object_set_new(rec, "replay_digest", json_string(c->replay));
	json_object_set_new(rec, "xid", json_string(c->xid8));
	return gate_record(r->gate, rec, true);
}

static enum run_next
record_it(struct run *r)
{
	struct change *c = r->change;
	outcome_done *done = r->done;
	void *arg = r->arg;
	struct err e = ERR_INIT;
	json_t *json;

	if (store_flush(c->store, false, &e) == -1 || !write_record(r))
		return run_refuse(r, REASON_UNAVAILABLE,
		    "the change could not be written to the journal%s%s",
		    e.code != ERR_NONE ? ": " : "", e.text);
	c->run = NULL;
	pool_transfer(c->login->pool, c->link, change_lost, c);
	marks_add(c);
	change_hold(c);
	json = change_result(c, true);
	if (r->plan.nagent > 0)
		json_object_set_new(json, "returned",
		    grid_json(&r->returned, c->login->catalog));
	log_info("%s: held for agent '%s', risk %s", c->id, c->agent->o->name,
	    severity_name[c->risk]);
	run_free(r);
	if (done != NULL)
		change_told(done, arg, true, NULL, NULL, json);
	else
		json_decref(json);
	return RUN_OVER;
}

/* --- the call --- */

static void
start(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct run *r = arg;

	if (r->reply.text.len > 0 || gate_cools_off(r->agent, &r->reply)) {
		run_record_refusal(r);
		run_answer(r);
		return;
	}
	run_go(r);
}

/* A change is told to an operator in one line, all its statements in it. */
#define STATEMENTS_MAX ((size_t)32 << 20)

static bool
has_room(const struct run *r, const struct change *c)
{
	json_t *one = statement_json(r);
	size_t n =
	    json_dumpb(one, NULL, 0, 0) + json_dumpb(c->statements, NULL, 0, 0);

	json_decref(one);
	return n <= STATEMENTS_MAX;
}

/* Takes the change to add to; what is wrong is told by start. */
static void
find_change(struct run *r, const char *id)
{
	struct change *c = change_find(r->gate, id, r->agent->o->name);
	enum reason reason = c == NULL             ? REASON_CHANGE_UNKNOWN
	                     : change_has_ended(c) ? REASON_CHANGE_NOT_PENDING
	                     : c->state != CHANGE_HELD ? REASON_CHANGE_BUSY
	                     : !has_room(r, c)         ? REASON_CHANGE_TOO_LARGE
	                                               : REASON_N;

	if (reason != REASON_N) {
		reply_reason(&r->reply, reason, "%s ('%.40s')",
		    reasons[reason].meaning, id);
		return;
	}
	r->adding = true;
	r->change = c;
	c->run = r;
	change_enter(c, CHANGE_ADDING);
}

struct call *
change_propose(struct gate *g, struct agent *a, const struct proposal *p,
    outcome_done *done, void *arg)
{
	struct run *r = mem_new(sizeof(*r));
	struct err e = ERR_INIT;

	r->call.cancel = cancel;
	r->gate = g;
	r->agent = a;
	r->done = done;
	r->arg = arg;
	r->sql = mem_strndup(p->sql, p->sql_len);
	r->sql_len = p->sql_len;
	r->intent = p->intent != NULL ? mem_strdup(p->intent) : NULL;
	a->calls++;
	r->tick = evtimer_new(g->base, start, r);
	if (parameters_read(p->params, &g->o->limits, &r->params, &e) == -1)
		reply_reason(&r->reply, REASON_PARAMETERS, "%s", e.text);
	else if (p->change_id != NULL)
		find_change(r, p->change_id);
	event_active(r->tick, EV_TIMEOUT, 0);
	return &r->call;
}
