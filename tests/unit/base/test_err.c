/* test_err: the errors that travel as values */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/err.h"

static void
set_fills_code_and_text(void **state UNUSED)
{
	struct err e = ERR_INIT;

	assert_int_equal(err_set(&e, ERR_LIMIT, "%d of '%s'", 3, "x"), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_string_equal(e.text, "3 of 'x'");
}

static void
sys_adds_what_errno_says_and_keeps_it(void **state UNUSED)
{
	struct err e = ERR_INIT;

	errno = ENOENT;
	assert_int_equal(err_sys(&e, "cannot open '%s'", "f"), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(e.code, ERR_SYSTEM);
	assert_string_equal(e.text,
	    "cannot open 'f': No such file or directory");
}

static void
wrap_goes_before_and_keeps_the_code(void **state UNUSED)
{
	struct err e = ERR_INIT;

	err_set(&e, ERR_GONE, "inner");
	assert_int_equal(err_wrap(&e, "outer %d", 1), -1);
	assert_int_equal(e.code, ERR_GONE);
	assert_string_equal(e.text, "outer 1: inner");
}

static void
long_text_is_cut(void **state UNUSED)
{
	struct err e = ERR_INIT;
	char big[2000];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	err_set(&e, ERR_INPUT, "%s", big);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	errno = EIO;
	err_sys(&e, "%s", big);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	err_wrap(&e, "%s", big);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

static void
every_code_has_its_own_name(void **state UNUSED)
{
	for (int i = 0; i < ERR_NCODES; i++) {
		const char *name = err_name((enum err_code)i);

		assert_true(strlen(name) > 0);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(name,
			    err_name((enum err_code)k));
	}
	assert_string_equal(err_name(ERR_INPUT), "input");
	assert_string_equal(err_name(ERR_NCODES), "unknown");
	assert_string_equal(err_name((enum err_code) - 1), "unknown");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_fills_code_and_text),
		cmocka_unit_test(sys_adds_what_errno_says_and_keeps_it),
		cmocka_unit_test(wrap_goes_before_and_keeps_the_code),
		cmocka_unit_test(long_text_is_cut),
		cmocka_unit_test(every_code_has_its_own_name),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
