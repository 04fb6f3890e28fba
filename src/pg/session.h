/* session: the settings every link is pinned to, and the questions it is ready
 * to ask */
#ifndef AIRLOCK_PG_SESSION_H
#define AIRLOCK_PG_SESSION_H

#include <stdbool.h>

#include "base/err.h"
#include "pg/batch.h"
#include "pg/link.h"

struct session_options {
	const char *search_path; /* pg_temp is put last where it is not named */
	int lock_timeout_ms;
	int statement_timeout_ms;
};

/* "-c name=value ..." for the start of a session: DISCARD ALL returns to it. */
char *session_startup(const struct session_options *o);

/* What a session says about itself when it begins. */
struct session_facts {
	int version; /* 150020 */
	bool superuser, replication, bypassrls, createrole, server_files;
	bool standby, track_counts, owns_tables;
	char user[64], database[64];
	char system[24]; /* system identifier */
	char timeline[12];
	char started[40]; /* pg_postmaster_start_time() as text */
};

/* The same server, not started again since. */
bool session_is_same_server(const struct session_facts *a,
    const struct session_facts *b);

/* The first batch of a fresh link: prepares, and asks for the facts. */
struct batch *session_begin(const struct link *l);
/* Reads its answer: ERR_UNFIT for a pooler in between, track_counts off, a
 * standby or settings that do not hold; ERR_DATABASE else. */
int session_began(const struct link *l, const struct batch *b,
    struct session_facts *f, struct err *e) MUST_CHECK;
/* The batch that makes a used link as good as new, where session_is_as_begun
 * says so of *looked; else session_renew does it. */
struct batch *session_clean(const struct link *l, size_t *looked);
struct batch *session_renew(const struct link *l);
/* The batch that ends a transaction by ROLLBACK, which takes back all that is
 * transactional, and looks at the rest; looked NULL: does not. */
struct batch *session_unwind(size_t *looked);
/* Of a look: nothing of it remained, and what is prepared is what session_begin
 * prepared. */
bool session_is_as_begun(const struct link *l, const struct batch *b, size_t i);
/* A link is reused only where the server lets its counters be flushed. */
bool session_can_clean(const struct link *l);

/* Whether there is a cursor WITH HOLD, whose query COMMIT runs. */
#define SESSION_HOLDS                                                          \
	"EXISTS (SELECT FROM pg_catalog.pg_cursor() AS airlock_h"              \
	" WHERE airlock_h.is_holdable)"

/* Asks, as a text, whether what is prepared is what session_begin prepared: a
 * function can have replaced it, so that counters say what it likes; and that
 * no cursor is held. */
size_t session_vouch(struct batch *b);
bool session_vouched(const struct batch *b, size_t i);
/* A statement of the batch failed for want of what is prepared. */
bool session_misses(const struct batch *b);
/* Prepares all that anew: a function can take it away, also for good where it
 * fails itself, since no ROLLBACK brings it back. */
void session_prepare(struct batch *b);

/*
 * What we ask runs under the search path of who asked, where an operator for
 * just its two types stands before one of pg_catalog that needs a cast, however
 * it came there.  So all our SQL, here and elsewhere, names functions and types
 * by their schema and compares what pg_catalog has an operator for: an oid with
 * '11' and not with 11, a name with a pattern that is cast to text.
 */
/* Prepared on every link: */
/* All pins for the transaction: $1 lock_timeout, $2 statement_timeout,
 * $3 idle_in_transaction_session_timeout (all ms), $4 application_name,
 * $5 search_path.  Answers what the settings were, for session_moved. */
#define SESSION_PIN "airlock_pin"
/*
 * What a statement between two of them, `was` and `is`, did to the settings.
 * A statement with RETURNING prints its rows when all of it has run, triggers
 * too, so what it leaves is what its images were printed by.  *name: one that
 * moved.
 */
enum session_moved {
	SESSION_SAME,
	SESSION_IMAGES, /* its images are not as ours are printed */
	SESSION_RULES,  /* nothing about it can be relied on */
};
enum session_moved session_moved(const struct batch *b, size_t was, size_t is,
    const char *search_path, const char **name);
/* Transaction id (64 bit), its 32-bit form, exported snapshot, next multixact,
 * and the search path as it comes to for this login. */
#define SESSION_OPEN "airlock_open"
/* Relations that the transaction wrote; $1: oids of the system catalogs (NULL:
 * looked up).
 * Columns as enum session_count. */
#define SESSION_COUNTS "airlock_counts"
enum session_count {
	COUNT_OID,
	COUNT_NAME, /* schema.name, quoted where it must be */
	COUNT_KIND, /* relkind */
	COUNT_PERSISTENCE,
	COUNT_LOCKS, /* lock modes, comma list */
	COUNT_INSERTED,
	COUNT_UPDATED,
	COUNT_DELETED,
	COUNT_CATALOG, /* "t": a system catalog, found by its counters */
	COUNT_ROOT,    /* the top-level partitioned table's name, or null */
	COUNT_TRIGGERS,
	COUNT_DEFERS, /* "t": of its triggers, some may be deferred */
};

#endif
