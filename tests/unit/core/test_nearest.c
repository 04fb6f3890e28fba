/* nearest: how far one name is from another */
#include "core/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"

#define LONG "a123456789b123456789c123456789d123456789e123456789f123456789g123"

static const struct {
	const char *a, *b;
	int distance;
} cases[] = {
	{ "", "", 0 },
	{ "a", "a", 0 },
	{ "customers", "Customers", 0 },
	{ "custmers", "customers", 1 },
	{ "customerss", "customers", 1 },
	{ "custamers", "customers", 1 },
	{ "emial", "email", 1 },
	{ "ab", "ba", 1 },
	{ "abcd", "badc", 2 },
	{ "order", "orders_", 2 },
	{ "abc", "xyz", 3 },
	{ "", "abc", 3 },
	{ "", "abcd", NEAREST_FAR },
	{ "abcd", "wxyz", NEAREST_FAR },
	{ "short", "a name that is much longer", NEAREST_FAR },
	{ LONG, LONG, 0 },
	{ LONG "x", LONG, NEAREST_FAR }, /* longer than a name can be */
	{ "\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa8", 1 },
};

static void
distances(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(nearest_distance(cases[i].a, cases[i].b),
		    cases[i].distance);
		assert_int_equal(nearest_distance(cases[i].b, cases[i].a),
		    cases[i].distance);
	}
}

static void
only_names_are_looked_for(void **state UNUSED)
{
	assert_true(nearest_fits("42P01"));
	assert_true(nearest_fits("42703"));
	assert_false(nearest_fits("42601"));
	assert_false(nearest_fits("23505"));
	assert_false(nearest_fits("FUNCTION_UNKNOWN"));
	assert_false(nearest_fits(""));
	nearest_cancel(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances),
		cmocka_unit_test(only_names_are_looked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
