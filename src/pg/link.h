/* link: one connection to PostgreSQL that never blocks the loop */
#ifndef AIRLOCK_PG_LINK_H
#define AIRLOCK_PG_LINK_H

#include <event2/event.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "pg/batch.h"

/*
 * A link connects (names are resolved in a child process, since libpq would
 * block), goes into pipeline mode, and then takes one batch at a time.
 *
 *   up     once, when it is connected
 *   down   once, when it failed to connect or was lost; the link is dead and
 *          is to be freed by link_free.  A batch under way is told first.
 *
 * All callbacks come from the loop, never from inside a call, and may free the
 * link.
 */
struct link;
struct link_events {
	void (*up)(void *arg, struct link *l);
	void (*down)(void *arg, struct link *l, const struct err *e);
};
struct link_options {
	const char *conninfo; /* libpq connection string */
	const char *options; /* "-c name=value ..." of ours, after the user's */
	const char *application_name;
	int connect_timeout_ms;
	size_t row_bytes_max; /* a row whose values are more than that loses the
	                         link: ERR_LIMIT */
	bool keeps; /* what batch_add_kept says is prepared, and stays so: no
	               text but ours may run here */
};

/* Options are copied.  Never NULL: what is wrong with them is told by down. */
struct link *link_new(struct event_base *base, const struct link_options *o,
    const struct link_events *events, void *arg);
/* Closes at once (the server rolls back); a batch under way is dropped without
 * a call. NULL is fine. */
void link_free(struct link *l);

/* Lends the batch, which is freed afterwards.  Where batch_is_lost, the link is
 * dead; whoever frees it here is not told down. */
typedef void link_done(void *arg, struct link *l, struct batch *b);
/* Takes b.  The link must be up and idle. */
void link_run(struct link *l, struct batch *b, link_done *done, void *arg);
/* Rows of the batch under way are not given (batch_rows) until link_go_on; the
 * server waits when it has sent what the socket and a buffer take.  May be
 * called by the one that is given a row, which is the last then. */
void link_hold(struct link *l);
void link_go_on(struct link *l);
bool link_is_up(const struct link *l);
bool link_is_idle(const struct link *l);
/* Ends the link as if the server had closed it: down is told from the loop. */
void link_fail(struct link *l, const char *why);

int link_backend_pid(const struct link *l);
int link_server_version(const struct link *l); /* 150020 */
PGTransactionStatusType link_transaction(const struct link *l);
/* What the client's encoding must be: UTF8, but SQL_ASCII where the database is
 * in that, whose server would not send bytes that are no UTF-8 otherwise. */
const char *link_encoding(const struct link *l);
/* Reported settings as they must be, the encoding among them (ERR_UNFIT). */
int link_check_pins(const struct link *l, struct err *e) MUST_CHECK;
/* The last WARNING of the server on this link, "" where none came. */
const char *link_warning(const struct link *l);

/* SQLSTATE of a failed result ("" where it has none), and its primary message.
 */
const char *result_sqlstate(const PGresult *r);
/* ERR_DENIED where a privilege is missing, be it only to look into a schema;
 * else ERR_DATABASE. */
enum err_code result_err(const PGresult *r);
const char *result_message(const PGresult *r);

#endif
