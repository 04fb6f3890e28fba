/* cooloff: when an agent that keeps being refused has to wait, and how long */
#include "core/cooloff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "rule/reasons.h"

#define CODE "FUNCTION_OUTSIDE"

static const struct cooloff_rule three = { 3, 1000, 500 };

static void
begins_with_the_last_of_so_many(void **state UNUSED)
{
	struct cooloff c = { 0 };

	assert_false(cooloff_count(&c, &three, CODE, 5000));
	assert_false(cooloff_count(&c, &three, CODE, 5500));
	assert_int_equal(cooloff_left(&c, 5500), 0);
	assert_true(cooloff_count(&c, &three, CODE, 6000));
	assert_int_equal(cooloff_left(&c, 6000), 500);
	assert_int_equal(cooloff_left(&c, 6499), 1);
	/* what is refused meanwhile does not count, nor make it longer */
	for (int i = 0; i < 9; i++)
		assert_false(cooloff_count(&c, &three, CODE, 6499));
	assert_int_equal(cooloff_left(&c, 6500), 0);
	/* and counting has begun anew */
	assert_false(cooloff_count(&c, &three, CODE, 6501));
	assert_false(cooloff_count(&c, &three, CODE, 6502));
	assert_true(cooloff_count(&c, &three, CODE, 6503));
	cooloff_release(&c);
}

static void
old_refusals_are_forgotten(void **state UNUSED)
{
	struct cooloff c = { 0 };

	for (int64_t now = 5000; now < 20000; now += 501)
		assert_false(cooloff_count(&c, &three, CODE, now));
	assert_true(cooloff_count(&c, &three, CODE, 20000));
	cooloff_release(&c);
	/* The first of three is as old as the window is long, or 1 ms older. */
	for (int older = 0; older < 2; older++) {
		assert_false(cooloff_count(&c, &three, CODE, 30000 - older));
		assert_false(cooloff_count(&c, &three, CODE, 30500));
		assert_int_equal(cooloff_count(&c, &three, CODE, 31000),
		    older == 0);
		cooloff_release(&c);
		c = (struct cooloff){ 0 };
	}
}

static void
one_is_enough_where_it_is_said(void **state UNUSED)
{
	static const struct cooloff_rule one = { 1, 1000, 500 };
	struct cooloff c = { 0 };

	assert_true(cooloff_count(&c, &one, CODE, 5000));
	assert_true(cooloff_count(&c, &one, CODE, 5500));
	cooloff_release(&c);
}

static void
can_be_switched_off_and_changed(void **state UNUSED)
{
	static const struct cooloff_rule off = { 0, 1000, 500 };
	static const struct cooloff_rule two = { 2, 1000, 500 };
	struct cooloff c = { 0 };

	for (int i = 0; i < 100; i++)
		assert_false(cooloff_count(&c, &off, CODE, 5000));
	assert_false(cooloff_count(&c, &three, CODE, 5000));
	assert_false(cooloff_count(&c, &two, CODE, 5001));
	assert_true(cooloff_count(&c, &two, CODE, 5002));
	cooloff_release(&c);
}

/* A server that is down, a busy change, a failed statement: no fault of what
 * was asked. */
static void
only_what_was_asked_counts(void **state UNUSED)
{
	static const struct cooloff_rule one = { 1, 1000, 500 };
	static const char *const others[] = { "42601", "23505", "COOL_OFF",
		"DATABASE_DOWN", "UNAVAILABLE", "LOST", "CHANGE_BUSY",
		"CHANGE_NOT_PENDING", "TOO_MANY_CHANGES", "TOO_MANY_CALLS",
		"DEFINITION_CHANGED", "NOTHING_TO_RUN", "NO_WHERE", "" };
	struct cooloff c = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(cooloff_count(&c, &one, others[i], 5000));
	for (int r = 0; r < REASON_N; r++) {
		struct cooloff fresh = { 0 };
		bool counted =
		    cooloff_count(&fresh, &one, reasons[r].code, 5000);

		assert_true(!counted || reasons[r].severity == SEVERITY_REFUSE);
		n += counted;
		cooloff_release(&fresh);
	}
	assert_int_equal(n, 23);
	cooloff_release(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begins_with_the_last_of_so_many),
		cmocka_unit_test(old_refusals_are_forgotten),
		cmocka_unit_test(one_is_enough_where_it_is_said),
		cmocka_unit_test(can_be_switched_off_and_changed),
		cmocka_unit_test(only_what_was_asked_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
