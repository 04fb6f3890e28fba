/* cluster: the files of an embedded PostgreSQL: made, mapped, found stale */
#ifndef AIRLOCK_FRONT_CLUSTER_H
#define AIRLOCK_FRONT_CLUSTER_H

#include <stdbool.h>

#include "base/err.h"
#include "front/child.h"
#include "front/statedir.h"

#define CLUSTER_SUPERUSER "airlock"
#define CLUSTER_DATABASE "airlock"
#define CLUSTER_PORT "5432" /* only the name of a socket in run */

struct cluster {
	int fd;     /* STATE/embedded */
	int log_fd; /* STATE/embedded/log */
	char *path, *data, *run;
	char *bindir;
	bool is_new; /* cluster_set_up is still to be done */
};

/* Opens STATE/embedded and makes the cluster where there is none that was ever
 * finished. */
int cluster_open(const struct statedir *s, struct cluster *c,
    struct err *e) MUST_CHECK;
void cluster_close(struct cluster *c);
/* Stops a server that an earlier daemon left behind. */
int cluster_stop_stale(struct cluster *c, struct err *e) MUST_CHECK;
/* Starts the server; it is not ready yet. */
int cluster_serve(struct cluster *c, struct child *out,
    struct err *e) MUST_CHECK;
/* True once the server with this pid takes connections. */
bool cluster_is_ready(const struct cluster *c, pid_t pid);
/* Makes logins and database, runs init_file (or NULL), grants, and marks the
 * cluster as finished. */
int cluster_set_up(struct cluster *c, const char *init_file,
    struct err *e) MUST_CHECK;
/* Logs the last lines that the server or the set-up said. */
void cluster_log_tail(const struct cluster *c);

#endif
