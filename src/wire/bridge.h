/* bridge: a client's standard streams on one side, airlockd on the other */
#ifndef AIRLOCK_WIRE_BRIDGE_H
#define AIRLOCK_WIRE_BRIDGE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Copies lines both ways with bounded buffers; a side that does not read stops
 * the other.  Only whole lines go to `out`.  While the daemon is not there each
 * request line is answered with an error of its id, and each new line tries to
 * connect again; when it goes away, so is each request that waits.  Nothing but
 * ids is remembered.
 */
struct bridge_options {
	const char *socket;    /* lent, as the rest */
	const char *owner_dir; /* see bridge_connect */
	const char *state_dir; /* for advice; NULL: not known */
	int in, out;
	int linger_ms; /* for answers after the end of input */
};

/* Returns when the input has ended, or `out` cannot be written. */
void bridge_run(const struct bridge_options *o);

/* A connection to `path`, if it is a socket of ours, root's or the owner of
 * owner_dir, and so is the listener behind it; or -1. */
int bridge_connect(const char *path, const char *owner_dir,
    struct err *e) MUST_CHECK;

#endif
