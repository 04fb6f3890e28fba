/* screen: what a statement must pass before any parser sees it */
#include "sql/screen.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

/*
 * Where the reading is.  `ops` counts operator characters in a row outside of
 * comments.  `opened` counts comments that opened within one unbroken run of
 * such characters, comments included: the scanner reads that run anew for
 * each of them.  `token` is where the last token ended: from there to `at` is
 * nothing but white space and comments.
 */
struct reader {
	const char *at, *end;
	const struct screen_limits *limits;
	size_t ops, opened, depth;
	const char *begin; /* of the text */
	char *copy;        /* of it, to be blanked; or NULL */
	const char *token;
	bool literal, bracketed; /* what the last token was; what the gap has */
};

/* clang-format off */
static const bool operators[256] = {
	['~'] = true, ['!'] = true, ['@'] = true, ['#'] = true, ['^'] = true,
	['&'] = true, ['|'] = true, ['`'] = true, ['?'] = true, ['+'] = true,
	['-'] = true, ['*'] = true, ['/'] = true, ['%'] = true, ['<'] = true,
	['>'] = true, ['='] = true,
};
/* A vertical tab is white space to PostgreSQL from 16 on alone. */
static const bool whites[256] = {
	[' '] = true, ['\t'] = true, ['\n'] = true, ['\r'] = true,
	['\f'] = true,
};
/* clang-format on */

static bool
is_operator(char c)
{
	return operators[(unsigned char)c];
}

static bool
is_word_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (unsigned char)c >= 0x80;
}

static bool
is_word(char c)
{
	return is_word_start(c) || (c >= '0' && c <= '9') || c == '$';
}

static bool
next_is(const struct reader *r, const char *s)
{
	size_t n = strlen(s);

	return (size_t)(r->end - r->at) >= n && memcmp(r->at, s, n) == 0;
}

static bool
is_white(char c)
{
	return whites[(unsigned char)c];
}

/* From the last token to `at`: white space stays, comments become spaces. */
static void
blank(struct reader *r)
{
	for (const char *p = r->token; r->copy != NULL && p < r->at; p++)
		if (!is_white(*p))
			r->copy[p - r->begin] = ' ';
	r->token = r->at;
}

static bool
line_comment(struct reader *r)
{
	while (r->at < r->end && *r->at != '\n' && *r->at != '\r')
		r->at++;
	return true;
}

static bool
comment(struct reader *r)
{
	do {
		if (next_is(r, "/*")) {
			r->at += 2;
			if (++r->depth > r->limits->comment_depth_max ||
			    ++r->opened > r->limits->comment_depth_max)
				return false;
		} else if (next_is(r, "*/")) {
			r->at += 2;
			r->depth--;
		} else if (!is_operator(*r->at++))
			r->opened = 0;
	} while (r->depth > 0 && r->at < r->end);
	return true;
}

/* E'..' goes on in the same manner behind a doubled quote, or in the next
 * line, behind such comments as end with theirs. */
static bool
goes_on(struct reader *r, char quote)
{
	struct reader p = *r;
	bool line = false;

	while (p.at < p.end && (is_white(*p.at) || next_is(&p, "--"))) {
		line = line || *p.at == '\n' || *p.at == '\r';
		if (is_white(*p.at))
			p.at++;
		else
			(void)line_comment(&p);
	}
	if (p.at == p.end || *p.at != quote || (!line && p.at != r->at))
		return false;
	r->token = r->at;
	r->at = p.at;
	blank(r);
	return true;
}

/* Text in quotes; a doubled quote ends one text and begins the next. */
static bool
quoted(struct reader *r, bool escapes)
{
	char quote = *r->at;

	do {
		r->at++;
		while (r->at < r->end && *r->at != quote)
			r->at += escapes && *r->at == '\\' && r->at + 1 < r->end
			             ? 2
			             : 1;
		if (r->at < r->end)
			r->at++;
	} while (escapes && goes_on(r, quote));
	return true;
}

static bool
word(struct reader *r)
{
	if ((*r->at == 'e' || *r->at == 'E') && r->at + 1 < r->end &&
	    r->at[1] == '\'') {
		r->at++;
		return quoted(r, true);
	}
	while (r->at < r->end && is_word(*r->at))
		r->at++;
	return true;
}

/* $tag$ text $tag$, or a parameter, or a dollar sign. */
static bool
dollar(struct reader *r)
{
	const char *tag = r->at++, *p = r->at;
	size_t n;

	if (p < r->end && is_word_start(*p))
		while (p < r->end && is_word(*p) && *p != '$')
			p++;
	if (p == r->end || *p != '$')
		return true;
	n = (size_t)(p + 1 - tag);
	p = memmem(p + 1, (size_t)(r->end - p - 1), tag, n);
	r->at = p != NULL ? p + n : r->end;
	return true;
}

static bool
plain(struct reader *r)
{
	if (!is_operator(*r->at)) {
		r->opened = r->ops = 0;
		r->at++;
		return true;
	}
	r->at++;
	return ++r->ops <= r->limits->operator_run_max;
}

/*
 * Between two literals a bracketed comment stays: where it is, the second is
 * not a continuation of the first, as white space with a line end would make
 * it.
 */
static void
gap(struct reader *r)
{
	if (r->literal && r->bracketed && r->at < r->end && *r->at == '\'')
		r->token = r->at;
	blank(r);
	r->literal = r->bracketed = false;
}

static bool
token(struct reader *r)
{
	bool fine;

	gap(r);
	if (*r->at == '$') {
		r->opened = r->ops = 0;
		fine = dollar(r);
	} else if (is_word_start(*r->at)) {
		r->opened = r->ops = 0;
		fine = word(r);
		r->literal = r->at[-1] == '\'';
	} else if (*r->at == '\'' || *r->at == '"') {
		r->opened = r->ops = 0;
		r->literal = *r->at == '\'';
		fine = quoted(r, false);
	} else {
		fine = plain(r);
	}
	r->token = r->at;
	return fine;
}

static bool
step(struct reader *r)
{
	if (next_is(r, "--")) {
		r->opened = r->ops = 0;
		return line_comment(r);
	}
	if (next_is(r, "/*")) {
		r->ops = 0;
		r->bracketed = true;
		return comment(r);
	}
	return is_white(*r->at) ? plain(r) : token(r);
}

/* Comments become spaces; one that does not end stays what it is. */
void
screen_blank(char *sql, size_t len)
{
	static const struct screen_limits none = { SIZE_MAX, SIZE_MAX,
		SIZE_MAX };
	char *text;
	struct reader r;

	if (memmem(sql, len, "--", 2) == NULL &&
	    memmem(sql, len, "/*", 2) == NULL)
		return;
	text = mem_strndup(sql, len);
	r = (struct reader){
		.at = text,
		.end = text + len,
		.limits = &none,
		.begin = text,
		.copy = sql,
		.token = text,
	};

	while (r.at < r.end)
		(void)step(&r);
	if (r.depth == 0)
		gap(&r);
	free(text);
}

enum screen
screen_text(const char *sql, size_t len, const struct screen_limits *l,
    char *why, size_t size, long *at)
{
	struct reader r = { .at = sql,
		.end = sql + len,
		.limits = l,
		.token = sql };

	*at = -1;
	if (len > l->bytes_max) {
		snprintf(why, size, "the text is %zu bytes long, %zu at most",
		    len, l->bytes_max);
		return SCREEN_TOO_LARGE;
	}
	if (len > 0 && memchr(sql, '\0', len) != NULL) {
		snprintf(why, size,
		    "the text contains a NUL character, "
		    "or bytes that are not UTF-8");
		*at = (long)strnlen(sql, len);
		return SCREEN_NUL;
	}
	if (!text_is_utf8(sql, len)) {
		snprintf(why, size, "the text is not valid UTF-8");
		return SCREEN_NOT_UTF8;
	}
	while (r.at < r.end)
		if (!step(&r)) {
			*at = (long)(r.at - sql) - 1;
			snprintf(why, size, "%s, %zu at most",
			    r.ops > l->operator_run_max
				? "too many operator characters in a row"
				: "too many comments one in another",
			    r.ops > l->operator_run_max ? l->operator_run_max
							: l->comment_depth_max);
			return SCREEN_TOO_COMPLEX;
		}
	return SCREEN_FINE;
}
