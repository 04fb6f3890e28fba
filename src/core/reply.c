/* reply: what an agent is told when a call does not go through */
#include "core/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pg/link.h"

#define SNIPPET_MAX 40

void
reply_release(struct reply *r)
{
	text_release(&r->text);
}

static void
begin(struct reply *r, const char *kind, const char *code)
{
	snprintf(r->code, sizeof(r->code), "%s", code);
	r->byte = -1;
	text_reset(&r->text);
	text_addf(&r->text, "%s %s: ", kind, code);
}

static void
advise(struct reply *r, enum reason reason)
{
	const char *advice = reasons[reason].advice;

	if (*advice != '\0')
		text_addf(&r->text, ". %s", advice);
}

static long
characters(const char *s, long bytes)
{
	long n = 0;

	for (long i = 0; i < bytes && s[i] != '\0'; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

/* Where in the agent's text, with a few words of it. */
static void
place(struct reply *r, const char *sql, long byte)
{
	size_t len;

	if (sql == NULL || byte < 0 || (size_t)byte > strlen(sql))
		return;
	len = strcspn(sql + byte, "\r\n");
	len = text_utf8_cut(sql + byte, len, SNIPPET_MAX);
	text_addf(&r->text, " (at character %ld", characters(sql, byte) + 1);
	if (len > 0) {
		text_add(&r->text, ", near \"");
		text_quote(&r->text, sql + byte, len);
		text_add(&r->text, "\"");
	}
	text_add(&r->text, ")");
}

void
reply_finding(struct reply *r, const struct finding *f, const char *sql)
{
	begin(r, "REFUSED", reasons[f->reason].code);
	text_add(&r->text, f->text);
	place(r, sql, f->position);
	advise(r, f->reason);
}

void
reply_reason(struct reply *r, enum reason reason, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	begin(r, "REFUSED", reasons[reason].code);
	text_quote(&r->text, text, strlen(text));
	advise(r, reason);
}

static const enum reason parser_reason[PARSER_NSTATUS] = {
	[PARSER_OK] = REASON_UNAVAILABLE,
	[PARSER_SYNTAX] = REASON_UNAVAILABLE, /* not a refusal, see below */
	[PARSER_TOO_LARGE] = REASON_STATEMENT_TOO_LARGE,
	[PARSER_TOO_COMPLEX] = REASON_STATEMENT_TOO_COMPLEX,
	[PARSER_NOT_UTF8] = REASON_INVALID_ENCODING,
	[PARSER_NUL] = REASON_INVALID_ENCODING,
	[PARSER_UNPROVED] = REASON_NOT_PROVED,
	[PARSER_BUSY] = REASON_TOO_MANY_CALLS,
	[PARSER_UNAVAILABLE] = REASON_UNAVAILABLE,
};

/* A syntax error is the server's own in all but name. */
void
reply_parser(struct reply *r, const struct parser_answer *a, const char *sql)
{
	enum reason reason = parser_reason[a->status];
	const char *what = *a->text != '\0' ? a->text : reasons[reason].meaning;

	if (a->status == PARSER_SYNTAX) {
		begin(r, "ERROR", "42601");
		text_quote(&r->text, a->text, strlen(a->text));
		place(r, sql, a->byte);
		text_add(&r->text,
		    ". Correct the statement at the place given");
		return;
	}
	begin(r, "REFUSED", reasons[reason].code);
	text_quote(&r->text, what, strlen(what));
	place(r, sql, a->byte);
	advise(r, reason);
}

/* The server counts characters of what was sent, from 1. */
static long
position_back(const char *sent, const char *position,
    const struct rewrite_insert *inserts, size_t ninserts)
{
	long chars = strtol(position, NULL, 10) - 1, byte = 0;

	while (chars > 0 && sent[byte] != '\0') {
		byte++;
		while (((unsigned char)sent[byte] & 0xc0) == 0x80)
			byte++;
		chars--;
	}
	return rewrite_map_back(inserts, ninserts, byte);
}

static void
field(struct reply *r, const PGresult *res, int code, const char *label)
{
	const char *v = PQresultErrorField(res, code);

	if (v == NULL)
		return;
	text_addf(&r->text, "%s", label);
	text_quote(&r->text, v, text_utf8_cut(v, strlen(v), 500));
	if (r->text.s[r->text.len - 1] == '.')
		r->text.s[--r->text.len] = '\0';
}

void
reply_server(struct reply *r, const PGresult *res, const char *sent,
    const char *sql, const struct rewrite_insert *inserts, size_t ninserts)
{
	const char *position =
	    PQresultErrorField(res, PG_DIAG_STATEMENT_POSITION);
	const char *message = result_message(res);

	begin(r, "ERROR", result_sqlstate(res));
	text_quote(&r->text, message,
	    text_utf8_cut(message, strlen(message), 1000));
	if (position != NULL && sent != NULL)
		r->byte = position_back(sent, position, inserts, ninserts);
	place(r, sql, r->byte);
	field(r, res, PG_DIAG_MESSAGE_DETAIL, ". Detail: ");
	field(r, res, PG_DIAG_MESSAGE_HINT, ". Hint: ");
	field(r, res, PG_DIAG_CONSTRAINT_NAME, ". Constraint: ");
}

void
reply_denied(struct reply *r, const struct err *e)
{
	begin(r, "ERROR", "42501");
	text_quote(&r->text, e->text, strlen(e->text));
}

void
reply_link(struct reply *r, const struct err *e, bool started)
{
	bool limit =
	    e->code == ERR_LIMIT; /* links in number, or a row's size */
	enum reason reason =
	    started ? (limit ? REASON_DIFF_TOO_LARGE : REASON_LOST)
		    : (limit ? REASON_TOO_MANY_CHANGES : REASON_DATABASE_DOWN);

	reply_reason(r, reason, "%s: %s", reasons[reason].meaning, e->text);
}

void
reply_nearest(struct reply *r, const char *names)
{
	if (*names != '\0')
		text_addf(&r->text, ". Names near it: %s", names);
	else
		text_add(&r->text, ". db_schema tells what there is");
}
