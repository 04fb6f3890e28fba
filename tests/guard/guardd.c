/* guardd: the operator guard alone behind two sockets, for the scenarios */
/*
 *	guardd DIR UID [HOST ...]
 *
 * Listens on DIR/agent and DIR/control.  Who connects to the first is told
 * "seen" or "unseen" and kept.  Who connects to the second gets a nonce, sends
 * it back with credentials and is told "allow" or "deny RULE TEXT".  UID is
 * that of the agents; HOSTs stand in for the built-in list.
 */
#include <err.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "core/guard.h"
#include "wire/peer.h"

#define CONNS_MAX 256

struct conn {
	struct peer peer;
	int fd;
	char nonce[33];
};
static struct conn conns[CONNS_MAX];
static struct pollfd fds[CONNS_MAX + 2]; /* the listeners come last */

static int
listen_at(const char *dir, const char *name)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", dir, name);
	if (fd == -1 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == -1 ||
	    chmod(sa.sun_path, 0666) == -1 || listen(fd, 128) == -1)
		err(1, "%s", sa.sun_path);
	return fd;
}

static void
say(int fd, const char *s)
{
	if (send(fd, s, strlen(s), MSG_NOSIGNAL) == -1)
		warn("send");
}

static void
hang_up(struct conn *c)
{
	close(c->fd);
	peer_release(&c->peer);
	c->fd = -1;
}

static void
greet(struct guard *g, int listener, bool is_agent)
{
	struct conn *c = conns;
	struct err e = ERR_INIT;
	unsigned char raw[16];
	char line[40];
	int on = 1;

	while (c < conns + CONNS_MAX && c->fd != -1)
		c++;
	if (c == conns + CONNS_MAX)
		errx(1, "too many connections");
	c->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (c->fd == -1)
		err(1, "accept");
	if (peer_read(c->fd, &c->peer, &e) == -1)
		errx(1, "%s", e.text);
	c->nonce[0] = '\0';
	if (is_agent) {
		say(c->fd,
		    guard_saw_client(g, &c->peer) ? "seen\n" : "unseen\n");
		return;
	}
	setsockopt(c->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	mem_random(raw, sizeof(raw));
	text_hex(c->nonce, raw, sizeof(raw));
	snprintf(line, sizeof(line), "%s\n", c->nonce);
	say(c->fd, line);
}

/* The pid that the kernel put beside the bytes; 0 where it put none. */
static pid_t
receive(int fd, char *buf, size_t size, ssize_t *n)
{
	union {
		struct cmsghdr h;
		char space[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	struct cmsghdr *h;
	struct ucred cred;

	*n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	h = *n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (h == NULL || h->cmsg_type != SCM_CREDENTIALS)
		return 0;
	memcpy(&cred, CMSG_DATA(h), sizeof(cred));
	return cred.pid;
}

static void
answer(struct guard *g, struct conn *c)
{
	char buf[64], line[600];
	struct err e = ERR_INIT;
	ssize_t n;
	pid_t pid = receive(c->fd, buf, sizeof(buf), &n);
	const char *rule;

	if (c->nonce[0] != '\0' && n > 0) {
		if (n < 32 || memcmp(buf, c->nonce, 32) != 0)
			pid = 0;
		if (guard_check(g, &c->peer, pid, &e) == 0) {
			say(c->fd, "allow\n");
		} else {
			rule = strstr(e.text, "rule ");
			snprintf(line, sizeof(line), "deny %c %s\n",
			    rule != NULL ? rule[5] : '?', e.text);
			say(c->fd, line);
		}
	}
	hang_up(c);
}

int
main(int argc, char **argv)
{
	struct guard_options o = { .mode = GUARD_ANCESTRY };
	struct err e = ERR_INIT;
	struct guard *g;
	long long uid;
	int i;

	if (argc < 3 || text_to_long(argv[2], 0, 0x7fffffff, &uid, &e) == -1)
		errx(1, "usage: guardd DIR UID [HOST ...]");
	log_init("guardd", LOG_INFO);
	o.hosts = argc > 3 ? argv + 3 : NULL;
	g = guard_new(&o);
	guard_add_agent_uid(g, (uid_t)uid);
	for (i = 0; i < CONNS_MAX; i++)
		conns[i].fd = -1;
	fds[CONNS_MAX].fd = listen_at(argv[1], "agent");
	fds[CONNS_MAX + 1].fd = listen_at(argv[1], "control");
	puts("ready");
	fflush(stdout);
	for (;;) {
		for (i = 0; i < CONNS_MAX + 2; i++) {
			if (i < CONNS_MAX)
				fds[i].fd = conns[i].fd;
			fds[i].events = POLLIN;
		}
		if (poll(fds, CONNS_MAX + 2, -1) == -1)
			err(1, "poll");
		for (i = 0; i < CONNS_MAX; i++)
			if (fds[i].revents != 0)
				answer(g, &conns[i]);
		for (i = 0; i < 2; i++)
			if (fds[CONNS_MAX + i].revents != 0)
				greet(g, fds[CONNS_MAX + i].fd, i == 0);
	}
}
