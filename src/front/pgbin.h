/* pgbin: where the machine's own PostgreSQL programs are */
#ifndef AIRLOCK_FRONT_PGBIN_H
#define AIRLOCK_FRONT_PGBIN_H

#include "base/err.h"

/*
 * Gives a directory with initdb, postgres and psql in it.  `major` is the
 * version that must be found ("15", of a cluster that is there), or NULL for
 * the newest: pg_config's, then Debian's and Red Hat's places, then PATH.
 */
int pgbin_find(const char *major, char **dir, struct err *e) MUST_CHECK;

#endif
