/* embedded: a private PostgreSQL cluster that lives and dies with the daemon */
#ifndef AIRLOCK_FRONT_EMBEDDED_H
#define AIRLOCK_FRONT_EMBEDDED_H

#include <event2/event.h>

#include "base/err.h"
#include "front/statedir.h"

/*
 * STATE/embedded holds data/ (the cluster), run/ (its socket, 0700), log (what
 * the server and the set-up said) and `ready`, which is made last of all: a
 * cluster without it was never finished and is made anew.  The superuser is
 * "airlock", the database "airlock"; agents run as the plain logins of
 * rule/grants.h.  All are mapped from our own uid by peer authentication, so
 * the uid needs an entry in the passwd database.
 */
struct embedded;

/*
 * Blocks until the server takes connections, at most about two minutes when the
 * cluster is new.  A server that an earlier daemon left behind is stopped
 * first.  init_file (or NULL) is run once, when the cluster is new.
 */
int embedded_start(const struct statedir *s, const char *init_file,
    struct embedded **out, struct err *e) MUST_CHECK;
/* From now on a server that ends is started again. */
void embedded_watch(struct embedded *d, struct event_base *base);
/* Gives the connection string of one of the logins. */
char *embedded_dsn(const struct embedded *d, const char *login);
/* Stops the server (fast, at once after 30 seconds); accepts NULL. */
void embedded_stop(struct embedded *d);

#endif
