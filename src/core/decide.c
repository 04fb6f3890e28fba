/* decide: the way of an approved change to COMMIT, and out of doubt */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/internal.h"
#include "pg/session.h"

#define RESOLVE_MS 500
#define ANSWER_MS 10000 /* for an answer, beyond the server's own timeouts */

/*
 * recheck   the transaction is as it was reviewed (writer)
 * beacon    its id cannot be given away by a crash (observer): WAL behind its
 *           first write is on the server's disk
 * intent    what is about to be committed, by whom, is on our disk
 * COMMIT    and its tag
 */
struct decision {
	struct change *change;
	char *by;
	uid_t uid;
	outcome_done *done;
	void *arg;
	bool sent; /* COMMIT is on its way */
};

static void
finish(struct decision *d, bool ok, const char *code, const char *text)
{
	struct change *c = d->change;
	outcome_done *done = d->done;
	void *arg = d->arg;
	json_t *json;

	if (c->decision == d)
		c->decision = NULL;
	json = change_header(c);
	free(d->by);
	free(d);
	change_told(done, arg, ok, code, text, json);
}

/* The transaction ended under the decision, before COMMIT was sent. */
static void
ended(struct decision *d, const char *why, const char *reason)
{
	struct change *c = d->change;
	char text[400];

	snprintf(text, sizeof(text),
	    "%.300s: the change is rolled back, COMMIT was not sent", reason);
	c->decision = NULL;
	change_end(c, why, reason, NULL);
	finish(d, false, "ROLLED_BACK", text);
}

static void
lost(struct decision *d, struct link *l, const struct err *e)
{
	struct change *c = d->change;

	if (l != NULL) {
		c->link = NULL;
		pool_drop(c->login->pool, l);
	}
	ended(d, WHY_LOST, e->text);
}

/* Not committed, and still held where that may be: nothing was sent. */
static void
stay(struct decision *d, const char *code, const char *text)
{
	struct err e = ERR_INIT;

	if (d->change->link == NULL) {
		err_set(&e, ERR_DATABASE, "the link was lost");
		lost(d, NULL, &e);
	} else if (d->change->gate->stopping) {
		ended(d, WHY_SHUTDOWN, text);
	} else {
		change_hold(d->change);
		finish(d, false, code, text);
	}
}

/* No answer to what is sent next would leave everybody waiting. */
static void
limit_waiting(struct change *c)
{
	change_deadline(c, c->gate->o->limits.write_timeout_ms + ANSWER_MS);
}

/* --- COMMIT --- */

static json_t *
outcome_record(const struct change *c, const char *kind)
{
	json_t *rec = change_record(c, kind);

	json_object_set_new(rec, "xid", json_string(c->xid8));
	json_object_set_new(rec, "digest", json_string(c->digest));
	return rec;
}

/* The server has confirmed it, so it is told whatever the disk says; without
 * the record the next start asks the server again. */
static void
committed(struct change *c, const char *how)
{
	json_t *rec = outcome_record(c, "committed");

	json_object_set_new(rec, "operator", json_string(c->decided_by));
	if (how != NULL)
		json_object_set_new(rec, "how", json_string(how));
	(void)gate_record(c->gate, rec, true);
	log_info("%s: committed", c->id);
	change_enter(c, CHANGE_COMMITTED);
}

static void
failed(struct change *c, const char *why)
{
	json_t *rec = outcome_record(c, "failed");

	json_object_set_new(rec, "reason", json_string(why));
	(void)gate_record(c->gate, rec, true);
	free(c->reason);
	c->reason = mem_strdup(why);
	log_info("%s: COMMIT failed: %s", c->id, why);
	change_enter(c, CHANGE_FAILED);
}

static void
doubt(struct change *c, const char *why)
{
	json_t *rec = outcome_record(c, "in_doubt");

	json_object_set_new(rec, "reason", json_string(why));
	(void)gate_record(c->gate, rec, true);
	log_warnx("%s: the answer to COMMIT was lost: %s", c->id, why);
	change_enter(c, CHANGE_IN_DOUBT);
	decide_resolve_soon(c->gate);
}

static void
commit_answered(void *arg, struct link *l, struct batch *b)
{
	struct decision *d = arg;
	struct change *c = d->change;
	const PGresult *res = batch_result(b, 0);
	const char *tag;
	char text[400];

	if (batch_is_lost(b)) {
		c->link = NULL;
		if (l != NULL)
			pool_drop(c->login->pool, l);
		doubt(c, batch_err(b)->text);
		finish(d, false, "IN_DOUBT",
		    "the answer to COMMIT was lost; it is being asked for: see "
		    "airlock show");
		return;
	}
	tag = batch_state(b, 0) == BATCH_OK
	          ? PQcmdStatus((PGresult *)(uintptr_t)res)
	          : "";
	if (strcmp(tag, "COMMIT") == 0) {
		const char *how =
		    strstr(link_warning(l), "synchronous replication") != NULL
			? "committed locally: the synchronous standby did not "
			  "confirm"
			: NULL;

		change_give_back(c, l);
		committed(c, how);
		finish(d, true, NULL, NULL);
		return;
	}
	if (batch_state(b, 0) == BATCH_FAILED)
		snprintf(text, sizeof(text), "%s: %.300s", result_sqlstate(res),
		    result_message(res));
	else
		snprintf(text, sizeof(text),
		    "the transaction had failed before: the server answered "
		    "COMMIT with %.20s",
		    tag);
	failed(c, text);
	finish(d, false, "FAILED", text);
}

static bool
write_intent(struct decision *d)
{
	struct change *c = d->change;
	const struct session_facts *f = pool_facts(c->login->pool);
	json_t *rec = outcome_record(c, "intent");

	json_object_set_new(rec, "operator", json_string(d->by));
	json_object_set_new(rec, "uid", json_integer((json_int_t)d->uid));
	snprintf(c->system, sizeof(c->system), "%s", f->system);
	snprintf(c->timeline, sizeof(c->timeline), "%s", f->timeline);
	json_object_set_new(rec, "system", json_string(f->system));
	json_object_set_new(rec, "timeline", json_string(f->timeline));
	json_object_set_new(rec, "started", json_string(f->started));
	return gate_record(c->gate, rec, true);
}

static void
send_commit(struct decision *d)
{
	struct change *c = d->change;
	struct batch *b;

	if (c->link == NULL) {
		struct err e = ERR_INIT;

		err_set(&e, ERR_DATABASE, "the link was lost");
		lost(d, NULL, &e);
		return;
	}
	if (!write_intent(d)) {
		stay(d, "UNAVAILABLE",
		    "the intent could not be written to the journal, so nothing "
		    "was committed; the change is still held");
		return;
	}
	free(c->decided_by);
	c->decided_by = mem_strdup(d->by);
	d->sent = true;
	limit_waiting(c);
	b = batch_new();
	batch_add(b, "COMMIT", 0, NULL);
	link_run(c->link, b, commit_answered, d);
}

/* --- the beacon --- */

static void
flushed(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct decision *d = arg;
	size_t last = 5; /* begin, local, emit, commit, sync, the question */
	const char *yes;

	if (batch_is_lost(b) || !batch_is_ok(b)) {
		stay(d, "UNAVAILABLE",
		    "the server could not be asked to make the transaction's "
		    "id safe, so nothing was committed; the change is still "
		    "held");
		return;
	}
	yes = batch_cell(b, last, 0, 0);
	if (yes != NULL && yes[0] == 't')
		send_commit(d);
	else
		stay(d, "UNAVAILABLE",
		    "the server's WAL is not flushed up to the change, so "
		    "nothing was committed; the change is still held");
}

/* A message in WAL, committed by another session, flushes everything before
 * it. */
static void
light_beacon(struct decision *d)
{
	struct change *c = d->change;
	struct batch *b = batch_new();
	const char *values[] = { c->id };
	const char *lsn[] = { c->insert_lsn };

	batch_add(b, "BEGIN", 0, NULL);
	batch_add(b, "SET LOCAL synchronous_commit = local", 0, NULL);
	batch_add(b,
	    "SELECT pg_catalog.pg_logical_emit_message(true, 'airlock', "
	    "$1::pg_catalog.text)",
	    1, values);
	batch_add(b, "COMMIT", 0, NULL);
	batch_sync(b);
	batch_add(b,
	    "SELECT $1::pg_catalog.pg_lsn <= "
	    "pg_catalog.pg_current_wal_flush_lsn()",
	    1, lsn);
	pool_ask(c->login->pool, b, flushed, d);
}

static void
flush_known(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct decision *d = arg;
	const char *yes =
	    batch_is_lost(b) || !batch_is_ok(b) ? NULL : batch_cell(b, 0, 0, 0);

	if (yes != NULL && yes[0] == 't')
		send_commit(d);
	else
		light_beacon(d);
}

static void
check_flush(struct decision *d)
{
	struct change *c = d->change;
	struct batch *b = batch_new();
	const char *lsn[] = { c->insert_lsn };

	batch_add(b,
	    "SELECT $1::pg_catalog.pg_lsn <= "
	    "pg_catalog.pg_current_wal_flush_lsn()",
	    1, lsn);
	pool_ask(c->login->pool, b, flush_known, d);
}

/* --- the recheck --- */

/* What still waits is run first, so that the counters show it; COMMIT finds
 * nothing more to run. */
enum { RECHECK_LATE, RECHECK_COUNTS, RECHECK_XID, RECHECK_VOUCH };

/* What COMMIT would have said. */
static void
refused_late(struct decision *d, const PGresult *res)
{
	struct change *c = d->change;
	char text[400];

	snprintf(text, sizeof(text), "%s: %.300s", result_sqlstate(res),
	    result_message(res));
	free(c->decided_by);
	c->decided_by = mem_strdup(d->by);
	failed(c, text);
	finish(d, false, "FAILED", text);
}

static void
rechecked(void *arg, struct link *l, struct batch *b)
{
	struct decision *d = arg;
	struct change *c = d->change;
	struct counts now = { 0 };
	struct err e = ERR_INIT;
	const char *xid;
	bool same;

	if (batch_is_lost(b)) {
		lost(d, l, batch_err(b));
		return;
	}
	if (batch_failed(b) == RECHECK_LATE) {
		refused_late(d, batch_result(b, RECHECK_LATE));
		return;
	}
	xid = batch_is_ok(b) ? batch_cell(b, RECHECK_XID, 0, 0) : NULL;
	if (batch_is_ok(b) && !session_vouched(b, RECHECK_VOUCH)) {
		ended(d, WHY_REFUSED,
		    "a function replaced what Airlock had prepared, or left "
		    "a cursor that COMMIT would run, so that the diff cannot "
		    "be relied on");
		return;
	}
	same =
	    batch_is_ok(b) && counts_read(b, RECHECK_COUNTS, &now, &e) == 0 &&
	    counts_equal(&c->counts, &now) && xid != NULL &&
	    strcmp(xid, c->xid8) == 0 && link_transaction(l) == PQTRANS_INTRANS;
	counts_release(&now);
	if (same) {
		check_flush(d);
		return;
	}
	ended(d, WHY_REFUSED,
	    "the transaction is not the one that was reviewed");
}

void
decide_commit(struct change *c, const struct operator_peer *who,
    outcome_done *done, void *arg)
{
	struct decision *d = mem_new(sizeof(*d));
	struct batch *b = batch_new();

	d->change = c;
	d->by = mem_strdup(who->name);
	d->uid = who->uid;
	d->done = done;
	d->arg = arg;
	c->decision = d;
	change_enter(c, CHANGE_COMMITTING);
	limit_waiting(c);
	batch_add(b, "SET CONSTRAINTS ALL IMMEDIATE", 0, NULL);
	(void)counts_ask(b, c);
	batch_add(b,
	    "SELECT pg_catalog.pg_current_xact_id_if_assigned()"
	    "::pg_catalog.text",
	    0, NULL);
	(void)session_vouch(b);
	/* What ran just now may have turned it off. */
	batch_add(b, "SET LOCAL synchronous_commit = on", 0, NULL);
	link_run(c->link, b, rechecked, d);
}

/* --- out of doubt --- */

/*
 * pg_xact_status answers for the server that the transaction ran on and no
 * other: system identifier and timeline must still be those of the intent.
 */
struct doubt {
	struct gate *gate;
	char id[CHANGE_ID_SIZE];
};

static struct change *
doubted(struct gate *g, const char *id)
{
	struct change *c = gate_change(g, id);

	return c != NULL && c->state == CHANGE_IN_DOUBT ? c : NULL;
}

/* Of an earlier run: the journal alone is told. */
static void
settle_earlier(struct gate *g, const char *id, const char *kind,
    const char *how)
{
	size_t i;
	json_t *intent;

	json_array_foreach (g->in_doubt, i, intent) {
		json_t *rec;

		if (strcmp(json_string_value(json_object_get(intent, "change")),
			id) != 0)
			continue;
		rec = json_pack("{s:s, s:s, s:O, s:O, s:s}", "kind", kind,
		    "change", id, "agent", json_object_get(intent, "agent"),
		    "xid", json_object_get(intent, "xid"), "how", how);
		if (strcmp(kind, "rolled_back") == 0)
			json_object_set_new(rec, "why", json_string(WHY_LOST));
		else
			json_object_set(rec, "operator",
			    json_object_get(intent, "operator"));
		recover_note_end(g, rec);
		if (gate_record(g, rec, true))
			json_array_remove(g->in_doubt, i);
		log_info("%s: resolved after a restart: %s", id, kind);
		return;
	}
}

static void
settle(struct gate *g, const char *id, const char *status)
{
	struct change *c = doubted(g, id);
	bool yes = strcmp(status, "committed") == 0;
	json_t *rec;

	if (c == NULL) {
		settle_earlier(g, id, yes ? "committed" : "rolled_back",
		    "pg_xact_status");
		return;
	}
	if (yes) {
		committed(c, "pg_xact_status");
		return;
	}
	rec = outcome_record(c, "rolled_back");
	json_object_set_new(rec, "why", json_string(WHY_LOST));
	json_object_set_new(rec, "how", json_string("pg_xact_status"));
	(void)gate_record(g, rec, true);
	c->why = WHY_LOST;
	log_info("%s: rolled back (%s)", c->id, c->why);
	change_enter(c, CHANGE_ROLLED_BACK);
}

static void
status_known(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct doubt *d = arg;
	const char *status = NULL, *state;

	d->gate->doubt = NULL;
	if (!batch_is_lost(b) && batch_state(b, 0) == BATCH_OK)
		status = batch_cell(b, 0, 0, 0);
	state = batch_is_lost(b) ? "" : result_sqlstate(batch_result(b, 0));
	if (status != NULL && strcmp(status, "in progress") != 0)
		settle(d->gate, d->id, status);
	else if (strcmp(state, "22023") == 0)
		settle(d->gate, d->id, "aborted"); /* the id was never used */
	decide_resolve_soon(d->gate);
	free(d);
}

static bool
same_server(const struct pool *p, const char *system, const char *timeline)
{
	const struct session_facts *f = pool_facts(p);

	return strcmp(f->system, system) == 0 &&
	       strcmp(f->timeline, timeline) == 0;
}

static void
ask_status(struct gate *g, struct pool *p, const char *id, const char *xid)
{
	struct doubt *d = mem_new(sizeof(*d));
	struct batch *b = batch_new();
	const char *values[] = { xid };

	d->gate = g;
	snprintf(d->id, sizeof(d->id), "%s", id);
	g->doubt = d;
	batch_add(b, "SELECT pg_catalog.pg_xact_status($1::pg_catalog.xid8)", 1,
	    values);
	pool_ask(p, b, status_known, d);
}

static const char *
member(const json_t *o, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));

	return s != NULL ? s : "";
}

/* One question at a time; the next look is armed by its answer. */
static void
resolve(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct gate *g = arg;
	struct change *c;
	size_t i;
	json_t *intent;

	if (g->doubt != NULL)
		return;
	TAILQ_FOREACH (c, &g->changes, next)
		if (c->state == CHANGE_IN_DOUBT && pool_is_up(c->login->pool) &&
		    same_server(c->login->pool, c->system, c->timeline)) {
			ask_status(g, c->login->pool, c->id, c->xid8);
			return;
		}
	json_array_foreach (g->in_doubt, i, intent) {
		struct pool *p = g->logins[0]->pool;

		if (!pool_is_up(p) || !same_server(p, member(intent, "system"),
					  member(intent, "timeline")))
			continue;
		ask_status(g, p, member(intent, "change"),
		    member(intent, "xid"));
		return;
	}
}

void
decide_resolve_soon(struct gate *g)
{
	static const struct timeval tv = { 0, RESOLVE_MS * 1000 };
	const struct change *c;
	bool any = json_array_size(g->in_doubt) > 0;

	TAILQ_FOREACH (c, &g->changes, next)
		any = any || c->state == CHANGE_IN_DOUBT;
	if (g->resolve == NULL)
		g->resolve = evtimer_new(g->base, resolve, g);
	if (any && g->doubt == NULL)
		evtimer_add(g->resolve, &tv);
}
