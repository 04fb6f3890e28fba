/* pool: the links of one login: lent for one purpose at a time, cleaned after
 */
#ifndef AIRLOCK_PG_POOL_H
#define AIRLOCK_PG_POOL_H

#include <event2/event.h>
#include <stdbool.h>

#include "base/err.h"
#include "pg/link.h"
#include "pg/session.h"

/*
 * A pool keeps one control link (short questions, cancelling) that it
 * reconnects with backoff for as long as it lives, one idle spare, and lends
 * what is asked for up to links_max.  A link that is given back is cleaned (see
 * session_clean) before it is lent again, or closed.
 */
struct pool;
struct pool_options {
	const char *conninfo;    /* copied */
	const char *search_path; /* copied */
	int links_max;           /* lent at once, the control link apart */
	int connect_timeout_ms;
	int lock_timeout_ms;
	int statement_timeout_ms;
	size_t row_bytes_max;
};
/* Told when the control link comes up (e NULL) or goes down. */
typedef void pool_changed(void *arg, struct pool *p, const struct err *e);

struct pool *pool_new(struct event_base *base, const struct pool_options *o,
    pool_changed *changed, void *arg);
void pool_free(struct pool *p);
/* True for the pool that these options would make. */
bool pool_is_for(const struct pool *p, const struct pool_options *o);
bool pool_is_up(const struct pool *p);
/* Why it is down; empty while it is up. */
const char *pool_why(const struct pool *p);
const struct session_facts *pool_facts(const struct pool *p);
const char *pool_search_path(
    const struct pool *p); /* as pinned, pg_temp last */
int pool_lent(const struct pool *p);
/* Another number whenever the server may not be the one that it was, or have
 * been started again. */
unsigned pool_generation(const struct pool *p);

/* A link to use, or NULL and why not: ERR_LIMIT (all are lent, or the server
 * says that it takes no more), ERR_UNFIT, ERR_DATABASE.  Comes from the loop.
 */
typedef void pool_got(void *arg, struct link *l, const struct err *e);
/* The lent link was lost while no batch was under way, or its batch's done did
 * not drop it; it is gone, forget it. */
typedef void pool_lost(void *arg, const struct err *e);
struct ticket;
struct ticket *pool_get(struct pool *p, pool_got *got, pool_lost *lost,
    void *arg);
/* Before `got`: the link is no longer wanted. */
void pool_cancel(struct ticket *t);
/* Hands a lent link to another owner. */
void pool_transfer(struct pool *p, struct link *l, pool_lost *lost, void *arg);
/* Gives a link back, idle; it is cleaned. */
void pool_put(struct pool *p, struct link *l);
/* The same after one transaction that is to be rolled back (session_unwind);
 * what the link is set to stays.  Where it ran none but PostgreSQL's own code,
 * the session is looked at only now and then. */
void pool_put_unwound(struct pool *p, struct link *l, bool own_code);
#define POOL_SETTING_SIZE 96
/* Remembers what a lent link's session is to be set to beyond what it began
 * with, until it is cleaned; true where it has to be set. */
bool pool_set(struct pool *p, const struct link *l, const char *setting);
/* Closes a lent link, whatever it is doing: the server rolls back. */
void pool_drop(struct pool *p, struct link *l);

/* Runs a batch on the control link, after those that wait there.  Takes b; done
 * gets a lost batch where the link is down. */
void pool_ask(struct pool *p, struct batch *b, link_done *done, void *arg);
/* Forgets every question of this arg: their done is not called. */
void pool_forget(struct pool *p, const void *arg);
/* Stops the statement under way on a lent link (pg_cancel_backend over the
 * control link; the link is not lent to anybody else afterwards).  A question
 * that is asked after it is answered after it was done.  Where that
 * cannot be asked the link is failed. */
void pool_stop(struct pool *p, struct link *l);

#endif
