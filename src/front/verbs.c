/* verbs: what airlockd answers to each verb of the control channel */
#include "front/verbs.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/version.h"
#include "core/change.h"
#include "front/stream.h"

/* One of the two is set. */
struct verb {
	struct stream *stream;
	struct lines *out; /* a decision's; NULL: nobody listens any more */
	verb_done *done;
	void *arg;
	struct operator_peer who; /* name owned */
	bool inside, ended;       /* still in verb_start; answered */
};

void
verb_refuse(struct lines *out, enum ctl_exit code, const char *word,
    const char *fmt, ...)
{
	char text[2048];
	struct text t = { 0 };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_addf(&t, "{\"ok\":false,\"exit\":%d,\"code\":", (int)code);
	text_add_json(&t, word, strlen(word));
	text_add(&t, ",\"error\":");
	text_add_json(&t, text, strlen(text));
	text_addc(&t, '}');
	lines_send(out, t.s, t.len);
	text_release(&t);
}

/* Takes value. */
static void
send_data(struct lines *out, json_t *value)
{
	json_t *line = json_pack("{s:o}", "data", value);

	lines_send_json(out, line);
	json_decref(line);
}

static void
send_ok(struct lines *out)
{
	static const char line[] = "{\"ok\":true}";

	lines_send(out, line, sizeof(line) - 1);
}

typedef struct verb *start_fn(const struct verb_ask *a);

static struct verb *
ping(const struct verb_ask *a)
{
	send_ok(a->out);
	return NULL;
}

static struct verb *
version(const struct verb_ask *a)
{
	send_data(a->out, json_pack("{s:s, s:i}", "version", AIRLOCK_VERSION,
			      "protocol", CTL_PROTOCOL));
	send_ok(a->out);
	return NULL;
}

static struct verb *
status(const struct verb_ask *a)
{
	send_data(a->out,
	    a->bare ? gate_health(a->gate) : gate_status(a->gate));
	send_ok(a->out);
	return NULL;
}

/* Takes stream, which may be NULL. */
static struct verb *
streaming(struct stream *stream)
{
	struct verb *v;

	if (stream == NULL)
		return NULL;
	v = mem_new(sizeof(*v));
	v->stream = stream;
	return v;
}

static struct verb *
pending(const struct verb_ask *a)
{
	return streaming(stream_list(a->out, gate_pending(a->gate)));
}

static struct verb *
agents(const struct verb_ask *a)
{
	return streaming(stream_list(a->out, gate_agents(a->gate)));
}

/* The argument "change", without a digest; NULL after a refusal. */
static bool
find_change(const struct verb_ask *a, char id[15])
{
	const char *s = json_string_value(json_object_get(a->args, "change"));
	char digest[65];
	struct err e = { 0 };

	if (s == NULL) {
		verb_refuse(a->out, CTL_USAGE, "BAD_ARGUMENT",
		    "a change must be named");
		return false;
	}
	if (ctl_parse_change(s, id, digest, &e) == 0 && digest[0] == '\0')
		return true;
	verb_refuse(a->out, CTL_USAGE, "BAD_ARGUMENT", "%s",
	    e.code != ERR_NONE ? e.text : "an id stands without a digest here");
	return false;
}

static struct verb *
show(const struct verb_ask *a)
{
	char id[15];

	if (!find_change(a, id))
		return NULL;
	return streaming(stream_show(a->out, a->gate, id, a->args));
}

static struct verb *
read_log(const struct verb_ask *a)
{
	if (json_is_true(json_object_get(a->args, "verify")))
		return streaming(stream_verify(a->out, a->gate, a->who));
	return streaming(stream_log(a->out, a->gate, a->args));
}

static void
end_decision(struct verb *v)
{
	free((void *)(uintptr_t)v->who.name);
	free(v);
}

/* What the core says for agents begins with its code once more. */
static const char *
without_prefix(const struct outcome *o)
{
	char prefix[96];

	snprintf(prefix, sizeof(prefix),
	    "REFUSED %s: ", o->code != NULL ? o->code : "");
	if (o->text == NULL)
		return "it is refused";
	return text_starts_with(o->text, prefix) ? o->text + strlen(prefix)
	                                         : o->text;
}

/* With what the change was and what it is, so that the other end can say what
 * differs. */
static void
refuse_moved(struct lines *out, const struct outcome *o)
{
	json_t *line = json_pack("{s:b, s:i, s:s, s:s, s:O, s:O}", "ok", 0,
	    "exit", (int)CTL_NO, "code", o->code, "error", without_prefix(o),
	    "was", o->was, "change", o->json);

	lines_send_json(out, line);
	json_decref(line);
}

static void
on_outcome(void *arg, const struct outcome *o)
{
	struct verb *v = arg;
	json_t *line;

	if (v->out != NULL && o->ok) {
		line = json_pack("{s:b, s:O?}", "ok", 1, "change", o->json);
		lines_send_json(v->out, line);
		json_decref(line);
	} else if (v->out != NULL && o->was != NULL) {
		refuse_moved(v->out, o);
	} else if (v->out != NULL) {
		verb_refuse(v->out, CTL_NO, o->code != NULL ? o->code : "NO",
		    "%s", without_prefix(o));
	}
	v->ended = true;
	if (v->inside)
		return; /* verb_start frees it */
	if (v->out != NULL)
		v->done(v->arg);
	end_decision(v);
}

static struct verb *
decision(const struct verb_ask *a)
{
	struct verb *v = mem_new(sizeof(*v));

	v->out = a->out;
	v->who = *a->who;
	v->who.name = mem_strdup(a->who->name);
	v->inside = true;
	return v;
}

/* What the core told from inside the call is answered already. */
static struct verb *
decided(struct verb *v)
{
	v->inside = false;
	if (!v->ended)
		return v;
	end_decision(v);
	return NULL;
}

static struct verb *
commit(const struct verb_ask *a)
{
	const char *digest =
	    json_string_value(json_object_get(a->args, "digest"));
	struct verb *v;
	char id[15];

	if (!find_change(a, id))
		return NULL;
	if (digest == NULL || strlen(digest) != 64 ||
	    strspn(digest, "0123456789abcdef") != 64) {
		verb_refuse(a->out, CTL_USAGE, "BAD_ARGUMENT",
		    "a commit names all 64 hex digits of the digest that was "
		    "reviewed");
		return NULL;
	}
	v = decision(a);
	change_commit(a->gate, id, digest, &v->who, on_outcome, v);
	return decided(v);
}

static struct verb *
rollback(const struct verb_ask *a)
{
	json_t *reason = json_object_get(a->args, "reason");
	struct verb *v;
	char id[15];

	if (!find_change(a, id))
		return NULL;
	if (reason != NULL && !json_is_string(reason) &&
	    !json_is_null(reason)) {
		verb_refuse(a->out, CTL_USAGE, "BAD_ARGUMENT",
		    "a reason is a string");
		return NULL;
	}
	v = decision(a);
	change_rollback(a->gate, id, json_string_value(reason), &v->who,
	    on_outcome, v);
	return decided(v);
}

static start_fn *const table[] = {
	[CTL_PING] = ping,
	[CTL_VERSION] = version,
	[CTL_STATUS] = status,
	[CTL_PENDING] = pending,
	[CTL_SHOW] = show,
	[CTL_COMMIT] = commit,
	[CTL_ROLLBACK] = rollback,
	[CTL_LOG] = read_log,
	[CTL_AGENTS] = agents,
};
static_assert(sizeof(table) / sizeof(table[0]) == CTL_NVERBS,
    "every verb is answered");

struct verb *
verb_start(enum ctl_verb which, const struct verb_ask *a, verb_done *done,
    void *arg)
{
	struct verb *v = table[which](a);

	if (v != NULL) {
		v->done = done;
		v->arg = arg;
	}
	return v;
}

bool
verb_is_stream(const struct verb *v)
{
	return v->stream != NULL;
}

bool
verb_step(struct verb *v)
{
	if (stream_step(v->stream))
		return true;
	stream_free(v->stream);
	free(v);
	return false;
}

void
verb_drop(struct verb *v)
{
	if (v == NULL)
		return;
	if (v->stream == NULL) {
		v->out = NULL;
		return;
	}
	stream_free(v->stream);
	free(v);
}
