/* reply: what an agent is told when a call does not go through */
#ifndef AIRLOCK_CORE_REPLY_H
#define AIRLOCK_CORE_REPLY_H

#include <libpq-fe.h>

#include "base/text.h"
#include "core/parser.h"
#include "rule/verdict.h"

/*
 * Texts begin "REFUSED CODE: " (ours) or "ERROR SQLSTATE: " (the server's).
 * They name the fact, the place in the agent's own text (in characters, from
 * 1), and what would be accepted instead.
 */
struct reply {
	char code[24]; /* "NO_SUCH", "42P01" */
	long byte;     /* of a server's error in the agent's text, -1 */
	struct text text;
};

void reply_release(struct reply *r);
/* `sql` NULL: no place is named. */
void reply_finding(struct reply *r, const struct finding *f, const char *sql);
void reply_reason(struct reply *r, enum reason reason, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* The parser child's no. */
void reply_parser(struct reply *r, const struct parser_answer *a,
    const char *sql);
/* A failed result; inserts map its position back to the agent's text. */
void reply_server(struct reply *r, const PGresult *res, const char *sent,
    const char *sql, const struct rewrite_insert *inserts, size_t ninserts);
/* As reply_server, where the catalog was asked before the statement could be:
 * the login may not look into what it names. */
void reply_denied(struct reply *r, const struct err *e);
/* Adds what the name that is not there may have been; "" none. */
void reply_nearest(struct reply *r, const char *names);
/* A link that was lost, or could not be had. */
void reply_link(struct reply *r, const struct err *e, bool started);

#endif
