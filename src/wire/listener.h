/* listener: a unix socket that appears at its path whole or not at all */
#ifndef AIRLOCK_WIRE_LISTENER_H
#define AIRLOCK_WIRE_LISTENER_H

#include <event2/event.h>
#include <sys/types.h>

#include "base/err.h"
#include "wire/peer.h"

/*
 * Bound under a private name in the same directory, given its mode and (when
 * not (gid_t)-1) its group, then renamed into place.  A socket file that a
 * dead daemon left is replaced; one that somebody answers on is ERR_UNFIT.
 */
struct listener;
struct listener_options {
	const char *path; /* lent for the call */
	mode_t mode;
	gid_t group;
	int connections_max; /* above it a new connection is closed at once */
};
/* Gives fd and *peer (its pidfd too).  The callee closes fd when done and calls
 * listener_left once. */
typedef void listener_accept(void *arg, int fd, struct peer *peer);

int listener_open(struct event_base *base, const struct listener_options *o,
    listener_accept *accept, void *arg, struct listener **out,
    struct err *e) MUST_CHECK;
void listener_left(struct listener *l);
/* Closes and removes the file (only if it is still ours). */
void listener_close(struct listener *l);

#endif
