/* test_clock: deadlines, and times as people write them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/clock.h"

#define DAY ((int64_t)24 * 3600 * 1000)

static void
clocks_do_not_run_backwards(void **state UNUSED)
{
	int64_t ns = clock_mono_ns(), ms = clock_boot_ms();

	assert_true(ns > 0 && ms > 0);
	for (int i = 0; i < 1000; i++) {
		int64_t n = clock_mono_ns(), m = clock_boot_ms();

		assert_true(n >= ns && m >= ms);
		ns = n;
		ms = m;
	}
	assert_true(clock_wall_ms() > INT64_C(1767225600000)); /* 2026 */
}

static void
times_are_rfc_3339(void **state UNUSED)
{
	static const struct {
		int64_t ms;
		const char *iso;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ 1, "1970-01-01T00:00:00.001Z" },
		{ INT64_C(951826462789), "2000-02-29T12:14:22.789Z" },
		{ INT64_C(1767323045678), "2026-01-02T03:04:05.678Z" },
		{ INT64_C(253402300799999), "9999-12-31T23:59:59.999Z" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[CLOCK_ISO_SIZE];

		clock_iso(out, cases[i].ms);
		assert_string_equal(out, cases[i].iso);
	}
}

static void
durations_are_read(void **state UNUSED)
{
	static const struct {
		const char *s;
		int64_t ms; /* 0: refused */
	} cases[] = {
		{ "90", 90000 },
		{ "90s", 90000 },
		{ "10m", 600000 },
		{ "2h", 7200000 },
		{ "500ms", 500 },
		{ "1ms", 1 },
		{ "007s", 7000 },
		{ "720h", 30 * DAY },
		{ "721h", 0 },
		{ "2592001", 0 },
		{ "2592000001ms", 0 },
		{ "99999999999999999999999999", 0 },
		{ "18446744073709551617ms", 0 },
		{ "0", 0 },
		{ "0ms", 0 },
		{ "", 0 },
		{ "s", 0 },
		{ "-1", 0 },
		{ "+1", 0 },
		{ " 1", 0 },
		{ "1 ", 0 },
		{ "1 s", 0 },
		{ "1.5s", 0 },
		{ "1S", 0 },
		{ "1d", 0 },
		{ "1m30s", 0 },
		{ "10mm", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = ERR_INIT;
		int64_t ms = 0;
		int r = clock_parse_duration(cases[i].s, &ms, &e);

		if (r != (cases[i].ms != 0 ? 0 : -1))
			fail_msg("'%s' gives %d", cases[i].s, r);
		assert_int_equal(ms, cases[i].ms);
		if (r == -1)
			assert_int_equal(e.code, ERR_INPUT);
	}
}

static void
durations_are_printed_as_they_are_read(void **state UNUSED)
{
	static const struct {
		int64_t ms;
		const char *s;
	} cases[] = {
		{ 1, "1ms" },
		{ 999, "999ms" },
		{ 1000, "1s" },
		{ 1500, "1500ms" },
		{ 90000, "90s" },
		{ 600000, "10m" },
		{ 3600000, "1h" },
		{ 5400000, "90m" },
		{ 30 * DAY, "720h" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = ERR_INIT;
		char out[32];
		int64_t ms;

		clock_print_duration(out, sizeof(out), cases[i].ms);
		assert_string_equal(out, cases[i].s);
		assert_int_equal(clock_parse_duration(out, &ms, &e), 0);
		assert_int_equal(ms, cases[i].ms);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_do_not_run_backwards),
		cmocka_unit_test(times_are_rfc_3339),
		cmocka_unit_test(durations_are_read),
		cmocka_unit_test(durations_are_printed_as_they_are_read),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
