/* client: one request to airlockd over its control socket, blocking */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

#define GREETING_TIMEOUT_S 10
#define ANSWER_TIMEOUT_S 150

/* One connection while it lasts. */
struct wire {
	int fd;
	struct text in;        /* received */
	size_t start, scanned; /* of in: taken; known to hold no newline */
	char nonce[128];
};

static char daemon_version[64];

const char *
client_daemon_version(void)
{
	return daemon_version;
}

void
reply_release(struct reply *r)
{
	json_decref(r->ok);
	r->ok = NULL;
	json_decref(r->refusal);
	r->refusal = NULL;
}

void
reply_fail(struct reply *r, enum ctl_exit code, const char *word,
    const char *fmt, ...)
{
	char raw[sizeof(r->error)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	reply_release(r);
	r->exit = code;
	text_quote_into(r->code, sizeof(r->code), word, strlen(word));
	text_quote_into(r->error, sizeof(r->error), raw, strlen(raw));
}

void
client_init(struct client *c, const struct options *o)
{
	c->timeout_s = ANSWER_TIMEOUT_S;
	place_find(&c->place, o->state_dir, o->socket, "control");
}

void
client_release(struct client *c)
{
	place_release(&c->place);
}

/*
 * sun_path has 108 bytes and state directories do not know that: a longer path
 * is reached through a descriptor of its directory.
 */
static int
address(const char *path, struct sockaddr_un *sun, int *dirfd, struct err *e)
{
	char *dir;

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	*dirfd = -1;
	if (strlen(path) < sizeof(sun->sun_path)) {
		memcpy(sun->sun_path, path, strlen(path) + 1);
		return 0;
	}
	dir = place_directory_of(path);
	*dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	free(dir);
	if (*dirfd == -1)
		return err_sys(e, "cannot reach '%.300s'", path);
	if ((size_t)snprintf(sun->sun_path, sizeof(sun->sun_path),
		"/proc/self/fd/%d/%s", *dirfd,
		strrchr(path, '/') + 1) >= sizeof(sun->sun_path))
		return err_set(e, ERR_LIMIT, "socket name '%.300s' is too long",
		    path);
	return 0;
}

static void
set_timeout(int fd, int seconds)
{
	struct timeval tv = { .tv_sec = seconds };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

static int
dial(const struct client *c, struct wire *w, struct err *e)
{
	struct sockaddr_un sun;
	int dirfd, rc = -1;

	if (address(c->place.socket, &sun, &dirfd, e) == -1)
		goto out;
	w->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (w->fd == -1) {
		err_sys(e, "cannot make a socket");
		goto out;
	}
	set_timeout(w->fd, GREETING_TIMEOUT_S);
	if (connect(w->fd, (struct sockaddr *)&sun, sizeof(sun)) == -1)
		err_sys(e, "no airlockd at '%.300s'", c->place.socket);
	else
		rc = 0;
out:
	if (dirfd != -1)
		close(dirfd);
	return rc;
}

/* The state directory's owner is who may speak as airlockd; whoever put a
 * socket there in its place is not believed. */
static int
check_owner(const struct client *c, int fd, struct err *e)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct stat st;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1)
		return err_sys(e, "cannot tell who is at '%.300s'",
		    c->place.socket);
	if (stat(c->place.owner_dir, &st) == -1)
		return err_sys(e, "cannot tell who owns '%.300s'",
		    c->place.owner_dir);
	if (peer.uid != st.st_uid && peer.uid != 0)
		return err_set(e, ERR_DENIED,
		    "the daemon at '%.200s' runs as uid %u, but '%.200s' "
		    "belongs to uid %u",
		    c->place.socket, (unsigned)peer.uid, c->place.owner_dir,
		    (unsigned)st.st_uid);
	return 0;
}

/* The next line, without its newline; lends until the next call.  NULL with
 * *e set, code ERR_GONE at the end of the stream. */
static char *
next_line(struct wire *w, size_t *len, struct err *e)
{
	char buf[65536], *nl;
	ssize_t n;

	for (;;) {
		nl = w->in.len > w->scanned ? memchr(w->in.s + w->scanned, '\n',
						  w->in.len - w->scanned)
		                            : NULL;
		if (nl != NULL) {
			*nl = '\0';
			*len = (size_t)(nl - w->in.s) - w->start;
			return w->in.s + w->start;
		}
		text_drop(&w->in, w->start);
		w->start = 0;
		w->scanned = w->in.len;
		if (w->in.len > CLIENT_LINE_MAX) {
			err_set(e, ERR_LIMIT, "a line of more than %zu bytes",
			    CLIENT_LINE_MAX);
			return NULL;
		}
		n = recv(w->fd, buf, sizeof(buf), 0);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			err_sys(e, errno == EAGAIN ? "no answer in time"
						   : "cannot read");
		if (n == 0)
			err_set(e, ERR_GONE,
			    "the daemon closed the connection");
		if (n <= 0)
			return NULL;
		text_addn(&w->in, buf, (size_t)n);
	}
}

/* Forgets the line that next_line gave. */
static void
taken(struct wire *w, size_t len)
{
	w->start += len + 1;
	w->scanned = w->start;
}

/* One line as a JSON object; gives a reference or NULL. */
static json_t *
next_object(struct wire *w, struct err *e)
{
	json_error_t je;
	json_t *j;
	size_t len;
	char *line = next_line(w, &len, e);

	if (line == NULL)
		return NULL;
	j = json_loadb(line, len, JSON_REJECT_DUPLICATES, &je);
	taken(w, len);
	if (!json_is_object(j)) {
		err_set(e, ERR_INPUT, "not a JSON object: %.200s",
		    j != NULL ? "another kind of value" : je.text);
		json_decref(j);
		return NULL;
	}
	return j;
}

static int
greet(struct wire *w, struct err *e)
{
	json_t *hello = next_object(w, e);
	const char *nonce, *version;
	int rc = -1;

	if (hello == NULL)
		return -1;
	nonce = json_string_value(json_object_get(hello, "nonce"));
	version = json_string_value(json_object_get(hello, "version"));
	if (json_integer_value(json_object_get(hello, "airlock")) !=
	    CTL_PROTOCOL)
		err_set(e, ERR_INPUT,
		    "the daemon speaks another protocol than %d (its version "
		    "is %.40s)",
		    CTL_PROTOCOL, version != NULL ? version : "not said");
	else if (nonce == NULL)
		err_set(e, ERR_INPUT, "a greeting without a nonce");
	else
		rc = text_copy(w->nonce, sizeof(w->nonce), nonce, e);
	if (version != NULL)
		text_quote_into(daemon_version, sizeof(daemon_version), version,
		    strlen(version));
	json_decref(hello);
	return rc;
}

/* The kernel adds our credentials to what we send. */
static int
send_all(int fd, const char *p, size_t n, struct err *e)
{
	while (n > 0) {
		struct iovec iov = { (void *)(uintptr_t)p, n };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t sent = sendmsg(fd, &msg, MSG_NOSIGNAL);

		if (sent == -1 && errno == EINTR)
			continue;
		if (sent == -1)
			return err_sys(e, "cannot send the request");
		p += sent;
		n -= (size_t)sent;
	}
	return 0;
}

/* Takes args. */
static int
send_request(struct wire *w, enum ctl_verb verb, json_t *args, struct err *e)
{
	json_t *msg = json_pack("{s:i, s:s, s:s, s:o}", "airlock", CTL_PROTOCOL,
	    "nonce", w->nonce, "verb", ctl_verbs[verb].name, "args",
	    args != NULL ? args : json_object());
	char *line = msg != NULL ? json_dumps(msg, JSON_COMPACT) : NULL;
	struct text t = { 0 };
	int rc;

	json_decref(msg);
	if (line == NULL)
		return err_set(e, ERR_INPUT, "an argument is not UTF-8");
	text_add(&t, line);
	text_addc(&t, '\n');
	free(line);
	if (t.len > CTL_LINE_MAX)
		rc = err_set(e, ERR_LIMIT, "the arguments are too long");
	else
		rc = send_all(w->fd, t.s, t.len, e);
	text_release(&t);
	return rc;
}

/* Takes the line that ends an answer. */
static void
end(json_t *last, struct reply *r)
{
	const char *code = json_string_value(json_object_get(last, "code"));
	const char *error = json_string_value(json_object_get(last, "error"));
	json_int_t n = json_integer_value(json_object_get(last, "exit"));

	if (json_is_true(json_object_get(last, "ok"))) {
		r->exit = CTL_DONE;
		r->ok = last;
		return;
	}
	reply_fail(r,
	    n > CTL_DONE && n <= CTL_DENIED ? (enum ctl_exit)n : CTL_NO,
	    code != NULL ? code : "NO_CODE", "%s",
	    error != NULL ? error : "the daemon says no without a reason");
	r->refusal = last;
}

/* Reads data until the line that says how it ended. */
static void
read_answer(struct wire *w, client_data *data, void *arg, struct reply *r)
{
	struct err e = { 0 };
	json_t *j, *value;

	while ((j = next_object(w, &e)) != NULL) {
		if (json_is_boolean(json_object_get(j, "ok"))) {
			end(j, r);
			return;
		}
		value = json_object_get(j, "data");
		if (value == NULL) {
			json_decref(j);
			err_set(&e, ERR_INPUT, "neither data nor an end");
			break;
		}
		if (data != NULL && !data(arg, value)) {
			json_decref(j);
			return;
		}
		json_decref(j);
	}
	reply_fail(r, CTL_UNREACHABLE, "BROKEN_ANSWER",
	    "the daemon's answer broke off: %s", e.text);
}

enum ctl_exit
client_ask(const struct client *c, enum ctl_verb verb, json_t *args,
    client_data *data, void *arg, struct reply *r)
{
	struct wire w = { .fd = -1 };
	struct err e = { 0 };

	memset(r, 0, sizeof(*r));
	if (dial(c, &w, &e) == -1) {
		reply_fail(r,
		    errno == EACCES || errno == EPERM ? CTL_DENIED
						      : CTL_UNREACHABLE,
		    "UNREACHABLE", "%s", e.text);
	} else if (check_owner(c, w.fd, &e) == -1) {
		reply_fail(r, CTL_DENIED, "WRONG_OWNER", "%s", e.text);
	} else if (greet(&w, &e) == -1) {
		reply_fail(r, CTL_UNREACHABLE, "BROKEN_ANSWER",
		    "no greeting from '%s': %s", c->place.socket, e.text);
	} else {
		set_timeout(w.fd, c->timeout_s);
		if (send_request(&w, verb, json_incref(args), &e) == -1)
			reply_fail(r,
			    e.code == ERR_SYSTEM ? CTL_UNREACHABLE : CTL_USAGE,
			    "NOT_SENT", "%s", e.text);
		else
			read_answer(&w, data, arg, r);
	}
	json_decref(args);
	if (w.fd != -1)
		close(w.fd);
	text_release(&w.in);
	return r->exit;
}
