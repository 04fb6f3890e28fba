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
	json_t *held;    /* id -> the record, with all its statements */
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

/* What is known of a change is what its last record says, but for statements,
 * of which each record has one. */
static void
note_held(struct walk *w, const char *id, const json_t *rec, bool added)
{
	json_t *was = added ? json_object_get(w->held, id) : NULL;
	json_t *now = json_copy((json_t *)(uintptr_t)rec);
	json_t *list = json_object_get(was, "statements");

	list = list != NULL ? json_incref(list) : json_array();
	json_array_append(list, json_object_get(now, "statement"));
	json_object_set_new(now, "statements", list);
	if (was != NULL)
		json_object_set(now, "at", json_object_get(was, "at"));
	json_object_set_new(w->held, id, now);
}

static bool
each(void *arg, const json_t *rec, const char *line UNUSED, size_t len UNUSED)
{
	struct walk *w = arg;
	const char *kind = text_of(rec, "kind"), *id = text_of(rec, "change");

	if (kind == NULL || id == NULL)
		return true;
	if (strcmp(kind, "held") == 0 || strcmp(kind, "added") == 0)
		note_held(w, id, rec, *kind == 'a');
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
end_held(struct gate *g, const char *id, json_t *held)
{
	json_t *rec = json_pack("{s:s, s:s, s:O, s:s, s:s}", "kind",
	    "rolled_back", "change", id, "agent",
	    json_object_get(held, "agent"), "why", WHY_LOST, "reason",
	    "the daemon ended while the change was held");

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

/* What the operator is shown of it: the members of change_header, as far as
 * the journal has them. */
static json_t *
doubt_header(const struct gate *g, const char *id, const json_t *held)
{
	static const struct {
		const char *name, *from;
	} members[] = {
		{ "agent", "agent" },
		{ "intent", "intent" },
		{ "risk", "risk" },
		{ "reasons", "reasons" },
		{ "statements", "statements" },
		{ "tables", "tables" },
		{ "complete", "complete" },
		{ "digest", "digest" },
		{ "replay_digest", "replay_digest" },
		{ "created_at", "at" },
	};
	json_t *j = json_pack("{s:s, s:s, s:s, s:n}", "id", id, "database",
	    g->o->database.name, "status", "in_doubt", "expires_at");
	const char *digest = text_of(held, "digest");

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		json_t *v = json_object_get(held, members[i].from);

		json_object_set_new(j, members[i].name,
		    v != NULL ? json_incref(v) : json_null());
	}
	if (digest != NULL)
		json_object_set_new(j, "token",
		    json_sprintf("%s@%s", id, digest));
	return j;
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
			json_object_set_new(v, "header",
			    doubt_header(g, id, json_object_get(w.held, id)));
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
