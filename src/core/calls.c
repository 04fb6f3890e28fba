/* calls: what an agent asks of its changes, answered from the loop */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/internal.h"

#define ENDED_LISTED 20

/* Answers from the loop, since an answer never comes from inside the call. */
struct later {
	struct call call;
	struct event *event;
	outcome_done *done;
	void *arg;
	bool ok;
	char code[24];
	char *text;
	json_t *json;
};

static void
later_free(struct later *l)
{
	event_free(l->event);
	free(l->text);
	json_decref(l->json);
	free(l);
}

static void
later_cancel(struct call *c)
{
	later_free(
	    (struct later *)(void *)((char *)c - offsetof(struct later, call)));
}

static void
later_tell(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct later *l = arg;

	change_told(l->done, l->arg, l->ok, l->ok ? NULL : l->code, l->text,
	    json_incref(l->json));
	later_free(l);
}

static struct call *
answer_later(struct gate *g, outcome_done *done, void *arg, bool ok,
    struct reply *reply, json_t *json)
{
	static const struct timeval now = { 0, 0 };
	struct later *l = mem_new(sizeof(*l));

	l->call.cancel = later_cancel;
	l->done = done;
	l->arg = arg;
	l->ok = ok;
	l->json = json;
	if (reply != NULL) {
		snprintf(l->code, sizeof(l->code), "%s", reply->code);
		l->text = text_take(&reply->text);
	}
	l->event = evtimer_new(g->base, later_tell, l);
	evtimer_add(l->event, &now);
	return &l->call;
}

static struct call *
refuse_later(struct gate *g, outcome_done *done, void *arg, enum reason r,
    const char *id)
{
	struct reply reply = { 0 };

	reply_reason(&reply, r, "%s ('%.40s')", reasons[r].meaning, id);
	return answer_later(g, done, arg, false, &reply, NULL);
}

/* Those in doubt since an earlier run. */
static void
list_doubted(struct gate *g, const struct agent *a, json_t *list)
{
	json_t *intent;
	size_t i;

	json_array_foreach (g->in_doubt, i, intent) {
		const char *id = json_string_value(
			       json_object_get(intent, "change")),
			   *agent;
		json_t *j = id != NULL ? gate_ended(g, id, &agent) : NULL;

		if (j != NULL && strcmp(agent, a->o->name) == 0)
			json_array_append(list, j);
		json_decref(j);
	}
}

/* All that are not decided, and the last ones that are: what an agent reads
 * costs it tokens. */
static json_t *
all_of(struct gate *g, const struct agent *a)
{
	json_t *list = json_array(), *j;
	struct change *c;
	size_t ended = 0, left_out, skip;

	TAILQ_FOREACH (c, &g->over, next)
		ended += c->agent == a;
	left_out = ended > ENDED_LISTED ? ended - ENDED_LISTED : 0;
	skip = left_out;
	list_doubted(g, a, list);
	TAILQ_FOREACH (c, &g->changes, next)
		if (c->agent == a && c->state != CHANGE_RUNNING)
			json_array_append_new(list, change_result(c, false));
	TAILQ_FOREACH (c, &g->over, next)
		if (c->agent == a && (skip == 0 || skip-- == 0))
			json_array_append_new(list, change_result(c, false));
	j = json_pack("{s:o, s:o, s:s}", "changes", list, "database",
	    gate_health(g), "access", access_name[a->o->access]);
	if (left_out > 0)
		json_object_set_new(j, "older_ended",
		    json_integer((json_int_t)left_out));
	return j;
}

struct call *
change_status_call(struct gate *g, struct agent *a, const char *change_id,
    long wait_ms, outcome_done *done, void *arg)
{
	struct change *c;
	struct watcher *w;
	const char *agent;
	json_t *ended;
	struct timeval tv = { wait_ms / 1000, (wait_ms % 1000) * 1000 };

	if (change_id == NULL)
		return answer_later(g, done, arg, true, NULL, all_of(g, a));
	c = change_find(g, change_id, a->o->name);
	if (c == NULL) {
		ended = gate_ended(g, change_id, &agent);
		if (ended != NULL && strcmp(agent, a->o->name) == 0)
			return answer_later(g, done, arg, true, NULL, ended);
		json_decref(ended);
		return refuse_later(g, done, arg, REASON_CHANGE_UNKNOWN,
		    change_id);
	}
	if (wait_ms <= 0 || change_has_ended(c))
		return answer_later(g, done, arg, true, NULL,
		    change_result(c, false));
	w = change_watch(c, done, arg);
	evtimer_add(w->timer, &tv);
	return &w->call;
}

struct call *
change_withdraw(struct gate *g, struct agent *a, const char *change_id,
    const char *reason, outcome_done *done, void *arg)
{
	struct change *c = change_find(g, change_id, a->o->name);
	struct watcher *w;

	if (c == NULL)
		return refuse_later(g, done, arg, REASON_CHANGE_UNKNOWN,
		    change_id);
	if (c->state != CHANGE_HELD)
		return refuse_later(g, done, arg,
		    change_has_ended(c) ? REASON_CHANGE_NOT_PENDING
					: REASON_CHANGE_BUSY,
		    change_id);
	w = change_watch(c, done, arg);
	change_end(c, WHY_WITHDRAWN, reason, NULL);
	return &w->call;
}

void
call_cancel(struct call *c)
{
	c->cancel(c);
}
