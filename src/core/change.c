/* change: one held transaction from proposal to its end */
#include "core/change.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "core/internal.h"

#define ENDED_MAX 1000 /* ended changes that this run knows all of */
#define ENDING_MS 5000 /* for the server's answer to ROLLBACK */

/* ADDING, COMMITTING and ENDING are moments of a held change. */
const char *const change_status[CHANGE_NSTATES] = {
	[CHANGE_RUNNING] = "running",
	[CHANGE_HELD] = "pending",
	[CHANGE_ADDING] = "pending",
	[CHANGE_COMMITTING] = "pending",
	[CHANGE_ENDING] = "pending",
	[CHANGE_COMMITTED] = "committed",
	[CHANGE_ROLLED_BACK] = "rolled_back",
	[CHANGE_IN_DOUBT] = "in_doubt",
	[CHANGE_FAILED] = "failed",
};

/* --- making and finding --- */

static void
new_id(struct gate *g, char id[CHANGE_ID_SIZE])
{
	unsigned char r[5];
	char hex[11];
	const char *agent;
	json_t *ended;

	do {
		mem_random(r, sizeof(r));
		text_hex(hex, r, sizeof(r));
		snprintf(id, CHANGE_ID_SIZE, "chg_%s", hex);
		ended = gate_ended(g, id, &agent);
		json_decref(ended);
	} while (gate_change(g, id) != NULL || ended != NULL);
}

static void
expire(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct change *c = arg;

	if (c->state == CHANGE_HELD || c->state == CHANGE_ADDING)
		change_end(c, WHY_EXPIRED, NULL, NULL);
	else if (c->state == CHANGE_ENDING) /* closing its link ends it too */
		change_enter(c, CHANGE_ROLLED_BACK);
	else if (c->state == CHANGE_COMMITTING && c->link != NULL)
		link_fail(c->link, "the server did not answer in time");
}

struct change *
change_new(struct gate *g, struct agent *a, const char *intent)
{
	struct change *c = mem_new(sizeof(*c));

	c->gate = g;
	c->agent = a;
	c->intent = intent != NULL ? mem_strdup(intent) : NULL;
	c->statements = json_array();
	c->effects = json_array();
	c->complete = true;
	c->created_wall = clock_wall_ms();
	c->login = ((struct agent_logins *)a->links)->writer;
	c->expiry = evtimer_new(g->base, expire, c);
	TAILQ_INIT(&c->watchers);
	new_id(g, c->id);
	gate_add_change(g, c);
	return c;
}

void
change_add_path(const struct change *c, struct batch *b)
{
	const char *values[] = { c->path };

	batch_add(b,
	    "SELECT pg_catalog.set_config('lock_timeout', '500ms', true), "
	    "pg_catalog.set_config('search_path', $1, true)",
	    1, values);
}

static void
release_work(struct change *c, bool remove_files)
{
	if (c->link != NULL)
		pool_drop(c->login->pool, c->link);
	c->link = NULL;
	store_close(c->store, remove_files);
	c->store = NULL;
	marks_release(&c->marks);
	event_del(c->expiry);
}

void
change_free(struct change *c)
{
	gate_remove_change(c->gate, c);
	release_work(c, true);
	event_free(c->expiry);
	for (size_t i = 0; i < c->ntables; i++) {
		free(c->tables[i].name);
		json_decref(c->tables[i].by);
		json_decref(c->tables[i].filled);
		json_decref(c->tables[i].given);
	}
	free(c->tables);
	counts_release(&c->counts);
	json_decref(c->statements);
	json_decref(c->effects);
	free(c->path);
	free(c->intent);
	free(c->reason);
	free(c->decided_by);
	free(c);
}

struct change *
change_find(struct gate *g, const char *id, const char *agent)
{
	struct change *c = gate_change(g, id);

	if (c == NULL || c->state == CHANGE_RUNNING ||
	    (agent != NULL && strcmp(c->agent->o->name, agent) != 0))
		return NULL;
	return c;
}

size_t
change_pending(const struct gate *g, const struct agent *a)
{
	const struct change *c;
	size_t n = 0;

	TAILQ_FOREACH (c, &g->changes, next)
		n += a == NULL || c->agent == a;
	return n;
}

struct change_table *
change_find_table(const struct change *c, const char *name)
{
	for (size_t i = 0; i < c->ntables; i++)
		if (strcmp(c->tables[i].name, name) == 0)
			return &c->tables[i];
	return NULL;
}

bool
change_has_ended(const struct change *c)
{
	return c->state >= CHANGE_COMMITTED && c->state != CHANGE_IN_DOUBT;
}

bool
change_is_pending(const struct change *c)
{
	return c->state == CHANGE_HELD || c->state == CHANGE_ADDING ||
	       c->state == CHANGE_COMMITTING;
}

struct store *
change_store(struct change *c)
{
	return c->store;
}

/* --- states --- */

static void
watcher_free(struct watcher *w)
{
	if (w->change != NULL)
		TAILQ_REMOVE(&w->change->watchers, w, next);
	event_free(w->timer);
	free(w);
}

static void
tell_watchers(struct change *c)
{
	struct watcher *w;

	while ((w = TAILQ_FIRST(&c->watchers)) != NULL) {
		outcome_done *done = w->done;
		void *arg = w->arg;
		json_t *json =
		    w->is_operator ? change_header(c) : change_result(c, false);

		watcher_free(w);
		change_told(done, arg, true, NULL, NULL, json);
	}
}

/* Of the oldest ended change beyond so many, only its end is kept.  The one
 * that ends now is still in its caller's hands. */
static void
forget_oldest(struct gate *g, const struct change *now)
{
	struct change *c = TAILQ_FIRST(&g->over);
	json_t *rec;

	if (g->nover <= ENDED_MAX || c == now)
		return;
	rec = change_record(c, change_status[c->state]);
	if (c->why != NULL)
		json_object_set_new(rec, "why", json_string(c->why));
	if (c->reason != NULL)
		json_object_set_new(rec, "reason", json_string(c->reason));
	recover_note_end(g, rec);
	json_decref(rec);
	change_free(c);
}

void
change_enter(struct change *c, enum change_state state)
{
	log_debug("%s: %s -> %s", c->id, change_status[c->state],
	    change_status[state]);
	c->state = state;
	if (!change_has_ended(c))
		return;
	release_work(c, true);
	gate_put_over(c->gate, c);
	tell_watchers(c);
	if (c->gate->stopping)
		event_active(c->gate->stop_event, EV_TIMEOUT, 0);
	forget_oldest(c->gate, c);
}

void
change_hold(struct change *c)
{
	int64_t left;

	if (c->expires_boot == 0) {
		c->expires_boot = clock_boot_ms() + c->gate->o->limits.ttl_ms;
		c->expires_wall = clock_wall_ms() + c->gate->o->limits.ttl_ms;
	}
	left = c->expires_boot - clock_boot_ms();
	change_deadline(c, left > 0 ? left : 0);
	change_enter(c, CHANGE_HELD);
}

void
change_deadline(struct change *c, int64_t ms)
{
	struct timeval tv = { ms / 1000, (ms % 1000) * 1000 };

	evtimer_add(c->expiry, &tv);
}

/* --- endings --- */

json_t *
change_record(const struct change *c, const char *kind)
{
	return json_pack("{s:s, s:s, s:s}", "kind", kind, "change", c->id,
	    "agent", c->agent->o->name);
}

void
change_give_back(struct change *c, struct link *l)
{
	c->link = NULL;
	if (c->leaves_setting)
		pool_drop(c->login->pool, l);
	else
		pool_put(c->login->pool, l);
}

static void
rolled_back(void *arg, struct link *l, struct batch *b)
{
	struct change *c = arg;

	if (!batch_is_lost(b) && batch_is_ok(b))
		change_give_back(c, l);
	change_enter(c, CHANGE_ROLLED_BACK);
}

static void
record_end(struct change *c, const char *why, const char *reason,
    const char *by)
{
	json_t *rec = change_record(c, "rolled_back");

	json_object_set_new(rec, "why", json_string(why));
	if (reason != NULL)
		json_object_set_new(rec, "reason", json_string(reason));
	if (by != NULL)
		json_object_set_new(rec, "operator", json_string(by));
	json_object_set_new(rec, "digest", json_string(c->digest));
	/* A rollback is done whether or not it can be written down. */
	(void)gate_record(c->gate, rec, true);
}

/*
 * ROLLBACK for a link that is idle; a link in the middle of a statement is
 * closed, and the server rolls back by itself: it is told to stop, as it looks
 * for its client only now and then.
 */
void
change_end(struct change *c, const char *why, const char *reason,
    const char *by)
{
	struct batch *b;

	event_del(c->expiry);
	record_end(c, why, reason, by);
	c->why = why;
	free(c->reason);
	c->reason = reason != NULL ? mem_strdup(reason) : NULL;
	free(c->decided_by);
	c->decided_by = by != NULL ? mem_strdup(by) : NULL;
	log_info("%s: rolled back (%s)", c->id, why);
	if (c->run != NULL)
		run_abort(c->run);
	if (c->reader != NULL)
		query_abort(c->reader);
	if (c->link == NULL || !link_is_idle(c->link)) {
		if (c->link != NULL)
			pool_stop(c->login->pool, c->link);
		change_enter(c, CHANGE_ROLLED_BACK);
		return;
	}
	change_enter(c, CHANGE_ENDING);
	change_deadline(c, ENDING_MS);
	b = batch_new();
	batch_add(b, "ROLLBACK", 0, NULL);
	link_run(c->link, b, rolled_back, c);
}

void
change_lost(void *arg, const struct err *e)
{
	struct change *c = arg;

	c->link = NULL;
	/* A batch under way would have been told, and dropped the link; what
	 * adds or reads is elsewhere now, and ends with the change.  Whoever
	 * decides it looks at the link before each step. */
	if (c->state != CHANGE_HELD && c->state != CHANGE_ADDING)
		return;
	log_warnx("%s: its link was lost: %s", c->id, e->text);
	change_end(c, WHY_LOST, e->text, NULL);
}

/* --- the operator's rollback and the agent's withdrawal --- */

void
change_told(outcome_done *done, void *arg, bool ok, const char *code,
    const char *text, json_t *json)
{
	struct outcome o = { .ok = ok,
		.code = code,
		.text = text,
		.json = json };

	done(arg, &o);
	json_decref(json);
}

static void
told_ended(struct change *c, outcome_done *done, void *arg)
{
	char text[160];

	if (change_has_ended(c))
		snprintf(text, sizeof(text), "%s is %s already%s%s", c->id,
		    change_status[c->state], c->why != NULL ? ": " : "",
		    c->why != NULL ? c->why : "");
	else
		snprintf(text, sizeof(text),
		    "%s is being decided: somebody else's answer is on its way",
		    c->id);
	change_told(done, arg, false, "ALREADY_DECIDED", text,
	    change_header(c));
}

/* Not known, of an earlier run, or not to be decided now; NULL is said then. */
static struct change *
decidable(struct gate *g, const char *id, outcome_done *done, void *arg)
{
	struct change *c = change_find(g, id, NULL);
	const char *agent;
	json_t *ended;
	char text[160];

	if (c != NULL && (c->state == CHANGE_HELD || c->state == CHANGE_ADDING))
		return c;
	if (c != NULL) {
		told_ended(c, done, arg);
		return NULL;
	}
	ended = gate_ended(g, id, &agent);
	if (ended != NULL) {
		snprintf(text, sizeof(text), "%s is %s already", id,
		    json_string_value(json_object_get(ended, "status")));
		change_told(done, arg, false, "ALREADY_DECIDED", text, ended);
		return NULL;
	}
	snprintf(text, sizeof(text), "there is no change %s", id);
	change_told(done, arg, false, "NOT_FOUND", text, NULL);
	return NULL;
}

static void
watch_over(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct watcher *w = arg;
	struct change *c = w->change;
	outcome_done *done = w->done;
	void *done_arg = w->arg;

	watcher_free(w);
	change_told(done, done_arg, true, NULL, NULL, change_result(c, false));
}

static void
watch_cancel(struct call *c)
{
	watcher_free(
	    (struct watcher *)(void *)((char *)c -
				       offsetof(struct watcher, call)));
}

/* The answer to whoever asked for an end comes when it has come. */
struct watcher *
change_watch(struct change *c, outcome_done *done, void *arg)
{
	struct watcher *w = mem_new(sizeof(*w));

	w->call.cancel = watch_cancel;
	w->change = c;
	w->done = done;
	w->arg = arg;
	w->timer = evtimer_new(c->gate->base, watch_over, w);
	TAILQ_INSERT_TAIL(&c->watchers, w, next);
	return w;
}

void
change_rollback(struct gate *g, const char *id, const char *reason,
    const struct operator_peer *who, outcome_done *done, void *arg)
{
	struct change *c = decidable(g, id, done, arg);

	if (c == NULL)
		return;
	change_watch(c, done, arg)->is_operator = true;
	change_end(c, WHY_OPERATOR, reason, who->name);
}

void
change_commit(struct gate *g, const char *id, const char *digest,
    const struct operator_peer *who, outcome_done *done, void *arg)
{
	struct change *c = decidable(g, id, done, arg);

	if (c == NULL)
		return;
	if (c->state == CHANGE_ADDING) {
		change_told(done, arg, false, "BUSY",
		    "a statement is being added to the change; its diff will "
		    "differ: look at it again",
		    change_header(c));
		return;
	}
	if (strcmp(digest, c->digest) != 0) {
		marks_tell(c, digest, done, arg);
		return;
	}
	decide_commit(c, who, done, arg);
}
