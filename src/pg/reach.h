/* reach: what a statement would run on this server, and whether it still would
 */
#ifndef AIRLOCK_PG_REACH_H
#define AIRLOCK_PG_REACH_H

#include <stdbool.h>

#include "base/err.h"
#include "pg/pool.h"
#include "sql/facts.h"

/* What is let through; see rule/functions.h. */
struct reach_rules {
	const char *harmless;   /* array literal: names in pg_catalog, and
	                           "extension.function" */
	const char *outside;    /* regular expression: names in pg_catalog */
	const char *extensions; /* array literal */
};

/*
 * What was found for all that a statement names, by oid on the server itself:
 * functions named, and those behind views, row security policies, operators,
 * casts, types, aggregates and defaults of arguments.  `function` is the first
 * that must not be called, NULL where there is none; a read must call no
 * VOLATILE function but a harmless one, nothing may reach outside.
 */
struct reach {
	char *function; /* "public.f(integer)" */
	char *name;     /* "f" */
	char *through;  /* "view public.v"; NULL: the statement itself */
	bool outside;
	bool own_code;   /* calls nothing but what comes with PostgreSQL */
	char *temporary; /* a name that a temporary table has taken, or NULL */
};

struct reach_list;
struct reach_list *reach_list_new(struct pool *p, const struct reach_rules *r);
void reach_list_free(struct reach_list *l);

/* Whether there is nothing in the statement that could lead anywhere. */
bool reach_is_empty(const struct facts *f);
/* What is remembered, or NULL; lent until reach_release.  It may be stale:
 * reach_before says so in time, reach_after afterwards. */
const struct reach *reach_cached(struct reach_list *l, const struct facts *f,
    bool write);
/* Asks the control link; ERR_GONE where the catalog does not answer, ERR_DENIED
 * where the login may not look into a schema that is named.  Only what is let
 * through is remembered. */
typedef void reach_learned(void *arg, const struct reach *r,
    const struct err *e);
void reach_learn(struct reach_list *l, const struct facts *f, bool write,
    reach_learned *learned, void *arg);
void reach_release(struct reach_list *l, const struct reach *r);
/* Oids of all functions that were found, as an array literal; lent like r. */
const char *reach_functions(const struct reach *r);
/* It was stale: forgets it. */
void reach_drop(struct reach_list *l, const struct reach *r);

/*
 * Whether the definitions are still those that were judged is asked in one of
 * two ways.  The long one makes their stamp again.  The short one compares
 * snapshots: a definition changes only by the commit of a transaction that has
 * an id, and each such commit makes the next snapshot's text another (its id
 * leaves the list of those in progress, or the upper end moves; prepared
 * transactions stand in the list until COMMIT PREPARED, subtransactions commit
 * with the one above).  So under the very snapshot at which the stamp was found
 * right it is right.  Name lookups of the server may see more than a snapshot,
 * never less than it: what they saw of a later commit makes the later snapshot
 * another too.  Changes in place have no id, but neither have they a new xmin
 * for the stamp to see; they define nothing.  Ids that come again after a crash
 * are met by forgetting all when the server's start or the control link is
 * another (pool_generation).
 *
 * Both must be asked under READ COMMITTED, or by the first statement of their
 * transaction: else they look at an old snapshot.
 */
enum reach_way { REACH_SHORT, REACH_LONG };
/* Short where it promises to be enough: a failure stands in the server's log.
 */
enum reach_way reach_way(const struct reach_list *l, const struct reach *r);
/* Adds a statement that fails where the definitions are others now, or, the
 * short way, might be: then it is to be asked again, the long way. */
size_t reach_before(const struct reach *r, enum reach_way way, struct batch *b);
/* Reads its answer, if it did not fail. */
void reach_before_read(struct reach_list *l, const struct reach *r,
    enum reach_way way, const struct batch *b, size_t i);
/* It failed, and for that reason. */
bool reach_says_no(const struct batch *b, size_t i);
/* Adds an optional one, as a text that nothing in a session can feign, and
 * reads its answer: whether they are surely the same. */
size_t reach_after(struct batch *b);
bool reach_after_read(const struct reach *r, const struct batch *b, size_t i);
/* The same of what reach_after's cell said (NULL: it failed), for one who reads
 * what reach_before gave later. */
bool reach_is_of(const struct reach *r, const char *snapshot);
/* The same question over the control link: ERR_UNFIT where they changed. */
typedef void reach_verified(void *arg, const struct err *e);
void reach_verify(struct reach_list *l, const struct reach *r,
    reach_verified *done, void *arg);
/* What every session prepares under these names. */
#define REACH_SESSION "airlock_same"
extern const char reach_same_sql[];
#define REACH_SESSION_NOW "airlock_now"
extern const char reach_now_sql[];
/* Neither learned nor done is called for this arg any more. */
void reach_forget(struct reach_list *l, const void *arg);

#endif
