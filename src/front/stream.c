/* stream: answers of any length, sent in pieces as the peer reads them */
#include "front/stream.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/mem.h"
#include "base/text.h"
#include "core/change.h"
#include "diff/store.h"
#include "front/verbs.h"
#include "record/chain.h"

#define PIECE 512 /* rows or records between two turns of the loop */
#define WRITE_MIN (32u << 10)
#define KEEP_MAX (1u << 20) /* a buffer that grew beyond it is given back */

typedef bool step_fn(struct stream *s);

struct stream {
	step_fn *step;
	struct lines *out;
	struct gate *gate;
	struct text line; /* lines gathered for one write */
	size_t done;      /* in this piece */
	bool failed;      /* a refusal is sent */

	json_t *list; /* owned */
	size_t next;

	/* show */
	char id[15];
	char digest[DIGEST_HEX_SIZE]; /* when it began */
	char *table;   /* how a row of the table wanted begins, or NULL */
	uint64_t skip; /* rows of that table to pass over */
	uint64_t at;   /* offset in the store */
	uint64_t read, sent, first, limit;

	/* log, verify */
	uint64_t from;
	char *change; /* only its records, or NULL */
	struct chain_end end;
};

static struct stream *
stream_new(struct lines *out, struct gate *g, step_fn *step)
{
	struct stream *s = mem_new(sizeof(*s));

	s->out = out;
	s->gate = g;
	s->step = step;
	return s;
}

void
stream_free(struct stream *s)
{
	if (s == NULL)
		return;
	json_decref(s->list);
	free(s->table);
	free(s->change);
	text_release(&s->line);
	free(s);
}

static bool
wants_more(const struct stream *s)
{
	return s->done < PIECE && !lines_is_full(s->out);
}

/* Sends what is gathered. */
static void
push(struct stream *s)
{
	if (s->line.len == 0)
		return;
	lines_send(s->out, s->line.s, s->line.len);
	if (s->line.size > KEEP_MAX)
		text_release(&s->line);
	else
		text_reset(&s->line);
}

/* {"data":...} around JSON as it was written down, several lines to a write;
 * false where it is too long for anybody. */
static bool
send_raw(struct stream *s, const char *json, size_t len)
{
	if (len > STREAM_LINE_MAX) {
		push(s);
		verb_refuse(s->out, CTL_NO, "TOO_LONG",
		    "a line of %zu bytes is more than can be sent", len);
		s->failed = true;
		return false;
	}
	if (s->line.len > 0)
		text_addc(&s->line, '\n');
	text_add(&s->line, "{\"data\":");
	text_addn(&s->line, json, len);
	text_addc(&s->line, '}');
	if (s->line.len > WRITE_MIN)
		push(s);
	return true;
}

static void
send_json(struct stream *s, json_t *j)
{
	json_t *line = json_pack("{s:O}", "data", j);

	lines_send_json(s->out, line);
	json_decref(line);
}

/* Takes ok. */
static bool
finish(struct stream *s, json_t *ok)
{
	push(s);
	lines_send_json(s->out, ok);
	json_decref(ok);
	return false;
}

static bool
refuse(struct stream *s, const char *word, const char *text)
{
	push(s);
	verb_refuse(s->out, CTL_NO, word, "%s", text);
	return false;
}

/* --- lists --- */

static bool
step_list(struct stream *s)
{
	while (s->next < json_array_size(s->list) && wants_more(s)) {
		send_json(s, json_array_get(s->list, s->next++));
		s->done++;
	}
	if (s->next < json_array_size(s->list))
		return true;
	return finish(s, json_pack("{s:b}", "ok", 1));
}

struct stream *
stream_list(struct lines *out, json_t *list)
{
	struct stream *s = stream_new(out, NULL, step_list);

	s->list = list;
	return s;
}

/* --- show --- */

static bool
take_row(void *arg, const char *line, size_t len)
{
	struct stream *s = arg;

	s->done++;
	s->read++;
	if (s->table != NULL &&
	    (len < strlen(s->table) ||
		memcmp(line, s->table, strlen(s->table)) != 0))
		return wants_more(s);
	if (s->skip > 0) {
		s->skip--;
		return wants_more(s);
	}
	if (!send_raw(s, line, len))
		return false;
	s->sent++;
	return s->sent < s->limit && wants_more(s);
}

/* The change as it was when the stream began, or NULL where it has moved on. */
static struct store *
same_store(struct stream *s)
{
	struct change *c = gate_change(s->gate, s->id);
	struct store *store;
	const char *digest;
	json_t *header;
	bool same;

	if (c == NULL || (store = change_store(c)) == NULL)
		return NULL;
	header = change_header(c);
	digest = json_string_value(json_object_get(header, "digest"));
	same = digest != NULL && strcmp(digest, s->digest) == 0;
	json_decref(header);
	return same ? store : NULL;
}

static bool
step_show(struct stream *s)
{
	struct store *store = same_store(s);
	struct err e = { 0 };
	uint64_t total, next;

	if (store == NULL)
		return refuse(s, "MOVED",
		    "the change was decided or added to while it was read: "
		    "show it again");
	total = store_rows(store);
	if (s->sent < s->limit && s->read < total) {
		if (store_read(store, s->at, take_row, s, &next, &e) == -1)
			return refuse(s, "UNREADABLE", e.text);
		s->at = next;
		if (s->failed)
			return false;
		if (s->done == 0)
			return refuse(s, "UNREADABLE",
			    "the stored rows end before their number");
		if (s->sent < s->limit && s->read < total)
			return true;
	}
	return finish(s,
	    json_pack("{s:b, s:I, s:I, s:o}", "ok", 1, "rows",
		(json_int_t)s->sent, "total", (json_int_t)total, "next",
		s->read < total ? json_integer((json_int_t)(s->first + s->sent))
				: json_null()));
}

/* A number among args that is not negative; false after a refusal. */
static bool
take_number(struct lines *out, const json_t *args, const char *name,
    uint64_t none, uint64_t *n)
{
	json_t *v = json_object_get(args, name);

	*n = none;
	if (v == NULL || json_is_null(v))
		return true;
	if (json_is_integer(v) && json_integer_value(v) >= 0) {
		*n = (uint64_t)json_integer_value(v);
		return true;
	}
	verb_refuse(out, CTL_USAGE, "BAD_ARGUMENT",
	    "'%s' is not a whole number from 0 on", name);
	return false;
}

/* A string among args, or NULL; false after a refusal. */
static bool
take_string(struct lines *out, const json_t *args, const char *name,
    const char **s)
{
	json_t *v = json_object_get(args, name);

	*s = json_string_value(v);
	if (v == NULL || json_is_null(v) || *s != NULL)
		return true;
	verb_refuse(out, CTL_USAGE, "BAD_ARGUMENT", "'%s' is not a string",
	    name);
	return false;
}

/* The window, and where in the store it begins. */
static bool
open_window(struct stream *s, struct store *store, const json_t *args)
{
	struct err e = { 0 };
	const char *table;

	if (!take_number(s->out, args, "offset", 0, &s->first) ||
	    !take_number(s->out, args, "limit", UINT64_MAX, &s->limit) ||
	    !take_string(s->out, args, "table", &table))
		return false;
	if (table != NULL) {
		struct text t = { 0 };

		text_add(&t, "{\"table\":");
		text_add_json(&t, table, strlen(table));
		text_addc(&t, ',');
		s->table = text_take(&t);
		s->skip = s->first;
		return true;
	}
	s->read = s->first < store_rows(store) ? s->first : store_rows(store);
	if (store_find(store, s->read, &s->at, &e) == 0)
		return true;
	refuse(s, "UNREADABLE", e.text);
	return false;
}

/* A change that has ended has no rows any more.  The agent's view of it calls
 * the id change_id; the object is the core's, so a copy is told. */
static struct stream *
show_ended(struct stream *s, json_t *header)
{
	json_t *copy = json_copy(header);

	if (copy == NULL) {
		verb_refuse(s->out, CTL_NO, "NOT_FOUND",
		    "there is no change %s", s->id);
	} else {
		json_object_set_new(copy, "id", json_string(s->id));
		send_json(s, copy);
		finish(s, json_pack("{s:b, s:i, s:i, s:n}", "ok", 1, "rows", 0,
			      "total", 0, "next"));
	}
	json_decref(copy);
	json_decref(header);
	stream_free(s);
	return NULL;
}

struct stream *
stream_show(struct lines *out, struct gate *g, const char *id,
    const json_t *args)
{
	struct stream *s = stream_new(out, g, step_show);
	struct change *c = gate_change(g, id);
	struct store *store = c != NULL ? change_store(c) : NULL;
	const char *agent, *digest;
	struct err e = { 0 };
	json_t *header;

	memcpy(s->id, id, sizeof(s->id));
	if (c == NULL) {
		header = gate_doubted(g, id);
		return show_ended(s,
		    header != NULL ? header : gate_ended(g, id, &agent));
	}
	header = change_header(c);
	digest = json_string_value(json_object_get(header, "digest"));
	if (store == NULL || digest == NULL || !change_is_pending(c))
		return show_ended(s, header);
	if (text_copy(s->digest, sizeof(s->digest), digest, &e) == -1 ||
	    store_flush(store, false, &e) == -1) {
		refuse(s, "UNREADABLE", e.text);
	} else if (open_window(s, store, args)) {
		send_json(s, header);
		json_decref(header);
		return s;
	}
	json_decref(header);
	stream_free(s);
	return NULL;
}

/* --- log --- */

static bool
is_about(const json_t *rec, const char *change)
{
	static const char *const names[] = { "change", "change_id", "id" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *s =
		    json_string_value(json_object_get(rec, names[i]));

		if (s != NULL && strcmp(s, change) == 0)
			return true;
	}
	return false;
}

static bool
take_record(void *arg, const json_t *rec, const char *line, size_t len)
{
	struct stream *s = arg;
	json_int_t seq = json_integer_value(json_object_get(rec, "seq"));

	s->done++;
	if (seq < 1 || (uint64_t)seq < s->from) {
		s->failed = true;
		return refuse(s, "JOURNAL_BROKEN",
		    "a record stands out of its order");
	}
	s->from = (uint64_t)seq + 1;
	if (s->change != NULL && !is_about(rec, s->change))
		return wants_more(s);
	if (!send_raw(s, line, len))
		return false;
	s->sent++;
	return s->sent < s->limit && wants_more(s);
}

/* One piece of records told to `each`; false where there are no more. */
static bool
page(struct stream *s, journal_each *each)
{
	struct journal *j = gate_journal(s->gate);
	struct err e = { 0 };
	uint64_t next;

	if (s->from > journal_seq(j))
		return false;
	if (journal_page(j, s->from, PIECE, each, s, &next, &e) == -1) {
		s->failed = true;
		return refuse(s, "JOURNAL_BROKEN", e.text);
	}
	if (!s->failed && s->done == 0) {
		s->failed = true;
		return refuse(s, "JOURNAL_BROKEN",
		    "records are missing at the end of the journal");
	}
	return !s->failed;
}

static bool
step_log(struct stream *s)
{
	if (s->sent < s->limit && page(s, take_record))
		return true;
	if (s->failed)
		return false;
	return finish(s,
	    json_pack("{s:b, s:I}", "ok", 1, "next", (json_int_t)s->from));
}

struct stream *
stream_log(struct lines *out, struct gate *g, const json_t *args)
{
	struct stream *s = stream_new(out, g, step_log);
	uint64_t last = journal_seq(gate_journal(g));
	const char *change;

	if (!take_number(out, args, "from", 0, &s->from) ||
	    !take_number(out, args, "limit", UINT64_MAX, &s->limit) ||
	    !take_string(out, args, "change", &change)) {
		stream_free(s);
		return NULL;
	}
	if (change != NULL)
		s->change = mem_strdup(change);
	if (s->from == 0 && change != NULL)
		s->limit = UINT64_MAX; /* which are the last, the peer sees */
	else if (s->from == 0 && s->limit < last)
		s->from = last - s->limit + 1;
	if (s->from == 0)
		s->from = 1;
	return s;
}

/* --- verify --- */

static bool
check_record(void *arg, const json_t *rec, const char *line, size_t len)
{
	struct stream *s = arg;
	const char *prev = json_string_value(json_object_get(rec, "prev"));
	json_int_t seq = json_integer_value(json_object_get(rec, "seq"));

	s->done++;
	if (seq < 1 || (uint64_t)seq != s->end.seq + 1 || prev == NULL ||
	    strcmp(prev, s->end.hash) != 0) {
		verb_refuse(s->out, CTL_NO, "JOURNAL_BROKEN",
		    "the journal is not whole: record %lld does not follow "
		    "record %llu as that one stands there",
		    (long long)seq, (unsigned long long)s->end.seq);
		s->failed = true;
		return false;
	}
	chain_advance(&s->end, (uint64_t)seq, line, len);
	s->from = s->end.seq + 1;
	return s->done < PIECE;
}

static json_int_t
count_files(struct gate *g)
{
	int fd = openat(gate_get_options(g)->state_fd, "journal",
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err e = { 0 };
	unsigned *numbers;
	size_t n = 0;

	if (fd == -1)
		return 0;
	if (chain_list(fd, &numbers, &n, &e) == 0)
		free(numbers);
	close(fd);
	return (json_int_t)n;
}

static bool
step_verify(struct stream *s)
{
	if (page(s, check_record))
		return true;
	if (s->failed)
		return false;
	return finish(s,
	    json_pack("{s:b, s:I, s:I}", "ok", 1, "records",
		(json_int_t)s->end.seq, "files", count_files(s->gate)));
}

struct stream *
stream_verify(struct lines *out, struct gate *g,
    const struct operator_peer *who)
{
	struct stream *s = stream_new(out, g, step_verify);

	/* A record of its own, or nothing would vouch for the last one. */
	gate_record(g,
	    json_pack("{s:s, s:s, s:I}", "kind", "verify", "operator",
		who->name, "uid", (json_int_t)who->uid),
	    true);
	chain_begin(&s->end);
	s->from = 1;
	return s;
}

bool
stream_step(struct stream *s)
{
	s->done = 0;
	if (!s->step(s))
		return false;
	push(s);
	return true;
}
