/* resolve: host names to addresses in a child process, since libpq blocks */
#ifndef AIRLOCK_PG_RESOLVE_H
#define AIRLOCK_PG_RESOLVE_H

#include <event2/event.h>

#include "base/err.h"

/*
 * Rewrites the hosts of a parsed connection string: each name becomes as many
 * (host, hostaddr, port) triples as it has addresses, so that libpq never asks
 * a resolver while TLS still sees the name.  Sockets and numeric addresses are
 * answered without a child.  done comes from the loop, once: hosts is NULL on
 * failure.
 */
struct resolve_hosts {
	const char *host, *hostaddr, *port; /* comma lists, lent; hostaddr NULL
	                                       where nothing is to be set */
};
typedef void resolve_done(void *arg, const struct resolve_hosts *hosts,
    const struct err *e);
struct resolve;
struct resolve *resolve_start(struct event_base *base, const char *host,
    const char *hostaddr, const char *port, resolve_done *done, void *arg);
void resolve_cancel(struct resolve *r);

#endif
