/* screen: what a statement must pass before any parser sees it */
#include "sql/screen.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/*
 * Where the reading is.  `ops` counts operator characters in a row outside of
 * comments.  `opened` counts comments that opened within one unbroken run of
 * such characters, comments included: the scanner reads that run anew for
 * each of them.
 */
struct reader {
	const char *at, *end;
	const struct screen_limits *limits;
	size_t ops, opened, depth;
};

static bool
is_operator(char c)
{
	return c != '\0' && strchr("~!@#^&|`?+-*/%<>=", c) != NULL;
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
 * line. */
static bool
goes_on(struct reader *r, char quote)
{
	const char *p = r->at;
	bool line = false;

	for (; p < r->end && strchr(" \t\n\r\f\v", *p) != NULL; p++)
		line = line || *p == '\n' || *p == '\r';
	if (p == r->end || *p != quote || (!line && p != r->at))
		return false;
	r->at = p;
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

static bool
step(struct reader *r)
{
	bool (*read)(struct reader * r) = NULL;

	if (next_is(r, "--"))
		read = line_comment;
	else if (*r->at == '$')
		read = dollar;
	else if (is_word_start(*r->at))
		read = word;
	if (next_is(r, "/*")) {
		r->ops = 0;
		return comment(r);
	}
	if (read == NULL && *r->at != '\'' && *r->at != '"')
		return plain(r);
	r->opened = r->ops = 0;
	return read != NULL ? read(r) : quoted(r, false);
}

enum screen
screen_text(const char *sql, size_t len, const struct screen_limits *l,
    char *why, size_t size)
{
	struct reader r = { .at = sql, .end = sql + len, .limits = l };

	if (len > l->bytes_max) {
		snprintf(why, size, "the text is %zu bytes long, %zu at most",
		    len, l->bytes_max);
		return SCREEN_TOO_LARGE;
	}
	if (len > 0 && memchr(sql, '\0', len) != NULL) {
		snprintf(why, size, "the text contains a NUL character");
		return SCREEN_NUL;
	}
	if (!text_is_utf8(sql, len)) {
		snprintf(why, size, "the text is not valid UTF-8");
		return SCREEN_NOT_UTF8;
	}
	while (r.at < r.end)
		if (!step(&r)) {
			snprintf(why, size, "%s",
			    r.ops > l->operator_run_max
				? "too many operator characters in a row"
				: "too many comments one in another");
			return SCREEN_TOO_COMPLEX;
		}
	return SCREEN_FINE;
}
