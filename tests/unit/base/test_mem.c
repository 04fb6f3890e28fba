/* test_mem: allocation that cannot fail quietly, and wiping */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

static void
new_memory_is_zeroed(void **state UNUSED)
{
	static const unsigned char zero[1000];
	unsigned char *p;

	for (int i = 0; i < 10; i++) {
		p = mem_array(10, 100);
		assert_memory_equal(p, zero, sizeof(zero));
		memset(p, 0xff, sizeof(zero));
		free(p);
	}
	p = mem_new(0);
	assert_non_null(p);
	free(p);
	p = mem_array(0, 8);
	assert_non_null(p);
	free(p);
}

static void
growing_keeps_what_was_there(void **state UNUSED)
{
	int *p = mem_grow(NULL, 4, sizeof(*p));

	for (int i = 0; i < 4; i++)
		p[i] = i;
	p = mem_grow(p, 1000, sizeof(*p));
	for (int i = 0; i < 4; i++)
		assert_int_equal(p[i], i);
	p = mem_grow(p, 0, sizeof(*p));
	assert_non_null(p);
	free(p);
}

static void
strings_are_copied(void **state UNUSED)
{
	char *s = mem_strdup("abc");

	assert_string_equal(s, "abc");
	free(s);
	s = mem_strndup("abc\0def", 5);
	assert_memory_equal(s, "abc\0d\0", 6);
	free(s);
	s = mem_printf("%s-%d", "x", 7);
	assert_string_equal(s, "x-7");
	free(s);
}

static void
secrets_are_wiped(void **state UNUSED)
{
	char s[] = "secret";

	mem_wipe(s, sizeof(s));
	for (size_t i = 0; i < sizeof(s); i++)
		assert_int_equal(s[i], 0);
	mem_free_secret(NULL);
	mem_free_secret(mem_strdup("secret"));
}

static void
random_bytes_differ(void **state UNUSED)
{
	unsigned char a[5000] = { 0 }, b[5000] = { 0 };
	size_t zeros = 0;

	mem_random(a, sizeof(a));
	mem_random(b, sizeof(b));
	assert_memory_not_equal(a, b, sizeof(a));
	for (size_t i = 0; i < sizeof(a); i++)
		zeros += a[i] == 0;
	assert_true(zeros < 100); /* about 20 of 5,000 are */
	mem_random(a, 0);
}

typedef void deed(void);

static void
overflow_array(void)
{
	volatile size_t n = SIZE_MAX / 2;

	free(mem_array(n, 4));
}

static void
overflow_grow(void)
{
	volatile size_t n = SIZE_MAX / 2;

	free(mem_grow(NULL, n, 4));
}

/* A sum that wraps must never become a small allocation. */
static void
overflow_is_fatal(void **state UNUSED)
{
	static deed *const deeds[] = { overflow_array, overflow_grow };

	for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			int null = open("/dev/null", O_WRONLY);

			dup2(null, STDERR_FILENO);
			deeds[i]();
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_memory_is_zeroed),
		cmocka_unit_test(growing_keeps_what_was_there),
		cmocka_unit_test(strings_are_copied),
		cmocka_unit_test(secrets_are_wiped),
		cmocka_unit_test(random_bytes_differ),
		cmocka_unit_test(overflow_is_fatal),
	};

	return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
