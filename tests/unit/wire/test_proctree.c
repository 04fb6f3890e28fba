/* test_proctree: what /proc says, also when it was told to lie */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/proctree.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define REST " 5 6 34816 7 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 99 1"

static void
stat_is_read_behind_any_name(void **state)
{
	static const struct {
		const char *s, *comm;
	} cases[] = {
		{ "12 (sh) S 4" REST, "sh" },
		{ "12 (a b) S 4" REST, "a b" },
		{ "12 (x) S 1 1 1 (y) S 4" REST, "x) S 1 1 1 (y" },
		{ "12 () R 4" REST, "" },
		{ "12 (0123456789abcdefgh) S 4" REST, "0123456789abcde" },
	};
	static const char *const bad[] = { "", "12", "12 (sh", "12 (sh)",
		"12 (sh) S", "12 (sh) S 4 5 6", "(sh) S 4" REST,
		"12 )sh( S 4" REST, "12 (sh) S x" REST };
	struct err e = { 0 };
	struct proc p;
	size_t i;

	(void)state;
	for (i = 0; i < LEN(cases); i++) {
		memset(&p, 0, sizeof(p));
		assert_int_equal(proc_parse_stat(cases[i].s, strlen(cases[i].s),
				     &p, &e),
		    0);
		assert_string_equal(p.comm, cases[i].comm);
		assert_int_equal(p.pid, 12);
		assert_int_equal(p.ppid, 4);
		assert_int_equal(p.sid, 6);
		assert_int_equal(p.tty, 34816);
		assert_int_equal(p.start, 4242);
	}
	for (i = 0; i < LEN(bad); i++)
		assert_int_equal(proc_parse_stat(bad[i], strlen(bad[i]), &p,
				     &e),
		    -1);
}

static void
root_means_all_four_uids(void **state)
{
	static const struct {
		const char *s;
		int ret;
		bool root;
	} cases[] = {
		{ "Name:\tx\nUid:\t0\t0\t0\t0\nGid:\t0\n", 0, true },
		{ "Name:\tx\nUid:\t1000\t0\t0\t0\n", 0, false },
		{ "Name:\tx\nUid:\t0\t0\t1000\t0\n", 0, false },
		{ "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n", 0, false },
		{ "Name:\tUid:\t0\t0\t0\t0\nUid:\t9\t9\t9\t9\n", 0, false },
		{ "Name:\tx\nUid:\t0\t0\n", -1, false },
		{ "Name:\tx\n", -1, false },
	};
	struct err e = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < LEN(cases); i++) {
		bool root = false;

		assert_int_equal(proc_parse_status(cases[i].s, &root, &e),
		    cases[i].ret);
		assert_int_equal(root, cases[i].root);
	}
}

static void
the_control_group_is_found_by_its_field(void **state)
{
	static const struct {
		const char *s, *unit;
	} cases[] = {
		{ "0::/a.service\n", "/a.service" },
		{ "9:name=systemd:/b.scope\n8:pids:/\n0::/\n", "/b.scope" },
		{ "0::/\n9:name=systemd:/b.scope\n", "/b.scope" },
		{ "0::/u/x:name=systemd:/sshd.service\n",
		    "/u/x:name=systemd:/sshd.service" },
		{ "8:pids:/x0::/y\n", "" },
		{ "8:pids:/\n", "" },
		{ "0::/cut", "" },
		{ "odd\n\n", "" },
	};
	char out[64], line[300];
	size_t i;

	(void)state;
	for (i = 0; i < LEN(cases); i++) {
		proc_parse_cgroup(cases[i].s, out, sizeof(out));
		assert_string_equal(out, cases[i].unit);
	}
	memset(line, 'x', sizeof(line));
	memcpy(line, "0::/", 4);
	line[298] = '\n';
	line[299] = '\0';
	proc_parse_cgroup(line, out, sizeof(out));
	assert_string_equal(out, "");
}

static void
own_chain_goes_up_to_the_end(void **state)
{
	struct chain c = { 0 };
	struct err e = { 0 };

	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	(void)state;
	if (fd == -1)
		skip(); /* valgrind 3.19 */
	close(fd);
	assert_int_equal(chain_read(getpid(), &c, &e), 0);
	assert_int_equal(c.v[0].pid, getpid());
	assert_int_equal(c.v[0].sid, getsid(0));
	assert_int_equal(c.v[0].ppid, getppid());
	assert_int_equal(c.v[0].root, getuid() == 0);
	assert_non_null(strstr(c.v[0].exe, "/test_proctree"));
	assert_true(c.n > 1);
	assert_int_equal(c.v[1].pid, getppid());
	assert_int_equal(c.v[c.n - 1].ppid, 0);
	assert_int_equal(chain_find(&c, &c.v[1]), 1);
	c.v[0].start++;
	assert_int_equal(chain_find(&c, &c.v[0]), 0);
	chain_release(&c);
}

static void
nobody_has_no_chain(void **state)
{
	static const pid_t pids[] = { 0, -1, 0x3fffffff };
	struct chain c = { 0 };
	struct err e = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < LEN(pids); i++)
		assert_int_equal(chain_read(pids[i], &c, &e), -1);
}

/* A zombie is dead, and a pid with another start is another process. */
static void
life_is_pid_and_start(void **state)
{
	struct proc p = { 0 };
	struct err e = { 0 };
	siginfo_t info;
	pid_t child;

	(void)state;
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_int_equal(proc_read(child, &p, &e), 0);
	assert_true(proc_is_alive(&p));
	p.start++;
	assert_false(proc_is_alive(&p));
	p.start--;
	kill(child, SIGKILL);
	waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
	assert_false(proc_is_alive(&p));
	waitpid(child, NULL, 0);
	assert_false(proc_is_alive(&p));
}

static void
sessions_are_sorted_and_ours_is_there(void **state)
{
	struct err e = { 0 };
	pid_t *v = NULL;
	size_t n = 0, i, ours = 0;

	(void)state;
	assert_int_equal(proc_sessions(&v, &n, &e), 0);
	for (i = 0; i < n; i++) {
		assert_true(i == 0 || v[i - 1] <= v[i]);
		ours += v[i] == getsid(0);
	}
	assert_true(ours > 0);
	free(v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_is_read_behind_any_name),
		cmocka_unit_test(root_means_all_four_uids),
		cmocka_unit_test(the_control_group_is_found_by_its_field),
		cmocka_unit_test(own_chain_goes_up_to_the_end),
		cmocka_unit_test(nobody_has_no_chain),
		cmocka_unit_test(life_is_pid_and_start),
		cmocka_unit_test(sessions_are_sorted_and_ours_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
