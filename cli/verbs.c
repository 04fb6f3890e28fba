/* verbs: what each verb of airlock does at this end, and what they share */
#include "verbs.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "base/version.h"
#include "verb.h"

enum ctl_exit
verb_say(struct run *run, enum ctl_exit code, const char *fmt, ...)
{
	char line[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fflush(run->out.out);
	term_line(&run->talk, PLAIN, "airlock: ", line);
	return code;
}

enum ctl_exit
verb_refused(struct run *run, struct reply *r)
{
	enum ctl_exit code = r->exit;

	verb_say(run, code, "%s (%s)", r->error, r->code);
	reply_release(r);
	return code;
}

bool
verb_collect(void *arg, json_t *data)
{
	json_array_append(*(json_t **)arg, data);
	return true;
}

static void
sink_header(void *arg, const json_t *header)
{
	struct page *page = arg;

	page->w->header(page, header);
}

static void
sink_row(void *arg, const json_t *row)
{
	struct page *page = arg;

	page->w->row(page, row);
}

enum ctl_exit
verb_fetch(struct run *run, const char *id, const struct window *w,
    struct page *page, struct review *out, struct reply *r)
{
	struct review_sink sink = { sink_header, sink_row, page };

	if (review_fetch(run->client, id, w, &sink, out, r) == CTL_DONE)
		page->w->tail(page, out);
	return r->exit;
}

/* The hex digits of what may be the beginning of an id; NULL where it is a word
 * of another kind. */
static const char *
id_part(const char *word, size_t len)
{
	const char *p = word;

	if (len >= 4 && strncmp(word, "chg_", 4) == 0)
		p += 4;
	else if (strncmp(word, "chg_", len) == 0)
		p += len;
	len -= (size_t)(p - word);
	return len < 10 && strspn(p, "0123456789abcdef") >= len ? p : NULL;
}

/* Lists what a part of an id fits; acting on it is never right, since another
 * change may come to fit it at any moment. */
static enum ctl_exit
refuse_part(struct run *run, const char *hex, size_t len)
{
	json_t *list = json_array(), *one;
	const char *word = term_quote_str(run->o->arg, 80), *id, *last = "";
	struct reply r;
	size_t i, n = 0;

	if (client_ask(run->client, CTL_PENDING, NULL, verb_collect, &list,
		&r) != CTL_DONE) {
		json_decref(list);
		return verb_refused(run, &r);
	}
	reply_release(&r);
	json_array_foreach (list, i, one) {
		id = json_string_value(json_object_get(one, "id"));
		if (id == NULL || strlen(id) != 14 ||
		    strncmp(id + 4, hex, len) != 0)
			continue;
		last = term_quote_str(id, 64);
		term_line(&run->talk, PLAIN, "  ", last);
		n++;
	}
	if (n == 0)
		verb_say(run, CTL_NO, "no pending change begins with '%s'",
		    word);
	else if (n == 1)
		verb_say(run, CTL_NO,
		    "'%s' is part of an id; a change is named in full: %s",
		    word, last);
	else
		verb_say(run, CTL_NO,
		    "'%s' is ambiguous: it fits %zu pending changes; a change "
		    "is named in full",
		    word, n);
	json_decref(list);
	return CTL_NO;
}

bool
verb_change(struct run *run, char id[15], char digest[65], enum ctl_exit *code)
{
	const char *word = run->o->arg, *hex;
	size_t len = strcspn(word, "@");
	struct err e = { 0 };

	if (ctl_parse_change(word, id, digest, &e) == 0)
		return true;
	hex = id_part(word, len);
	if (hex != NULL)
		*code = refuse_part(run, hex, len - (size_t)(hex - word));
	else
		*code = verb_say(run, CTL_USAGE, "%s", e.text);
	return false;
}

static enum ctl_exit
ping(struct run *run)
{
	struct reply r;

	if (client_ask(run->client, CTL_PING, NULL, NULL, NULL, &r) != CTL_DONE)
		return verb_refused(run, &r);
	reply_release(&r);
	run->w->ping(&run->out, client_daemon_version());
	return CTL_DONE;
}

static enum ctl_exit
version(struct run *run)
{
	struct reply r;

	if (client_ask(run->client, CTL_VERSION, NULL, NULL, NULL, &r) !=
	    CTL_DONE) {
		run->w->version(&run->out, AIRLOCK_VERSION, NULL);
		return verb_refused(run, &r);
	}
	reply_release(&r);
	run->w->version(&run->out, AIRLOCK_VERSION, client_daemon_version());
	return CTL_DONE;
}

/* status and agents: all data, then one writer. */
static enum ctl_exit
collect(struct run *run, enum ctl_verb verb, json_t **list)
{
	struct reply r;

	*list = json_array();
	if (client_ask(run->client, verb, NULL, verb_collect, list, &r) !=
	    CTL_DONE) {
		json_decref(*list);
		return verb_refused(run, &r);
	}
	reply_release(&r);
	return CTL_DONE;
}

static enum ctl_exit
status(struct run *run)
{
	json_t *list;
	enum ctl_exit code = collect(run, CTL_STATUS, &list);

	if (code != CTL_DONE)
		return code;
	if (json_is_object(json_array_get(list, 0)))
		run->w->status(&run->out, json_array_get(list, 0));
	json_decref(list);
	return CTL_DONE;
}

static enum ctl_exit
agents(struct run *run)
{
	json_t *list;
	enum ctl_exit code = collect(run, CTL_AGENTS, &list);

	if (code != CTL_DONE)
		return code;
	run->w->agents(&run->out, list);
	json_decref(list);
	return CTL_DONE;
}

static verb_fn *const verbs[] = {
	[CTL_PING] = ping,
	[CTL_VERSION] = version,
	[CTL_STATUS] = status,
	[CTL_PENDING] = verb_pending,
	[CTL_SHOW] = verb_show,
	[CTL_COMMIT] = verb_commit,
	[CTL_ROLLBACK] = verb_rollback,
	[CTL_LOG] = verb_log,
	[CTL_AGENTS] = agents,
};
static_assert(sizeof(verbs) / sizeof(verbs[0]) == CTL_NVERBS,
    "every verb has a function");

enum ctl_exit
verb_run(const struct options *o, const struct client *c)
{
	struct run run = { .o = o,
		.client = c,
		.w = o->json ? &writer_json : &writer_text };

	term_init(&run.out, stdout);
	term_init(&run.talk, stderr);
	return verbs[o->verb](&run);
}
