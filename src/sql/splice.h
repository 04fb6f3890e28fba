/* splice: the tokens of one statement, and where its clauses begin and end */
#ifndef AIRLOCK_SQL_SPLICE_H
#define AIRLOCK_SQL_SPLICE_H

#include <pg_query/pg_query.pb-c.h>
#include <stddef.h>

#include "base/err.h"

struct splice_token {
	long start, end; /* bytes; end is behind the last */
	int depth;       /* brackets around it */
	PgQuery__Token what;
};

/* Comments, and semicolons around the statement, are left out. */
struct splice_tokens {
	struct splice_token *v;
	size_t n;
};

#define SPLICE_NONE ((size_t)-1)

int splice_scan(const char *sql, struct splice_tokens *t,
    struct err *e) MUST_CHECK;
void splice_release(struct splice_tokens *t);
/* The first token at byte `at` or behind it; t->n where there is none. */
size_t splice_at(const struct splice_tokens *t, long at);
/* The next clause keyword `what` outside brackets, from token `from` on and
 * before token `to`; SPLICE_NONE where there is none. */
size_t splice_find(const struct splice_tokens *t, size_t from, size_t to,
    PgQuery__Token what);

#endif
