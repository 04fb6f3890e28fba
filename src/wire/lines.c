/* lines: a connection that carries one message a line, bounded both ways */
#include "wire/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#define CHUNK 65536     /* of one read */
#define KEEP_MAX 262144 /* a buffer that grew beyond it is given back */
#define FINISH_S 5

/*
 * in:  [ done | complete lines ... | partial line ]   out: [ written | queued ]
 *        ^in_at                ^scanned                      ^out_at
 *
 * Input is read only while `in` holds no complete line, so what is buffered is
 * one partial line and at most one chunk.  `busy` counts our frames below an
 * upward call: a lines_close from there only marks, the last frame frees.
 */
struct lines {
	struct event *readable, *writable, *again, *patience;
	struct lines_options o;
	const struct lines_events *events;
	void *arg;
	struct text in, out;
	size_t in_at, scanned, out_at;
	const char *failed;   /* why; told from `again` */
	pid_t pid, chunk_pid; /* who began the buffered line; who sent last */
	int fd, busy;
	bool closed, finishing, paused, full, discarding;
};

static size_t
queued(const struct lines *l)
{
	return l->out.len - l->out_at;
}

static void
release(struct lines *l)
{
	event_free(l->readable);
	event_free(l->writable);
	event_free(l->again);
	event_free(l->patience);
	text_release(&l->in);
	text_release(&l->out);
	free(l);
}

void
lines_close(struct lines *l)
{
	if (l == NULL || l->closed)
		return;
	l->closed = true;
	event_del(l->readable);
	event_del(l->writable);
	event_del(l->again);
	event_del(l->patience);
	close(l->fd);
	if (l->busy == 0)
		release(l);
}

static void
leave(struct lines *l)
{
	if (--l->busy == 0 && l->closed)
		release(l);
}

/* Downward calls never call back, so the failure is told from the loop. */
static void
fail(struct lines *l, const char *why)
{
	if (l->failed == NULL)
		l->failed = why;
	event_del(l->readable);
	event_del(l->writable);
	event_active(l->again, EV_TIMEOUT, 0);
}

static bool
wants_input(const struct lines *l)
{
	return !l->closed && !l->finishing && !l->paused && !l->full &&
	       l->failed == NULL;
}

static void
trim(struct text *t, size_t *at)
{
	if (*at == t->len) {
		if (t->size > KEEP_MAX)
			text_release(t);
		else
			text_reset(t);
		*at = 0;
	} else if (*at > CHUNK && *at > t->len / 2) {
		text_drop(t, *at);
		*at = 0;
	}
}

static void
flush(struct lines *l)
{
	while (queued(l) > 0) {
		ssize_t n = send(l->fd, l->out.s + l->out_at, queued(l),
		    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN) {
			event_add(l->writable, NULL);
			break;
		}
		if (n == -1) {
			fail(l, strerror(errno));
			return;
		}
		l->out_at += (size_t)n;
	}
	trim(&l->out, &l->out_at);
}

/* The queue has grown; one that waits for the peer is not tried again here. */
static void
push(struct lines *l)
{
	if (!event_pending(l->writable, EV_WRITE, NULL))
		flush(l);
	if (queued(l) > l->o.out_high && !l->full) {
		l->full = true;
		event_del(l->readable);
	}
	if (l->failed == NULL && queued(l) > l->o.out_max)
		fail(l, "the peer does not read, too much waits for it");
}

void
lines_send(struct lines *l, const char *p, size_t n)
{
	if (l->closed || l->finishing || l->failed != NULL)
		return;
	text_addn(&l->out, p, n);
	text_addc(&l->out, '\n');
	push(l);
}

static int
add_out(const char *p, size_t n, void *arg)
{
	struct lines *l = arg;

	text_addn(&l->out, p, n);
	return 0;
}

void
lines_send_json(struct lines *l, const json_t *j)
{
	size_t before = l->out.len;

	if (l->closed || l->finishing || l->failed != NULL)
		return;
	if (json_dump_callback(j, add_out, l, JSON_COMPACT | JSON_ENCODE_ANY) ==
	    -1) {
		log_warnx(
		    "a message cannot be written as JSON, and is dropped");
		l->out.len = before;
		if (l->out.s != NULL)
			l->out.s[before] = '\0';
		return;
	}
	text_addc(&l->out, '\n');
	push(l);
}

bool
lines_is_full(const struct lines *l)
{
	return l->full;
}

static void
tell_long(struct lines *l, const char *p, size_t n, bool last)
{
	bool first = !l->discarding;

	l->discarding = !last;
	if (first)
		l->events->too_long(l->arg);
	if (!l->closed && !l->finishing && l->events->piece != NULL)
		l->events->piece(l->arg, p, n, last);
}

static void
tell_line(struct lines *l, char *line, size_t len)
{
	if (l->discarding || len > l->o.line_max + 1 ||
	    (len == l->o.line_max + 1 && line[len - 1] != '\r')) {
		tell_long(l, line, len, true);
		return;
	}
	if (len > 0 && line[len - 1] == '\r')
		len--;
	line[len] = '\0';
	if (len > 0)
		l->events->line(l->arg, line, len, l->pid);
}

/* Tells complete lines for as long as they are wanted.  False where input is
 * no longer wanted, or *l has been closed. */
static bool
tell_lines(struct lines *l)
{
	while (wants_input(l)) {
		char *from = l->in.s + l->in_at, *end;
		size_t rest = l->in.len - l->scanned;

		end =
		    rest > 0 ? memchr(l->in.s + l->scanned, '\n', rest) : NULL;
		if (end == NULL) {
			l->scanned = l->in.len;
			break;
		}
		l->in_at = l->scanned = (size_t)(end - l->in.s) + 1;
		tell_line(l, from, (size_t)(end - from));
		l->pid = l->chunk_pid;
	}
	if (!wants_input(l))
		return false;
	trim(&l->in, &l->in_at);
	l->scanned = l->in.len;
	return true;
}

/* What is buffered is one partial line now. */
static void
cut_partial(struct lines *l)
{
	size_t len = l->in.len - l->in_at;

	if (len == 0 || (!l->discarding && len <= l->o.line_max + 1))
		return;
	tell_long(l, l->in.s + l->in_at, len, false);
	if (l->closed)
		return;
	l->in_at = l->scanned = l->in.len;
	trim(&l->in, &l->in_at);
	l->scanned = l->in.len;
}

static pid_t
sender(struct msghdr *msg)
{
	struct cmsghdr *c;
	pid_t pid = 0;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		struct ucred cred;

		if (c->cmsg_level != SOL_SOCKET ||
		    c->cmsg_type != SCM_CREDENTIALS ||
		    c->cmsg_len != CMSG_LEN(sizeof(cred)))
			continue;
		memcpy(&cred, CMSG_DATA(c), sizeof(cred));
		pid = cred.pid;
	}
	return pid;
}

/* The control buffer has room for credentials alone: descriptors that a peer
 * passes are dropped by the kernel. */
static ssize_t
receive(struct lines *l, char *p, size_t n)
{
	union {
		char space[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = p, .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t got;

	if (l->o.credentials) {
		msg.msg_control = control.space;
		msg.msg_controllen = sizeof(control.space);
	}
	do
		got = recvmsg(l->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (got == -1 && errno == EINTR);
	if (got > 0)
		l->chunk_pid = l->o.credentials ? sender(&msg) : 0;
	return got;
}

/* A line whose pieces came from different processes is nobody's. */
static void
take_chunk(struct lines *l, const char *p, size_t n)
{
	if (l->in.len == l->in_at && !l->discarding)
		l->pid = l->chunk_pid;
	else if (l->pid != l->chunk_pid)
		l->pid = 0;
	text_addn(&l->in, p, n);
}

static void
on_readable(evutil_socket_t s UNUSED, short what UNUSED, void *arg)
{
	static char chunk[CHUNK]; /* one thread, used up before any callback */
	struct lines *l = arg;
	ssize_t n = receive(l, chunk, sizeof(chunk));

	if (n == -1 && errno == EAGAIN)
		return;
	if (n <= 0) {
		fail(l, n == 0 ? "end of file" : strerror(errno));
		return;
	}
	l->busy++;
	take_chunk(l, chunk, (size_t)n);
	if (tell_lines(l))
		cut_partial(l);
	leave(l);
}

/* What is buffered goes first, from the loop, or an end of file would
 * overtake it. */
static void
go_on(struct lines *l)
{
	if (!wants_input(l))
		return;
	if (l->in.len > l->in_at)
		event_active(l->again, EV_TIMEOUT, 0);
	else
		event_add(l->readable, NULL);
}

static void
on_writable(evutil_socket_t s UNUSED, short what UNUSED, void *arg)
{
	struct lines *l = arg;

	flush(l);
	if (l->failed != NULL)
		return;
	if (l->finishing && queued(l) == 0) {
		lines_close(l);
		return;
	}
	if (!l->full || queued(l) >= l->o.out_low)
		return;
	l->full = false;
	go_on(l);
	if (l->events->drained == NULL || l->finishing)
		return;
	l->busy++;
	l->events->drained(l->arg);
	leave(l);
}

static void
on_again(evutil_socket_t s UNUSED, short what UNUSED, void *arg)
{
	struct lines *l = arg;

	if (l->failed != NULL && l->finishing) {
		lines_close(l);
		return;
	}
	l->busy++;
	if (l->failed != NULL) {
		const char *why = l->failed;

		l->finishing = true; /* it is told once */
		l->events->closed(l->arg, why);
	} else if (tell_lines(l)) {
		cut_partial(l);
		if (wants_input(l))
			event_add(l->readable, NULL);
	}
	leave(l);
}

static void
on_patience(evutil_socket_t s UNUSED, short what UNUSED, void *arg)
{
	lines_close(arg);
}

struct lines *
lines_new(struct event_base *base, int fd, const struct lines_options *o,
    const struct lines_events *events, void *arg)
{
	struct lines *l = mem_new(sizeof(*l));
	int on = 1;

	l->fd = fd;
	l->o = *o;
	l->events = events;
	l->arg = arg;
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == -1)
		log_warn("cannot make a connection non-blocking");
	if (o->credentials &&
	    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == -1)
		log_warn("cannot ask for credentials"); /* pids stay 0 */
	l->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, l);
	l->writable = event_new(base, fd, EV_WRITE, on_writable, l);
	l->again = evtimer_new(base, on_again, l);
	l->patience = evtimer_new(base, on_patience, l);
	if (l->readable == NULL || l->writable == NULL || l->again == NULL ||
	    l->patience == NULL)
		fatalx("out of memory");
	event_add(l->readable, NULL);
	return l;
}

void
lines_finish(struct lines *l)
{
	struct timeval patience = { FINISH_S, 0 };

	if (l == NULL || l->closed)
		return;
	l->finishing = true;
	event_del(l->readable);
	if (l->failed != NULL || queued(l) == 0)
		lines_close(l);
	else
		event_add(l->patience, &patience);
}

void
lines_pause(struct lines *l)
{
	if (l->closed)
		return;
	l->paused = true;
	event_del(l->readable);
}

void
lines_resume(struct lines *l)
{
	if (l->closed || !l->paused)
		return;
	l->paused = false;
	go_on(l);
}
