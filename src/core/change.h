/* change: one held transaction from proposal to its end */
#ifndef AIRLOCK_CORE_CHANGE_H
#define AIRLOCK_CORE_CHANGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/gate.h"
#include "diff/store.h"

/* The end of an asynchronous call into the core. */
struct outcome {
	bool ok;
	const char *code;   /* not ok: a reason's code, "SQLSTATE 23505", or
	                       NOT_FOUND, DIGEST_MOVED, DIGEST_UNKNOWN,
	                       ALREADY_DECIDED */
	const char *text;   /* not ok: the whole tool error, "REFUSED CODE: ..."
	                       or "ERROR SQLSTATE: ..."; lent */
	const json_t *json; /* ok: the result object; lent, may be NULL */
	const json_t *was;  /* DIGEST_MOVED: what the change was at that digest,
	                       as ctl.h has it, json being its header; lent */
};
typedef void outcome_done(void *arg, const struct outcome *o);

/* A call under way; cancelling it stops the statement in the server too and
 * done is not called. */
struct call;
void call_cancel(struct call *c);

struct proposal {
	const char *sql;
	size_t sql_len;
	const json_t *params;  /* array of strings and nulls, or NULL; lent for
	                          the call */
	const char *intent;    /* or NULL */
	const char *change_id; /* adds to this held change, or NULL */
};
/* db_execute.  json is what issue's `db_execute` result says. NULL is never
 * returned; done comes later, from the loop. */
struct call *change_propose(struct gate *g, struct agent *a,
    const struct proposal *p, outcome_done *done, void *arg);

struct read_request {
	const char *sql;
	size_t sql_len;
	const json_t *params;
	long max_rows;         /* 0: the default */
	const char *change_id; /* read inside this held change, or NULL */
};
/* db_query (core/query.c). */
struct call *query_run(struct gate *g, struct agent *a,
    const struct read_request *r, outcome_done *done, void *arg);
/* db_schema (core/query.c): table NULL lists, else one table in full. */
struct call *schema_run(struct gate *g, struct agent *a, const char *table,
    outcome_done *done, void *arg);

/* db_status: one change of this agent's, or all (change_id NULL); wait_ms waits
 * until the one is decided. */
struct call *change_status_call(struct gate *g, struct agent *a,
    const char *change_id, long wait_ms, outcome_done *done, void *arg);
/* db_withdraw. */
struct call *change_withdraw(struct gate *g, struct agent *a,
    const char *change_id, const char *reason, outcome_done *done, void *arg);

/* The operator's view: all that the digest covers, id, status, token, times. */
json_t *change_header(const struct change *c);
struct store *change_store(struct change *c); /* NULL once it has ended */
bool change_is_pending(const struct change *c);

/* The operator's verbs; the digest must be all 64 hex digits.  json of the
 * outcome is the change's header with its new status.  A digest that the change
 * has had is DIGEST_MOVED, any other DIGEST_UNKNOWN. */
void change_commit(struct gate *g, const char *id, const char *digest,
    const struct operator_peer *who, outcome_done *done, void *arg);
void change_rollback(struct gate *g, const char *id, const char *reason,
    const struct operator_peer *who, outcome_done *done, void *arg);

#endif
