/* answer: what crosses between the parser child and its keeper, both ways */
#include "sql/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sql/parcel.h"
#include "sql/parse.h"

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

/* What the child is asked is ours and fit to be sent; it looks for itself. */
static void
add_part(struct text *out, const char *s)
{
	parcel_add_number(out, s != NULL ? (long long)strlen(s) : -1);
	if (s != NULL)
		text_add(out, s);
}

void
ask_pack(struct text *out, const char *sql, size_t len,
    const struct rewrite_edit *edit)
{
	size_t begin = frame_begin(out);

	parcel_add_number(out, (long long)len);
	text_addn(out, sql, len);
	parcel_add_number(out, edit != NULL);
	if (edit != NULL) {
		add_part(out, edit->from);
		add_part(out, edit->where);
		add_part(out, edit->returning);
	}
	frame_end(out, begin);
}

static bool
get_ask(struct parcel *in, struct ask *a)
{
	if (!parcel_text(in, false, &a->sql) || !parcel_bool(in, &a->rewrite))
		return false;
	for (size_t i = 0; a->rewrite && i < 3; i++)
		if (!parcel_text(in, true, &a->texts[i]))
			return false;
	return in->left == 0;
}

int
ask_unpack(const char *p, size_t n, struct ask *a, struct err *e)
{
	struct parcel in = { p, n };

	memset(a, 0, sizeof(*a));
	if (!get_ask(&in, a)) {
		ask_release(a);
		return err_set(e, ERR_INPUT, "not a question to the parser");
	}
	a->edit =
	    (struct rewrite_edit){ a->texts[0], a->texts[1], a->texts[2] };
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

static bool
add_rewrite(struct text *out, const struct rewrite_result *r)
{
	if (!parcel_add_text(out, r->sql))
		return false;
	parcel_add_number(out, (long long)r->ninserts);
	for (size_t i = 0; i < r->ninserts; i++) {
		parcel_add_number(out, r->inserts[i].at);
		parcel_add_number(out, r->inserts[i].len);
	}
	return true;
}

static bool
add_answer(struct text *out, const struct answer *a)
{
	parcel_add_number(out, a->status);
	if (!parcel_add_text(out, a->text))
		return false;
	parcel_add_number(out, a->position);
	parcel_add_number(out, a->has_facts);
	if (a->has_facts && !facts_pack(out, &a->facts))
		return false;
	parcel_add_number(out, a->has_rewrite);
	return !a->has_rewrite || add_rewrite(out, &a->rewrite);
}

void
answer_pack(struct text *out, const struct answer *a)
{
	static const struct answer unreadable = {
		.status = ANSWER_COMPLEX,
		.text = "a name in the statement is not valid UTF-8",
	};
	size_t begin = frame_begin(out);
	struct text whole = { 0 };

	if (!add_answer(&whole, a)) {
		text_reset(&whole);
		(void)add_answer(&whole, &unreadable);
	}
	text_addn(out, whole.s, whole.len);
	text_release(&whole);
	frame_end(out, begin);
}

static bool
get_rewrite(struct parcel *in, struct rewrite_result *r)
{
	long long n, at, len, last = 0;

	if (!parcel_text(in, false, &r->sql) ||
	    !parcel_number(in, 0, REWRITE_INSERTS_MAX, &n))
		return false;
	for (; r->ninserts < (size_t)n; r->ninserts++) {
		if (!parcel_number(in, last, POSITION_MAX, &at) ||
		    !parcel_number(in, 0, POSITION_MAX, &len))
			return false;
		last = at;
		r->inserts[r->ninserts].at = (long)at;
		r->inserts[r->ninserts].len = (long)len;
	}
	return true;
}

/* What is malformed beside the facts, which say so themselves. */
static int
malformed(struct err *e, const char *what)
{
	return err_set(e, ERR_INPUT, "the parser's %s is malformed", what);
}

static int
get_head(struct parcel *in, struct answer *a, struct err *e)
{
	long long status, position;
	char *text = NULL;
	int rc = 0;

	if (!parcel_number(in, 0, ANSWER_NSTATUS - 1, &status) ||
	    !parcel_text(in, false, &text) ||
	    text_copy(a->text, sizeof(a->text), text, e) == -1 ||
	    !parcel_number(in, 0, POSITION_MAX, &position))
		rc = malformed(e, "answer");
	free(text);
	if (rc == 0) {
		a->status = (enum answer_status)status;
		a->position = (long)position;
	}
	return rc;
}

static int
get_answer(struct parcel *in, struct answer *a, struct err *e)
{
	bool facts;

	if (get_head(in, a, e) == -1)
		return -1;
	if (!parcel_bool(in, &facts))
		return malformed(e, "answer");
	if (facts && facts_unpack(in, &a->facts, e) == -1)
		return -1;
	a->has_facts = facts;
	if (!parcel_bool(in, &a->has_rewrite) ||
	    (a->has_rewrite && !get_rewrite(in, &a->rewrite)))
		return malformed(e, "rewrite");
	if (in->left != 0)
		return malformed(e, "answer");
	if ((a->status == ANSWER_OK) != (a->has_facts || a->has_rewrite))
		return err_set(e, ERR_INPUT,
		    "the parser's answer contradicts itself");
	return 0;
}

int
answer_unpack(const char *p, size_t n, struct answer *a, struct err *e)
{
	struct parcel in = { p, n };
	int rc;

	memset(a, 0, sizeof(*a));
	rc = get_answer(&in, a, e);
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
