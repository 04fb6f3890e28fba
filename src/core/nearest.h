/* nearest: names that an agent may have meant, of those that it may see */
#ifndef AIRLOCK_CORE_NEAREST_H
#define AIRLOCK_CORE_NEAREST_H

#include "pg/pool.h"
#include "sql/facts.h"

/* Whether an SQLSTATE is about a name: 42P01 (relation), 42703 (column). */
bool nearest_fits(const char *state);
/*
 * Asks for the names near the one that stands at `name` in the agent's text:
 * relations that the login has a privilege on (*f is not looked at), or columns
 * that it may read of the relations in *f.  done gets "a, b, c" (lent), or ""
 * where none is near. What is given is over with done or nearest_cancel.
 */
struct nearest;
typedef void nearest_done(void *arg, const char *names);
struct nearest *nearest_ask(struct pool *p, const char *state, const char *name,
    const struct facts *f, nearest_done *done, void *arg);
void nearest_cancel(struct nearest *n);

/* Letters to insert, leave out, replace or swap; more than 3 is far. */
#define NEAREST_FAR 4
int nearest_distance(const char *a, const char *b);

#endif
