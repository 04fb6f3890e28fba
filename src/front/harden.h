/* harden: what a process that holds secrets does to itself first */
#ifndef AIRLOCK_FRONT_HARDEN_H
#define AIRLOCK_FRONT_HARDEN_H

#include "base/err.h"

/* Descriptors 0 to 2 that are closed are opened on /dev/null, so that nothing
 * else of ours can take their place.  Before anything is opened. */
void harden_descriptors(void);
/* Not dumpable, no core files, umask 077, no new privileges, SIGPIPE ignored,
 * as many descriptors as may be had. */
int harden_process(struct err *e) MUST_CHECK;
/* Removes PG* and LD_* from the environment, after they have been read. */
void harden_environment(void);
/* Overwrites an argument where ps(1) would show it. */
void harden_wipe_argument(char *arg);

#endif
