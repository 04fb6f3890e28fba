/* rewrite: splices text into an agent's statement at token positions, and
 * proves by parse trees that nothing else changed */
#ifndef AIRLOCK_SQL_REWRITE_H
#define AIRLOCK_SQL_REWRITE_H

#include <stddef.h>

#include "base/err.h"

/*
 * What is to be added to a single INSERT, UPDATE or DELETE.  Each fragment is
 * parsed alone first and must be just what it says; NULL adds nothing.
 *   from       one FROM item: "(SELECT ...) AS b"    (UPDATE: FROM, DELETE:
 * USING) where      one boolean expression, ANDed to the agent's in parentheses
 *   returning  a target list, put behind the agent's own
 */
struct rewrite_edit {
	const char *from;
	const char *where;
	const char *returning;
};

/* Where inserted text went, to map the server's error positions back: at byte
 * `at` of the agent's text, `len` bytes were inserted. */
struct rewrite_insert {
	long at;
	long len;
};
#define REWRITE_INSERTS_MAX 6

struct rewrite_result {
	char *sql; /* owned */
	struct rewrite_insert inserts[REWRITE_INSERTS_MAX];
	size_t ninserts;
};

/* ERR_INPUT: a fragment is not what it says, or the statement is not of a
 * shape that can be spliced.  ERR_UNFIT: the proof failed; never run it. */
int rewrite(const char *sql, const struct rewrite_edit *edit,
    struct rewrite_result *out, struct err *e) MUST_CHECK;
void rewrite_result_release(struct rewrite_result *r);
void rewrite_result_copy(struct rewrite_result *to,
    const struct rewrite_result *from);
/* A byte position in the rewritten text, as one of the agent's text; a
 * position inside inserted text gives -1. */
long rewrite_map_back(const struct rewrite_insert *v, size_t n, long position);

#endif
