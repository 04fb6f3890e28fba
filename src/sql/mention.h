/* mention: whether a condition speaks of the rows that are written */
#ifndef AIRLOCK_SQL_MENTION_H
#define AIRLOCK_SQL_MENTION_H

#include <pg_query/pg_query.pb-c.h>
#include <stdbool.h>

/* What the query calls the target: an alias alone, else [schema.]name. */
struct mention_target {
	const char *schema; /* or NULL */
	const char *name;
	bool is_alias;
};

/*
 * Whether some column in it can be the target's.  A bare name may be, unless
 * it stands in a subquery with a FROM of its own to take it from; a qualified
 * one is by its qualifier, unless a subquery's FROM has that name.
 */
bool mention_possible(const PgQuery__Node *where,
    const struct mention_target *target);

#endif
