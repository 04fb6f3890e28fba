/* bridge: a client's standard streams on one side, airlockd on the other */
#include "wire/bridge.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "wire/rpc.h"
#include "wire/scan.h"

#define CHUNK 65536
#define HIGH (256u << 10)      /* queued: the other side is not read */
#define ANSWER_MAX (16u << 20) /* of one line of the daemon's */
#define WAITING_MAX 1024       /* ids; the oldest is forgotten */

struct queue {
	struct text text;
	size_t at; /* before it all is written */
};

/*
 * up:   to the daemon, in any pieces.
 * down: to the client; bytes after `whole` are an answer that is not all here,
 *	 and are dropped when the daemon goes away.
 */
struct bridge {
	const struct bridge_options *o;
	struct queue up, down;
	size_t whole;                /* in down.text */
	struct scan asked, answered; /* the lines under way */
	json_t *waiting; /* array: ids of requests that were passed on */
	int sock;        /* -1: no daemon */
	bool in_line;    /* the client is within a line */
	bool passing;    /* that line goes to the daemon */
	bool in_answer, told, ended;
	char why[1024];   /* the last line without a daemon was not passed on */
	int64_t deadline; /* for answers, once input has ended */
};

static size_t
queued(const struct queue *q)
{
	return q->text.len - q->at;
}

static void
queue_clear(struct queue *q)
{
	text_release(&q->text);
	q->at = 0;
}

/* Drops what is written, not at every turn; gives how much that was. */
static size_t
queue_trim(struct queue *q)
{
	size_t n = q->at;

	if (n < q->text.len && n < HIGH)
		return 0;
	if (n == q->text.len && q->text.size > HIGH)
		text_release(&q->text);
	else
		text_drop(&q->text, n);
	q->at = 0;
	return n;
}

static int
check_owner(uid_t uid, const char *path, const char *owner_dir, struct err *e)
{
	struct stat st;

	if (uid == geteuid() || uid == 0)
		return 0;
	if (owner_dir != NULL && stat(owner_dir, &st) == 0 && st.st_uid == uid)
		return 0;
	return err_set(e, ERR_DENIED,
	    "'%s' belongs to uid %u, which is neither this user, root nor the "
	    "owner of '%s'",
	    path, (unsigned)uid, owner_dir != NULL ? owner_dir : "");
}

int
bridge_connect(const char *path, const char *owner_dir, struct err *e)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct stat st;
	int fd;

	if (text_copy(sun.sun_path, sizeof(sun.sun_path), path, e) == -1)
		return err_wrap(e, "the socket's path is too long");
	if (lstat(path, &st) == -1)
		return err_sys(e, "'%s'", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, ERR_UNFIT, "'%s' is not a socket", path);
	if (check_owner(st.st_uid, path, owner_dir, e) == -1)
		return -1;
	/* Non-blocking: a full backlog is an answer too. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return err_sys(e, "cannot make a socket");
	if (connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) == -1)
		err_sys(e, "'%s'", path);
	else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1)
		err_sys(e, "cannot ask who listens on '%s'", path);
	else if (check_owner(cred.uid, path, owner_dir, e) == 0)
		return fd;
	close(fd);
	return -1;
}

static void
answer_error(struct bridge *b, const json_t *id)
{
	json_t *j = rpc_error(id, RPC_INTERNAL, b->why, NULL);
	char *s = json_dumps(j, JSON_COMPACT);

	if (s == NULL)
		fatalx("cannot make a JSON value");
	/* The daemon is gone here, so there is no partial answer behind. */
	text_add(&b->down.text, s);
	text_addc(&b->down.text, '\n');
	b->whole = b->down.text.len;
	free(s);
	json_decref(j);
}

/* Fills b->why; says it on stderr once, until it is right again. */
static bool
reach(struct bridge *b)
{
	struct err e = ERR_INIT;

	if (b->sock != -1)
		return true;
	b->sock = bridge_connect(b->o->socket, b->o->owner_dir, &e);
	b->in_answer = false;
	if (b->sock == -1) {
		snprintf(b->why, sizeof(b->why),
		    "airlockd cannot be reached: %s. Ask the operator to start "
		    "it ('airlockd --db URL --state-dir %s'), then try again.",
		    e.text, b->o->state_dir != NULL ? b->o->state_dir : "DIR");
		if (!b->told)
			log_warnx("%s", b->why);
	}
	b->told = b->sock == -1;
	return b->sock != -1;
}

static void
lose(struct bridge *b, const char *reason)
{
	log_warnx("airlockd closed '%s': %s", b->o->socket, reason);
	snprintf(b->why, sizeof(b->why),
	    "airlockd closed '%s' (%s) before it answered. What the call did is "
	    "not known here: when airlockd is back, ask db_status.",
	    b->o->socket, reason);
	close(b->sock);
	b->sock = -1;
	b->passing = false;
	queue_clear(&b->up);
	b->down.text.len = b->whole;
	for (size_t i = 0; i < json_array_size(b->waiting); i++)
		answer_error(b, json_array_get(b->waiting, i));
	json_array_clear(b->waiting);
}

static void
forget(struct bridge *b, const json_t *id)
{
	for (size_t i = 0; i < json_array_size(b->waiting); i++) {
		if (json_equal(json_array_get(b->waiting, i), id)) {
			json_array_remove(b->waiting, i);
			return;
		}
	}
}

static void
on_asked(void *arg, const struct scan_found *f)
{
	struct bridge *b = arg;

	if (f->cancels != NULL && f->method != NULL &&
	    strcmp(f->method, "notifications/cancelled") == 0)
		forget(b, f->cancels);
	if (f->id == NULL || f->method == NULL)
		return;
	if (!b->passing) {
		answer_error(b, f->id);
		return;
	}
	if (json_array_size(b->waiting) >= WAITING_MAX)
		json_array_remove(b->waiting, 0);
	json_array_append_new(b->waiting, json_deep_copy(f->id));
}

static void
on_answered(void *arg, const struct scan_found *f)
{
	if (f->id != NULL && f->is_answer)
		forget(arg, f->id);
}

/* The part of one line that is here; it is complete with a newline. */
static void
pass_up(struct bridge *b, const char *p, size_t n, bool complete)
{
	if (!b->in_line) {
		while (n > 0 && (*p == ' ' || *p == '\t' || *p == '\r'))
			p++, n--;
		if (n == 0)
			return; /* a blank line asks for nothing */
		b->in_line = true;
		b->passing = reach(b);
		scan_start(&b->asked);
	}
	scan_feed(&b->asked, p, n, on_asked, b);
	if (b->passing) {
		text_addn(&b->up.text, p, n);
		if (complete)
			text_addc(&b->up.text, '\n');
	}
	if (complete) {
		scan_end(&b->asked, on_asked, b);
		b->in_line = false;
	}
}

static void
pass_down(struct bridge *b, const char *p, size_t n, bool complete)
{
	if (!b->in_answer)
		scan_start(&b->answered);
	b->in_answer = !complete;
	scan_feed(&b->answered, p, n, on_answered, b);
	text_addn(&b->down.text, p, n);
	if (!complete)
		return;
	scan_end(&b->answered, on_answered, b);
	text_addc(&b->down.text, '\n');
	b->whole = b->down.text.len;
}

static void
each_line(struct bridge *b, const char *p, size_t n,
    void (*pass)(struct bridge *, const char *, size_t, bool))
{
	while (n > 0) {
		const char *end = memchr(p, '\n', n);
		size_t len = end != NULL ? (size_t)(end - p) : n;

		pass(b, p, len, end != NULL);
		p += len + (end != NULL);
		n -= len + (end != NULL);
	}
}

static void
end_input(struct bridge *b)
{
	b->ended = true;
	b->deadline = clock_mono_ns() / 1000000 + b->o->linger_ms;
}

static void
read_client(struct bridge *b)
{
	char chunk[CHUNK];
	ssize_t n = read(b->o->in, chunk, sizeof(chunk));

	if (n > 0)
		each_line(b, chunk, (size_t)n, pass_up);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		end_input(b);
}

static void
read_daemon(struct bridge *b)
{
	char chunk[CHUNK];
	ssize_t n = recv(b->sock, chunk, sizeof(chunk), MSG_DONTWAIT);

	if (n > 0)
		each_line(b, chunk, (size_t)n, pass_down);
	else if (n == 0)
		lose(b, "end of file");
	else if (errno != EINTR && errno != EAGAIN)
		lose(b, strerror(errno));
	if (b->down.text.len - b->whole > ANSWER_MAX)
		lose(b, "an answer has no end");
}

static void
write_daemon(struct bridge *b)
{
	ssize_t n = send(b->sock, b->up.text.s + b->up.at, queued(&b->up),
	    MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n == -1 && errno != EINTR && errno != EAGAIN)
		lose(b, strerror(errno));
	if (n > 0)
		b->up.at += (size_t)n;
	queue_trim(&b->up);
}

/*
 * The descriptor's flags are shared with whoever gave it, so they are left
 * alone: a socket is asked not to block each time, and a pipe that polls
 * writable has room for PIPE_BUF bytes.
 */
static bool
write_client(struct bridge *b)
{
	const char *p = b->down.text.s + b->down.at;
	size_t n = b->whole - b->down.at;
	ssize_t put = send(b->o->out, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (put == -1 && errno == ENOTSOCK)
		put = write(b->o->out, p, n < PIPE_BUF ? n : PIPE_BUF);
	if (put == -1)
		return errno == EINTR || errno == EAGAIN;
	b->down.at += (size_t)put;
	b->whole -= queue_trim(&b->down);
	return true;
}

/* Milliseconds to wait, or -1 for ever; 0: it is over. */
static int
patience(const struct bridge *b)
{
	int64_t left = b->deadline - clock_mono_ns() / 1000000;

	if (!b->ended)
		return -1;
	if (json_array_size(b->waiting) == 0 && queued(&b->up) == 0 &&
	    b->down.at == b->whole)
		return 0;
	return left > 0 ? (int)left : 0;
}

/* One turn; false where it is over. */
static bool
turn(struct bridge *b)
{
	bool to_client = b->down.at < b->whole;
	bool ask =
	    !b->ended && queued(&b->up) < HIGH && b->whole - b->down.at < HIGH;
	struct pollfd fds[] = {
		{ .fd = ask ? b->o->in : -1, .events = POLLIN },
		{ .fd = b->o->out, .events = to_client ? POLLOUT : 0 },
		{ .fd = b->sock,
		    .events =
			(short)((b->whole - b->down.at < HIGH ? POLLIN : 0) |
				(queued(&b->up) > 0 ? POLLOUT : 0)) },
	};
	int wait = patience(b);

	if (wait == 0)
		return false;
	if (poll(fds, 3, wait) == -1)
		return errno == EINTR;
	/* Unasked, it says only that the reader has gone. */
	if (fds[1].revents != 0 && (!to_client || !write_client(b)))
		return false;
	if (fds[2].revents & POLLOUT)
		write_daemon(b);
	if (b->sock != -1 && fds[2].revents & (POLLIN | POLLHUP | POLLERR))
		read_daemon(b);
	if (fds[0].revents != 0)
		read_client(b);
	if (b->sock != -1 && queued(&b->up) > 0)
		write_daemon(b); /* there is room nearly always */
	return true;
}

void
bridge_run(const struct bridge_options *o)
{
	struct bridge b = { .o = o, .sock = -1, .waiting = json_array() };

	reach(&b);
	while (turn(&b))
		continue;
	if (b.sock != -1)
		close(b.sock);
	queue_clear(&b.up);
	queue_clear(&b.down);
	json_decref(b.waiting);
}
