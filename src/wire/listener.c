/* listener: a unix socket that appears at its path whole or not at all */
#include "wire/listener.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

#define BACKLOG 64
#define ACCEPTS_MAX 16 /* in one turn of the loop */
#define BREATH_MS 200  /* after the descriptors ran out */

struct listener {
	struct event *readable, *breath;
	listener_accept *accept;
	void *arg;
	char *path;
	int fd, connections, connections_max;
	dev_t dev; /* of the file that we made */
	ino_t ino;
};

static int
set_path(struct sockaddr_un *sun, const char *path, struct err *e)
{
	size_t len = strlen(path);

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	if (len == 0 || len >= sizeof(sun->sun_path))
		return err_set(e, ERR_LIMIT,
		    "socket path '%s' is %zu bytes long, 1 to %zu are possible",
		    path, len, sizeof(sun->sun_path) - 1);
	memcpy(sun->sun_path, path, len + 1);
	return 0;
}

/* 0 where the path is free or holds a socket that nobody answers on. */
static int
check_place(const struct sockaddr_un *sun, struct err *e)
{
	const char *path = sun->sun_path;
	struct stat st;
	int fd, rc, error;

	if (lstat(path, &st) == -1)
		return errno == ENOENT
		           ? 0
		           : err_sys(e, "cannot look at '%s'", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, ERR_UNFIT, "'%s' exists and is not a socket",
		    path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return err_sys(e, "cannot make a socket");
	rc = connect(fd, (const struct sockaddr *)sun, sizeof(*sun));
	error = errno;
	close(fd);
	if (rc == 0 || error == EAGAIN) /* EAGAIN: alive, its backlog full */
		return err_set(e, ERR_UNFIT, "somebody already answers on '%s'",
		    path);
	errno = error;
	return error == ECONNREFUSED || error == ENOENT
	           ? 0
	           : err_sys(e, "cannot tell whether '%s' is in use", path);
}

/* Its directory with a short random name, so that it fits where path does. */
static char *
private_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	unsigned n;

	mem_random(&n, sizeof(n));
	return mem_printf("%.*s.%08x",
	    slash != NULL ? (int)(slash - path + 1) : 0, path, n);
}

/* No chmod: it would follow a link.  Nobody can connect before listen(2). */
static int
bind_at(int fd, const struct sockaddr_un *sun, const struct listener_options *o,
    struct err *e)
{
	mode_t old = umask(0777 & ~o->mode);
	int rc = bind(fd, (const struct sockaddr *)sun, sizeof(*sun));

	umask(old);
	if (rc == -1)
		return err_sys(e, "cannot bind '%s'", sun->sun_path);
	if (o->group != (gid_t)-1 &&
	    lchown(sun->sun_path, (uid_t)-1, o->group) == -1) {
		err_sys(e, "cannot give '%s' to group %u", o->path,
		    (unsigned)o->group);
		unlink(sun->sun_path);
		return -1;
	}
	return 0;
}

static int
put_in_place(struct listener *l, const char *made, struct err *e)
{
	struct stat st;

	if (lstat(made, &st) == 0 && listen(l->fd, BACKLOG) == 0 &&
	    rename(made, l->path) == 0) {
		l->dev = st.st_dev;
		l->ino = st.st_ino;
		return 0;
	}
	err_sys(e, "cannot put a socket at '%s'", l->path);
	unlink(made);
	return -1;
}

static int
open_socket(struct listener *l, const struct listener_options *o, struct err *e)
{
	struct sockaddr_un there, here;
	char *made = private_name(o->path);
	int rc = -1;

	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd == -1)
		err_sys(e, "cannot make a socket");
	else if (set_path(&there, o->path, e) == 0 &&
		 set_path(&here, made, e) == 0 && check_place(&there, e) == 0 &&
		 bind_at(l->fd, &here, o, e) == 0)
		rc = put_in_place(l, made, e);
	free(made);
	return rc;
}

static void
take(struct listener *l, int fd)
{
	struct err e = ERR_INIT;
	struct peer peer;

	if (l->connections >= l->connections_max) {
		log_warnx("'%s': %d connections already, one more is closed",
		    l->path, l->connections);
		close(fd);
		return;
	}
	if (peer_read(fd, &peer, &e) == -1) {
		log_warnx("'%s': %s", l->path, e.text);
		close(fd);
		return;
	}
	l->connections++;
	l->accept(l->arg, fd, &peer);
}

static void
on_readable(evutil_socket_t s UNUSED, short what UNUSED, void *arg)
{
	struct listener *l = arg;
	struct timeval breath = { 0, BREATH_MS * 1000 };

	for (int i = 0; i < ACCEPTS_MAX; i++) {
		int fd =
		    accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd != -1) {
			take(l, fd);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno == EAGAIN)
			return;
		/* It stays readable: without a rest the loop would spin. */
		log_warn("'%s': cannot accept", l->path);
		event_del(l->readable);
		event_add(l->breath, &breath);
		return;
	}
}

static void
on_breath(evutil_socket_t s UNUSED, short what UNUSED, void *arg)
{
	struct listener *l = arg;

	event_add(l->readable, NULL);
}

int
listener_open(struct event_base *base, const struct listener_options *o,
    listener_accept *accept, void *arg, struct listener **out, struct err *e)
{
	struct listener *l = mem_new(sizeof(*l));

	l->accept = accept;
	l->arg = arg;
	l->path = mem_strdup(o->path);
	l->connections_max = o->connections_max;
	if (open_socket(l, o, e) == -1) {
		listener_close(l);
		return -1;
	}
	l->readable =
	    event_new(base, l->fd, EV_READ | EV_PERSIST, on_readable, l);
	l->breath = evtimer_new(base, on_breath, l);
	if (l->readable == NULL || l->breath == NULL)
		fatalx("out of memory");
	event_add(l->readable, NULL);
	*out = l;
	return 0;
}

void
listener_left(struct listener *l)
{
	l->connections--;
}

void
listener_close(struct listener *l)
{
	struct stat st;

	if (l == NULL)
		return;
	if (l->readable != NULL)
		event_free(l->readable);
	if (l->breath != NULL)
		event_free(l->breath);
	if (l->ino != 0 && lstat(l->path, &st) == 0 && st.st_dev == l->dev &&
	    st.st_ino == l->ino)
		unlink(l->path);
	if (l->fd != -1)
		close(l->fd);
	free(l->path);
	free(l);
}
