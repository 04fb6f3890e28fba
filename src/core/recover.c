/* recover: what the journal says of changes whose end it does not tell */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/internal.h"

#define ENDED_MAX 10000 /* older ends are in the journal alone */

/*
 * held      an open transaction; without an end the server has rolled it back
 *           when its client died
 * intent    COMMIT may have been sent; the server knows (core/decide.c)
 */
struct walk {
	struct gate *gate;
	json_t *held;    /* id -> agent */
	json_t *intents; /* id -> the record */
};

static const char *
text_of(const json_t *rec, const char *name)
{
	return json_string_value(json_object_get(rec, name));
}

static const char *
message_of(const char *status)
{
	if (strcmp(status, "committed") == 0)
		return "Applied: the server confirmed the COMMIT.";
	if (strcmp(status, "in_doubt") == 0)
		return "Not known yet: the answer to COMMIT was lost and is "
		       "being asked for. Do not send the change again.";
	return "NOT applied. Drop whatever you believed because of it.";
}

/* The view that db_status gives of it. */
void
recover_note_end(struct gate *g, const json_t *rec)
{
	const char *id = text_of(rec, "change"), *kind = text_of(rec, "kind");
	json_t *j;

	if (id == NULL || kind == NULL)
		return;
	j = json_pack("{s:s, s:s}", "change_id", id, "status", kind);
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = { "why", "reason", "agent" };
		json_t *v = json_object_get(rec, names[i]);

		if (v != NULL)
			json_object_set(j, names[i], v);
	}
	json_object_set_new(j, "message", json_string(message_of(kind)));
	json_object_set_new(g->ended, id, j);
	if (json_object_size(g->ended) > ENDED_MAX)
		json_object_del(g->ended,
		    json_object_iter_key(json_object_iter(g->ended)));
}

static bool
each(void *arg, const json_t *rec, const char *line UNUSED, size_t len UNUSED)
{
	struct walk *w = arg;
	const char *kind = text_of(rec, "kind"), *id = text_of(rec, "change");

	if (kind == NULL || id == NULL)
		return true;
	if (strcmp(kind, "held") == 0)
		json_object_set(w->held, id, json_object_get(rec, "agent"));
	else if (strcmp(kind, "intent") == 0)
		json_object_set(w->intents, id, (json_t *)(uintptr_t)rec);
	else if (strcmp(kind, "committed") == 0 ||
		 strcmp(kind, "failed") == 0 ||
		 strcmp(kind, "rolled_back") == 0) {
		json_object_del(w->held, id);
		json_object_del(w->intents, id);
		recover_note_end(w->gate, rec);
	}
	return true;
}

/* The daemon died with it: the server rolled it back when the link closed. */
static bool
end_held(struct gate *g, const char *id, json_t *agent)
{
	json_t *rec = json_pack("{s:s, s:s, s:O, s:s, s:s}", "kind",
	    "rolled_back", "change", id, "agent", agent, "why", WHY_LOST,
	    "reason", "the daemon ended while the change was held");

	if (rec == NULL)
		return true;
	recover_note_end(g, rec);
	return gate_record(g, rec, true);
}

/* Until the server has been asked, this is the answer to whoever asks us. */
static void
note_doubt(struct gate *g, const json_t *intent)
{
	json_t *rec = json_pack("{s:s, s:O, s:O}", "kind", "in_doubt", "change",
	    json_object_get(intent, "change"), "agent",
	    json_object_get(intent, "agent"));

	recover_note_end(g, rec);
	json_decref(rec);
}

int
recover(struct gate *g, struct err *e)
{
	struct walk w = { g, json_object(), json_object() };
	const char *id;
	json_t *v;
	int rc;

	rc = journal_walk(g->o->state_fd, false, each, &w, e);
	if (rc == 0) {
		json_object_foreach (w.intents, id, v) {
			json_object_del(w.held, id);
			json_array_append(g->in_doubt, v);
			note_doubt(g, v);
			log_warnx("%s: COMMIT may have been sent before the "
				  "restart; the server is asked",
			    id);
		}
		json_object_foreach (w.held, id, v)
			if (!end_held(g, id, v))
				rc = err_set(e, ERR_SYSTEM,
				    "cannot write to the journal");
	}
	json_decref(w.held);
	json_decref(w.intents);
	return rc;
}
