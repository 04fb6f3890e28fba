/* peer: who is at the other end of a unix socket, from the kernel */
#ifndef AIRLOCK_WIRE_PEER_H
#define AIRLOCK_WIRE_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* pidfd is owned: -1 where the kernel gives none (SO_PEERPIDFD is Linux 6.5;
 * before it pidfd_open(2) right after SO_PEERCRED). */
struct peer {
	pid_t pid; /* 0: not known */
	uid_t uid;
	gid_t gid;
	int pidfd;
};

int peer_read(int fd, struct peer *out, struct err *e) MUST_CHECK;
void peer_release(struct peer *p);
/* False once the process has ended. */
bool peer_is_alive(const struct peer *p);

#endif
