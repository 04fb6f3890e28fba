/* test_listener: sockets that appear whole or not at all, and their peers */
#include "wire/listener.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"

struct place {
	struct event_base *base;
	char dir[64], path[128];
	int accepted, fd;
	struct peer peer;
};

static int
set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	snprintf(p->dir, sizeof(p->dir), "/tmp/airlock-test.XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->path, sizeof(p->path), "%s/sock", p->dir);
	p->base = event_base_new();
	p->fd = -1;
	p->peer.pidfd = -1;
	*state = p;
	return 0;
}

static int
tear_down(void **state)
{
	struct place *p = *state;

	if (p->fd != -1)
		close(p->fd);
	peer_release(&p->peer);
	unlink(p->path);
	assert_int_equal(rmdir(p->dir), 0); /* nothing else was left there */
	event_base_free(p->base);
	free(p);
	return 0;
}

static void
on_accept(void *arg, int fd, struct peer *peer)
{
	struct place *p = arg;

	if (p->fd != -1)
		close(p->fd);
	peer_release(&p->peer);
	p->fd = fd;
	p->peer = *peer;
	p->accepted++;
}

static int
try_open(struct place *p, const char *path, struct listener **l, struct err *e)
{
	struct listener_options o = { .path = path,
		.mode = 0640,
		.group = (gid_t)-1,
		.connections_max = 2 };

	return listener_open(p->base, &o, on_accept, p, l, e);
}

static int
dial(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(sun.sun_path, path, strlen(path) + 1);
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0)
		return fd;
	close(fd);
	return -1;
}

static void
appears_with_its_mode_and_goes(void **state)
{
	struct place *p = *state;
	struct listener *l;
	struct err e = ERR_INIT;
	struct stat st;
	int fd;

	assert_int_equal(try_open(p, p->path, &l, &e), 0);
	assert_int_equal(lstat(p->path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0640);
	fd = dial(p->path);
	LOOP_UNTIL(p->base, p->accepted == 1);
	assert_int_equal(p->peer.pid, getpid());
	assert_int_equal(p->peer.uid, geteuid());
	assert_int_equal(p->peer.gid, getegid());
	assert_true(peer_is_alive(&p->peer));
	assert_true(fcntl(p->fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(p->fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	listener_close(l);
	assert_int_equal(lstat(p->path, &st), -1);
}

static void
replaces_what_a_dead_daemon_left(void **state)
{
	struct place *p = *state;
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct listener *l;
	struct err e = ERR_INIT;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(sun.sun_path, p->path, strlen(p->path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	listen(fd, 1);
	close(fd);
	assert_int_equal(try_open(p, p->path, &l, &e), 0);
	fd = dial(p->path);
	assert_int_not_equal(fd, -1);
	close(fd);
	listener_close(l);
}

static void
leaves_a_living_one_alone(void **state)
{
	struct place *p = *state;
	struct listener *l, *second = NULL;
	struct err e = ERR_INIT;
	int fd;

	assert_int_equal(try_open(p, p->path, &l, &e), 0);
	assert_int_equal(try_open(p, p->path, &second, &e), -1);
	assert_int_equal(e.code, ERR_UNFIT);
	assert_null(second);
	fd = dial(p->path);
	assert_int_not_equal(fd, -1);
	close(fd);
	listener_close(l);
}

static void
full_backlog_is_life(void **state)
{
	struct place *p = *state;
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct listener *l;
	struct err e = ERR_INIT;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), first, n = 0, more[8];

	memcpy(sun.sun_path, p->path, strlen(p->path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	listen(fd, 0);
	first = dial(p->path);
	for (; n < 8; n++) {
		more[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (connect(more[n], (struct sockaddr *)&sun, sizeof(sun)) ==
		    -1)
			break;
	}
	assert_in_range(n, 0, 7);
	assert_int_equal(try_open(p, p->path, &l, &e), -1);
	assert_int_equal(e.code, ERR_UNFIT);
	for (; n >= 0; n--)
		close(more[n]);
	close(first);
	close(fd);
}

static void
never_replaces_files_or_links(void **state)
{
	struct place *p = *state;
	char target[160];
	struct listener *l;
	struct err e = ERR_INIT;
	struct stat st;

	snprintf(target, sizeof(target), "%s/target", p->dir);
	close(open(p->path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(try_open(p, p->path, &l, &e), -1);
	assert_int_equal(e.code, ERR_UNFIT);
	unlink(p->path);
	assert_int_equal(symlink(target, p->path), 0);
	assert_int_equal(try_open(p, p->path, &l, &e), -1);
	assert_int_equal(e.code, ERR_UNFIT);
	assert_int_equal(lstat(p->path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(lstat(target, &st), -1);
}

static void
checks_the_length_of_its_path(void **state)
{
	struct place *p = *state;
	char path[300];
	struct listener *l;
	struct err e = ERR_INIT;
	int most = (int)sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;

	snprintf(path, sizeof(path), "%s/%0*d", p->dir,
	    most - (int)strlen(p->dir), 0);
	assert_int_equal(strlen(path), most + 1);
	assert_int_equal(try_open(p, path, &l, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	path[most] = '\0';
	assert_int_equal(try_open(p, path, &l, &e), 0);
	listener_close(l);
	assert_int_equal(try_open(p, "", &l, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	snprintf(path, sizeof(path), "%s/no/where", p->dir);
	assert_int_equal(try_open(p, path, &l, &e), -1);
	assert_int_equal(e.code, ERR_SYSTEM);
}

static void
removes_only_its_own_file(void **state)
{
	struct place *p = *state;
	struct listener *l;
	struct err e = ERR_INIT;
	struct stat st;

	assert_int_equal(try_open(p, p->path, &l, &e), 0);
	unlink(p->path);
	close(open(p->path, O_CREAT | O_WRONLY, 0600));
	listener_close(l);
	assert_int_equal(lstat(p->path, &st), 0);
	listener_close(NULL);
}

static void
closes_what_is_too_many(void **state)
{
	struct place *p = *state;
	struct listener *l;
	struct err e = ERR_INIT;
	int fds[3];
	char byte;

	assert_int_equal(try_open(p, p->path, &l, &e), 0);
	for (int i = 0; i < 3; i++)
		fds[i] = dial(p->path);
	LOOP_UNTIL(p->base, p->accepted == 2);
	LOOP_SETTLE(p->base);
	assert_int_equal(read(fds[2], &byte, 1), 0); /* closed at once */
	listener_left(l);
	close(fds[2]);
	fds[2] = dial(p->path);
	LOOP_UNTIL(p->base, p->accepted == 3);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	listener_close(l);
}

/* The peer's end is known by its pidfd, not by its number. */
static void
knows_that_a_peer_has_ended(void **state)
{
	struct place *p = *state;
	struct listener *l;
	struct err e = ERR_INIT;
	int hold[2], status;
	char byte;
	pid_t child;

	assert_int_equal(try_open(p, p->path, &l, &e), 0);
	assert_int_equal(pipe(hold), 0);
	child = fork();
	if (child == 0) {
		close(hold[1]);
		_exit(dial(p->path) == -1 || read(hold[0], &byte, 1) != 0);
	}
	close(hold[0]);
	LOOP_UNTIL(p->base, p->accepted == 1);
	assert_int_equal(p->peer.pid, child);
	assert_true(peer_is_alive(&p->peer));
	close(hold[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(peer_is_alive(&p->peer));
	peer_release(&p->peer);
	assert_int_equal(p->peer.pidfd, -1);
	assert_false(peer_is_alive(&p->peer));
	listener_close(l);
}

static void
reads_no_peer_of_a_file(void **state UNUSED)
{
	struct peer peer;
	struct err e = ERR_INIT;
	int fd = open("/dev/null", O_RDONLY);

	assert_int_equal(peer_read(fd, &peer, &e), -1);
	assert_int_equal(e.code, ERR_SYSTEM);
	close(fd);
}

#define PLACED(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		PLACED(appears_with_its_mode_and_goes),
		PLACED(replaces_what_a_dead_daemon_left),
		PLACED(leaves_a_living_one_alone),
		PLACED(full_backlog_is_life),
		PLACED(never_replaces_files_or_links),
		PLACED(checks_the_length_of_its_path),
		PLACED(removes_only_its_own_file),
		PLACED(closes_what_is_too_many),
		PLACED(knows_that_a_peer_has_ended),
		cmocka_unit_test(reads_no_peer_of_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
