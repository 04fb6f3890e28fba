/* child: programs that the daemon starts and waits for with a deadline */
#ifndef AIRLOCK_FRONT_CHILD_H
#define AIRLOCK_FRONT_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct child {
	pid_t pid;
	int pidfd; /* readable once it has ended */
};

struct child_options {
	const char *const *argv; /* NULL-ended; argv[0] is the program's path */
	int input, output;       /* -1: /dev/null; errors go to output too */
	int death_signal;        /* what it gets when the daemon dies */
	bool session;            /* of its own: a terminal's ^C is not for it */
};

int child_start(const struct child_options *o, struct child *out,
    struct err *e) MUST_CHECK;
/* Waits and reaps; *status as waitpid(2) gives it.  ERR_LIMIT: not ended after
 * timeout_ms, and still running. */
int child_wait(struct child *c, int timeout_ms, int *status,
    struct err *e) MUST_CHECK;
/* Kills it where it still runs, and reaps it. */
void child_kill(struct child *c);
/* Starts, waits and wants exit code 0; kills it after timeout_ms. */
int child_run(const struct child_options *o, int timeout_ms,
    struct err *e) MUST_CHECK;

#endif
