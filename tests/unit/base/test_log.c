/* test_log: one line an event, harmless whatever is in it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

typedef void deed(void);

/* What a child that does `d` says on stderr; its exit status in *status. */
static const char *
said(deed *d, int *status)
{
	static char out[16384];
	size_t n = 0;
	ssize_t got;
	int fd[2];
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		dup2(fd[1], STDERR_FILENO);
		d();
		_exit(0);
	}
	close(fd[1]);
	while ((got = read(fd[0], out + n, sizeof(out) - 1 - n)) > 0)
		n += (size_t)got;
	out[n] = '\0';
	close(fd[0]);
	assert_int_equal(waitpid(pid, status, 0), pid);
	return out;
}

static void
say_each(void)
{
	log_init("prog", LOG_INFO);
	errno = ENOENT;
	log_info("info %d", 1);
	log_debug("debug");
	log_warn("warn '%s'", "f");
	log_warnx("warnx");
	log_set_level(LOG_ERROR);
	log_warnx("not said");
	log_set_level(LOG_DEBUG);
	log_debug("debug now");
}

static void
say_foul(void)
{
	log_init("prog", LOG_INFO);
	log_info("a\nb\x1b[31m\xff%s", "\xe2\x80\xae");
}

static void
say_much(void)
{
	char big[6000];

	memset(big, '\n', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	log_init("prog", LOG_INFO);
	log_info("%s", big);
	log_info("after");
}

static void
die(void)
{
	log_init("prog", LOG_ERROR);
	errno = EACCES;
	fatal("no %s", "way");
}

static void
diex(void)
{
	log_init("prog", LOG_ERROR);
	fatalx("no");
}

/* libraries may meddle with descriptor 2 */
static void
say_without_stderr(void)
{
	log_init("prog", LOG_INFO);
	close(STDERR_FILENO);
	log_info("still here");
}

static void
keep_errno(void)
{
	log_init("prog", LOG_INFO);
	errno = EINTR;
	log_warn("a");
	log_info("b");
	if (errno != EINTR)
		_exit(9);
}

static void
what_is_said(void **state UNUSED)
{
	static const struct {
		deed *d;
		const char *text;
		int code;
	} cases[] = {
		{ say_each,
		    "prog: info 1\n"
		    "prog: warn 'f': No such file or directory\n"
		    "prog: warnx\nprog: debug now\n",
		    0 },
		{ say_foul, "prog: a\\nb\\x1b[31m\\xff\\u{202e}\n", 0 },
		{ die, "prog: no way: Permission denied\n", 1 },
		{ diex, "prog: no\n", 1 },
		{ say_without_stderr, "prog: still here\n", 0 },
		{ keep_errno, "prog: a: Interrupted system call\nprog: b\n",
		    0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status = 0;

		assert_string_equal(said(cases[i].d, &status), cases[i].text);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), cases[i].code);
	}
}

static void
much_is_cut_to_a_line(void **state UNUSED)
{
	int status = 0;
	const char *s = said(say_much, &status), *nl = strchr(s, '\n');

	assert_non_null(nl);
	assert_true(nl - s > 2000);
	assert_string_equal(nl + 1, "prog: after\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_said),
		cmocka_unit_test(much_is_cut_to_a_line),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
