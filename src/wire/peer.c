/* peer: who is at the other end of a unix socket, from the kernel */
#include "wire/peer.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD /* older headers on a newer kernel */
#define SO_PEERPIDFD 77
#endif

/* The pid may already be another process's when pidfd_open is asked for it;
 * SO_PEERPIDFD has no such gap. */
static int
open_pidfd(int fd, pid_t pid)
{
	int pidfd = -1;
	socklen_t len = sizeof(pidfd);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
		return pidfd;
	if (errno != ENOPROTOOPT || pid <= 0)
		return -1;
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int
peer_read(int fd, struct peer *out, struct err *e)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	memset(&cred, 0, sizeof(cred));
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1)
		return err_sys(e, "cannot ask who the peer is");
	out->pid = cred.pid;
	out->uid = cred.uid;
	out->gid = cred.gid;
	out->pidfd = open_pidfd(fd, cred.pid);
	return 0;
}

void
peer_release(struct peer *p)
{
	if (p->pidfd != -1)
		close(p->pidfd);
	p->pidfd = -1;
}

bool
peer_is_alive(const struct peer *p)
{
	struct pollfd pfd = { .fd = p->pidfd, .events = POLLIN };

	/* Without a pidfd nothing proves that the pid is still the same. */
	return p->pidfd != -1 && poll(&pfd, 1, 0) == 0;
}
