/* test_bridge: the bridge between a client and a daemon that the test plays */
#include "wire/bridge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define PATIENCE_S 60 /* a test that hangs is killed */
#define LINGER_MS 300

/* The bridge is a child; `in` and `out` are the client's ends of its pipes. */
struct stage {
	char dir[64], path[96];
	pid_t child;
	int in, out, listener, daemon;
};

static int
set_up(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));

	snprintf(s->dir, sizeof(s->dir), "/tmp/airlock-test.XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	snprintf(s->path, sizeof(s->path), "%s/sock", s->dir);
	s->listener = s->daemon = s->in = s->out = -1;
	*state = s;
	alarm(PATIENCE_S);
	return 0;
}

static void
shut(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

static int
tear_down(void **state)
{
	struct stage *s = *state;

	shut(&s->in);
	shut(&s->out);
	shut(&s->daemon);
	shut(&s->listener);
	if (s->child > 0)
		waitpid(s->child, NULL, 0); /* it ends with its input */
	unlink(s->path);
	rmdir(s->dir);
	free(s);
	return 0;
}

static void
start_daemon(struct stage *s)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	unlink(s->path);
	memcpy(sun.sun_path, s->path, strlen(s->path) + 1);
	s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&sun,
			     sizeof(sun)),
	    0);
	assert_int_equal(listen(s->listener, 8), 0);
}

static void
stop_daemon(struct stage *s)
{
	shut(&s->listener);
	shut(&s->daemon);
}

static void
meet(struct stage *s)
{
	s->daemon = accept(s->listener, NULL, NULL);
	assert_int_not_equal(s->daemon, -1);
}

/* Where coverage is counted: _exit would forget what the child did. */
void __gcov_dump(void) __attribute__((weak));

static void
start_bridge(struct stage *s)
{
	int in[2], out[2];

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	s->child = fork();
	if (s->child == 0) {
		struct bridge_options o = { .socket = s->path,
			.owner_dir = s->dir,
			.state_dir = s->dir,
			.in = in[0],
			.out = out[1],
			.linger_ms = LINGER_MS };

		signal(SIGPIPE, SIG_IGN);
		close(in[1]);
		close(out[0]);
		shut(&s->listener);
		alarm(60);
		bridge_run(&o);
		if (__gcov_dump != NULL)
			__gcov_dump();
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	s->in = in[1];
	s->out = out[0];
}

static void
say(int fd, const char *p)
{
	size_t n = strlen(p);

	while (n > 0) {
		ssize_t put = write(fd, p, n);

		assert_true(put > 0);
		p += put;
		n -= (size_t)put;
	}
}

/* The next line, without its end; empty at the end of the file. */
static char *
hear(int fd)
{
	static char line[4096];
	size_t n = 0;

	while (n + 1 < sizeof(line) && read(fd, line + n, 1) == 1 &&
	       line[n] != '\n')
		n++;
	line[n] = '\0';
	return line;
}

static void
hear_error(int fd, const char *id, const char *part)
{
	char *line = hear(fd), start[128];

	snprintf(start, sizeof(start),
	    "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32603,", id);
	if (!text_starts_with(line, start) || strstr(line, part) == NULL)
		fail_msg("%s (%s) expected, heard: %s", start, part, line);
}

static void
expect_end(struct stage *s)
{
	int status;

	assert_int_equal(waitpid(s->child, &status, 0), s->child);
	s->child = 0;
	assert_int_equal(status, 0);
}

#define ASK(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"m\"}\n"
#define TOLD(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{}}\n"

static void
copies_lines_both_ways(void **state)
{
	struct stage *s = *state;

	start_daemon(s);
	start_bridge(s);
	meet(s);
	say(s->in, ASK("1") "\n \r\n" ASK("\"two\"") "{\"method\":");
	assert_string_equal(hear(s->daemon),
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}");
	assert_string_equal(hear(s->daemon),
	    "{\"jsonrpc\":\"2.0\",\"id\":\"two\",\"method\":\"m\"}");
	say(s->in, "\"n\"}\n");
	assert_string_equal(hear(s->daemon), "{\"method\":\"n\"}");
	say(s->daemon, TOLD("\"two\"") "{\"half\":");
	assert_string_equal(hear(s->out),
	    "{\"jsonrpc\":\"2.0\",\"id\":\"two\",\"result\":{}}");
	say(s->daemon, "1}\n" TOLD("1"));
	assert_string_equal(hear(s->out), "{\"half\":1}");
	assert_string_equal(hear(s->out),
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	shut(&s->in);
	assert_string_equal(hear(s->daemon), ""); /* nothing is awaited */
	expect_end(s);
}

static void
answers_for_a_daemon_that_is_not_there(void **state)
{
	struct stage *s = *state;

	start_bridge(s);
	say(s->in, ASK("0"));
	hear_error(s->out, "0", s->path);
	say(s->in, "{\"method\":\"note\"}\ngarbage\n[1,2]\n"
		   "{\"id\":5,\"result\":{}}\n" ASK("\"a\""));
	hear_error(s->out, "\"a\"", "airlockd --db URL --state-dir");
	say(s->in, "["
		   "{\"id\":1,\"method\":\"m\"},{\"id\":2,\"method\":\"m\"}"
		   "]\n");
	hear_error(s->out, "1", "cannot be reached");
	hear_error(s->out, "2", "cannot be reached");
	start_daemon(s); /* the next line finds it */
	say(s->in, ASK("3"));
	meet(s);
	assert_string_equal(hear(s->daemon),
	    "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"m\"}");
	say(s->daemon, TOLD("3"));
	assert_non_null(strstr(hear(s->out), "\"id\":3,\"result\""));
}

/* What is under way is answered, what was answered or cancelled is not. */
static void
answers_for_a_daemon_that_goes_away(void **state)
{
	struct stage *s = *state;
	char half[sizeof("{\"id\":6,\"method\":") - 1];

	start_daemon(s);
	start_bridge(s);
	meet(s);
	say(s->in,
	    ASK("1") ASK("2") ASK("\"3\"")
		ASK("4") "{\"method\":\"notifications/cancelled\",\"params\":"
			 "{\"requestId\":4}}\n" ASK("5"));
	for (int i = 0; i < 6; i++)
		assert_true(strlen(hear(s->daemon)) > 0);
	say(s->daemon, TOLD("2") "{\"jsonrpc\":\"2.0\",\"id\":1,\"resu");
	assert_non_null(strstr(hear(s->out), "\"id\":2,\"result\""));
	say(s->in, "{\"id\":6,\"method\":"); /* half a line, until it is seen */
	assert_int_equal(recv(s->daemon, half, sizeof(half), MSG_WAITALL),
	    sizeof(half));
	stop_daemon(s);
	hear_error(s->out, "1", "not known");
	hear_error(s->out, "\"3\"", "not known");
	hear_error(s->out, "5", "not known");
	say(s->in, "\"m\"}\n");
	hear_error(s->out, "6", "closed");
	say(s->in, ASK("7"));
	hear_error(s->out, "7", "cannot be reached");
	start_daemon(s);
	say(s->in, ASK("8"));
	meet(s);
	assert_non_null(strstr(hear(s->daemon), "\"id\":8"));
	stop_daemon(s);
	hear_error(s->out, "8", "not known"); /* and none of those before */
	say(s->in, ASK("9"));
	hear_error(s->out, "9", "cannot be reached");
}

static void
lets_pending_answers_finish(void **state)
{
	struct stage *s = *state;

	start_daemon(s);
	start_bridge(s);
	meet(s);
	say(s->in, ASK("1"));
	shut(&s->in);
	assert_true(strlen(hear(s->daemon)) > 0);
	say(s->daemon, TOLD("1"));
	assert_non_null(strstr(hear(s->out), "\"id\":1,\"result\""));
	assert_string_equal(hear(s->out), "");
	expect_end(s);
}

static void
does_not_wait_for_ever(void **state)
{
	struct stage *s = *state;
	int64_t began = clock_mono_ns();

	start_daemon(s);
	start_bridge(s);
	meet(s);
	say(s->in, ASK("1"));
	shut(&s->in);
	expect_end(s);
	assert_true(clock_mono_ns() - began >= LINGER_MS * INT64_C(1000000));
	assert_string_equal(hear(s->out), "");
}

static void
ends_when_nobody_reads(void **state)
{
	struct stage *s = *state;

	start_daemon(s);
	start_bridge(s);
	meet(s);
	shut(&s->out);
	expect_end(s);
}

/* Writes until the other side takes no more for a while; gives how much. */
static size_t
stuff(int fd, const char *p, size_t n, size_t most)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	size_t all = 0;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (all < most && poll(&pfd, 1, 300) == 1) {
		ssize_t put = write(fd, p, n);

		assert_true(put > 0 || errno == EAGAIN);
		all += put > 0 ? (size_t)put : 0;
	}
	fcntl(fd, F_SETFL, 0);
	return all;
}

#define FLOOD (32u << 20)

static void
stops_reading_for_a_daemon_that_does_not(void **state)
{
	struct stage *s = *state;
	static char block[4096];

	start_daemon(s);
	start_bridge(s);
	meet(s);
	memset(block, ' ', sizeof(block));
	say(s->in, "{");
	assert_true(stuff(s->in, block, sizeof(block), FLOOD) < 2u << 20);
}

static void
stops_reading_for_a_client_that_does_not(void **state)
{
	struct stage *s = *state;
	static char block[4096];

	start_daemon(s);
	start_bridge(s);
	meet(s);
	memset(block, 'x', sizeof(block));
	block[sizeof(block) - 1] = '\n';
	assert_true(stuff(s->daemon, block, sizeof(block), FLOOD) < 2u << 20);
}

/* A line of any length goes through, and is known by its id at the end. */
static void
passes_a_line_of_5_mb(void **state)
{
	struct stage *s = *state;
	size_t n = 5u << 20;
	char *sql = malloc(n + 1), *got = malloc(n + 256);
	size_t all = 0;
	ssize_t some;
	pid_t writer;

	memset(sql, 's', n);
	sql[n] = '\0';
	start_daemon(s);
	start_bridge(s);
	meet(s);
	writer = fork();
	if (writer == 0) {
		say(s->in, "{\"method\":\"m\",\"params\":{\"sql\":\"");
		say(s->in, sql);
		say(s->in, "\"},\"id\":77}\n");
		_exit(0);
	}
	while (all == 0 || got[all - 1] != '\n') {
		some = read(s->daemon, got + all, n + 256 - all);
		assert_true(some > 0);
		all += (size_t)some;
	}
	assert_int_equal(all,
	    n + strlen("{\"method\":\"m\",\"params\":{\"sql\":"
		       "\"\"},\"id\":77}\n"));
	waitpid(writer, NULL, 0);
	stop_daemon(s);
	hear_error(s->out, "77", "not known");
	free(sql);
	free(got);
}

static void
connects_to_sockets_of_ours_only(void **state)
{
	struct stage *s = *state;
	struct err e = ERR_INIT;
	char path[256];
	int fd;

	assert_int_equal(bridge_connect(s->path, NULL, &e), -1);
	assert_int_equal(e.code, ERR_SYSTEM);
	start_daemon(s);
	fd = bridge_connect(s->path, NULL, &e);
	assert_int_not_equal(fd, -1);
	close(fd);
	snprintf(path, sizeof(path), "%s/%0150d", s->dir, 0);
	assert_int_equal(bridge_connect(path, NULL, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	snprintf(path, sizeof(path), "%s/link", s->dir);
	assert_int_equal(symlink(s->path, path), 0);
	assert_int_equal(bridge_connect(path, NULL, &e), -1);
	assert_int_equal(e.code, ERR_UNFIT);
	unlink(path);
	if (geteuid() != 0)
		return; /* cannot make a stranger's socket */
	assert_int_equal(chown(s->path, 12345, (gid_t)-1), 0);
	assert_int_equal(bridge_connect(s->path, s->dir, &e), -1);
	assert_int_equal(e.code, ERR_DENIED);
	assert_int_equal(chown(s->dir, 12345, (gid_t)-1), 0);
	fd = bridge_connect(s->path, s->dir, &e);
	assert_int_not_equal(fd, -1);
	close(fd);
	assert_int_equal(bridge_connect(s->path, NULL, &e), -1);
	assert_int_equal(e.code, ERR_DENIED);
}

#define STAGED(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STAGED(copies_lines_both_ways),
		STAGED(answers_for_a_daemon_that_is_not_there),
		STAGED(answers_for_a_daemon_that_goes_away),
		STAGED(lets_pending_answers_finish),
		STAGED(does_not_wait_for_ever),
		STAGED(ends_when_nobody_reads),
		STAGED(stops_reading_for_a_daemon_that_does_not),
		STAGED(stops_reading_for_a_client_that_does_not),
		STAGED(passes_a_line_of_5_mb),
		STAGED(connects_to_sockets_of_ours_only),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
