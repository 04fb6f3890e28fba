/* answer: what crosses between the parser child and its keeper, both ways */
#include "sql/answer.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sql/parse.h"

static const char *const status_name[] = {
	[ANSWER_OK] = "ok",
	[ANSWER_READY] = "ready",
	[ANSWER_SYNTAX] = "syntax",
	[ANSWER_COMPLEX] = "complex",
	[ANSWER_UNPROVED] = "unproved",
};
static_assert(sizeof(status_name) / sizeof(status_name[0]) == ANSWER_NSTATUS,
    "every status has a name");

static const char *const edit_name[] = { "from", "where", "returning" };

#define POSITION_MAX (1 << 30)

size_t
frame_length(const unsigned char h[FRAME_HEADER], size_t max)
{
	size_t n =
	    (size_t)h[0] << 24 | (size_t)h[1] << 16 | (size_t)h[2] << 8 | h[3];

	return n <= max ? n : 0;
}

/* Leaves room for the header of a frame; gives where it is. */
static size_t
frame_begin(struct text *out)
{
	text_addn(out, "\0\0\0", FRAME_HEADER);
	return out->len;
}

static void
frame_end(struct text *out, size_t begin)
{
	size_t n = out->len - begin;

	for (size_t i = 1; i <= FRAME_HEADER; i++, n >>= 8)
		out->s[begin - i] = (char)(n & 0xff);
}

static void
add_text(struct text *out, const char *s)
{
	if (s != NULL)
		text_add_json(out, s, strlen(s));
	else
		text_add(out, "null");
}

void
ask_pack(struct text *out, const char *sql, size_t len,
    const struct rewrite_edit *edit)
{
	size_t begin = frame_begin(out);

	text_add(out, "{\"sql\":");
	text_add_json(out, sql, len);
	if (edit == NULL)
		text_add(out, ",\"edit\":null}");
	else {
		text_add(out, ",\"edit\":{\"from\":");
		add_text(out, edit->from);
		text_add(out, ",\"where\":");
		add_text(out, edit->where);
		text_add(out, ",\"returning\":");
		add_text(out, edit->returning);
		text_add(out, "}}");
	}
	frame_end(out, begin);
}

int
ask_unpack(const char *p, size_t n, struct ask *a, struct err *e)
{
	json_t *j = json_loadb(p, n, JSON_REJECT_DUPLICATES, NULL);
	const json_t *edit = json_object_get(j, "edit");
	const char *sql = json_string_value(json_object_get(j, "sql"));

	memset(a, 0, sizeof(*a));
	if (sql == NULL || (!json_is_object(edit) && !json_is_null(edit))) {
		json_decref(j);
		return err_set(e, ERR_INPUT, "not a question to the parser");
	}
	a->sql = mem_strdup(sql);
	a->rewrite = json_is_object(edit);
	for (size_t i = 0; a->rewrite && i < 3; i++) {
		const char *s =
		    json_string_value(json_object_get(edit, edit_name[i]));

		a->texts[i] = s != NULL ? mem_strdup(s) : NULL;
	}
	a->edit =
	    (struct rewrite_edit){ a->texts[0], a->texts[1], a->texts[2] };
	json_decref(j);
	return 0;
}

void
ask_release(struct ask *a)
{
	for (size_t i = 0; i < 3; i++)
		free(a->texts[i]);
	free(a->sql);
	memset(a, 0, sizeof(*a));
}

static void
fail(struct answer *a, enum answer_status status, const struct err *e)
{
	size_t n = text_utf8_cut(e->text, strlen(e->text), sizeof(a->text) - 1);

	a->status = status;
	memcpy(a->text, e->text, n);
	a->text[n] = '\0';
}

static void
make_facts(const struct ask *ask, struct answer *a)
{
	struct err e = ERR_INIT;
	struct parse p = { 0 };

	if (parse_text(ask->sql, strlen(ask->sql), &p, &a->position, &e) ==
	    -1) {
		fail(a, e.code == ERR_INPUT ? ANSWER_SYNTAX : ANSWER_COMPLEX,
		    &e);
		return;
	}
	if (facts_read(&p, &a->facts, &e) == -1)
		fail(a, ANSWER_COMPLEX, &e);
	else
		a->has_facts = true;
	parse_release(&p);
}

void
answer_make(const struct ask *ask, struct answer *a)
{
	struct err e = ERR_INIT;

	memset(a, 0, sizeof(*a));
	if (!ask->rewrite)
		make_facts(ask, a);
	else if (rewrite(ask->sql, &ask->edit, &a->rewrite, &e) == 0)
		a->has_rewrite = true;
	else
		fail(a, e.code == ERR_LIMIT ? ANSWER_COMPLEX : ANSWER_UNPROVED,
		    &e);
}

static json_t *
rewrite_to_json(const struct rewrite_result *r)
{
	json_t *v = json_array();

	for (size_t i = 0; i < r->ninserts; i++)
		json_array_append_new(v,
		    json_pack("[I, I]", (json_int_t)r->inserts[i].at,
			(json_int_t)r->inserts[i].len));
	return json_pack("{s:s, s:o}", "sql", r->sql, "inserts", v);
}

static json_t *
answer_to_json(const struct answer *a)
{
	json_t *facts = a->has_facts ? facts_to_json(&a->facts) : json_null();
	json_t *rewritten =
	    a->has_rewrite ? rewrite_to_json(&a->rewrite) : json_null();
	json_t *j;

	if (facts == NULL || rewritten == NULL) {
		json_decref(facts);
		json_decref(rewritten);
		return NULL;
	}
	j = json_object();
	json_object_set_new(j, "status", json_string(status_name[a->status]));
	json_object_set_new(j, "text", json_string(a->text));
	json_object_set_new(j, "position", json_integer(a->position));
	json_object_set_new(j, "facts", facts);
	json_object_set_new(j, "rewrite", rewritten);
	return j;
}

static int
dump(const char *p, size_t n, void *out)
{
	text_addn(out, p, n);
	return 0;
}

void
answer_pack(struct text *out, const struct answer *a)
{
	static const struct answer unreadable = {
		.status = ANSWER_COMPLEX,
		.text = "a name in the statement is not valid UTF-8",
	};
	size_t begin = frame_begin(out);
	json_t *j = answer_to_json(a);

	if (j == NULL || json_object_size(j) != 5) {
		json_decref(j);
		j = answer_to_json(&unreadable);
	}
	json_dump_callback(j, dump, out, JSON_COMPACT);
	json_decref(j);
	frame_end(out, begin);
}

static bool
get_rewrite(const json_t *j, struct rewrite_result *r)
{
	const char *sql = json_string_value(json_object_get(j, "sql"));
	const json_t *v = json_object_get(j, "inserts");
	json_int_t last = 0;

	if (sql == NULL || !json_is_array(v) ||
	    json_array_size(v) > REWRITE_INSERTS_MAX)
		return false;
	for (; r->ninserts < json_array_size(v); r->ninserts++) {
		const json_t *pair = json_array_get(v, r->ninserts);
		json_int_t at = json_integer_value(json_array_get(pair, 0));
		json_int_t len = json_integer_value(json_array_get(pair, 1));

		if (json_array_size(pair) != 2 || at < last || len < 0 ||
		    at > POSITION_MAX || len > POSITION_MAX)
			return false;
		last = at;
		r->inserts[r->ninserts].at = (long)at;
		r->inserts[r->ninserts].len = (long)len;
	}
	r->sql = mem_strdup(sql);
	return true;
}

static int
get_parts(const json_t *j, struct answer *a, struct err *e)
{
	const json_t *facts = json_object_get(j, "facts");
	const json_t *rewritten = json_object_get(j, "rewrite");

	if (!json_is_null(facts)) {
		if (facts_from_json(facts, &a->facts, e) == -1)
			return -1;
		a->has_facts = true;
	}
	if (!json_is_null(rewritten)) {
		if (!get_rewrite(rewritten, &a->rewrite))
			return err_set(e, ERR_INPUT,
			    "the parser's rewrite is malformed");
		a->has_rewrite = true;
	}
	return 0;
}

static int
get_answer(const json_t *j, struct answer *a, struct err *e)
{
	const char *status = json_string_value(json_object_get(j, "status"));
	const char *text = json_string_value(json_object_get(j, "text"));
	const json_t *position = json_object_get(j, "position");
	json_int_t at = json_integer_value(position);
	int s = 0;

	while (status != NULL && s < ANSWER_NSTATUS &&
	       strcmp(status, status_name[s]) != 0)
		s++;
	if (json_object_size(j) != 5 || status == NULL || s == ANSWER_NSTATUS ||
	    text == NULL || !json_is_integer(position) || at < 0 ||
	    at > POSITION_MAX)
		return err_set(e, ERR_INPUT,
		    "the parser's answer is malformed");
	if (text_copy(a->text, sizeof(a->text), text, e) == -1 ||
	    get_parts(j, a, e) == -1)
		return -1;
	a->status = (enum answer_status)s;
	a->position = (long)at;
	if ((a->status == ANSWER_OK) != (a->has_facts || a->has_rewrite))
		return err_set(e, ERR_INPUT,
		    "the parser's answer contradicts itself");
	return 0;
}

int
answer_unpack(const char *p, size_t n, struct answer *a, struct err *e)
{
	json_t *j = json_loadb(p, n, JSON_REJECT_DUPLICATES, NULL);
	int rc;

	memset(a, 0, sizeof(*a));
	rc = get_answer(j, a, e);
	json_decref(j);
	if (rc == -1)
		answer_release(a);
	return rc;
}

void
answer_release(struct answer *a)
{
	facts_release(&a->facts);
	rewrite_result_release(&a->rewrite);
	memset(a, 0, sizeof(*a));
}
