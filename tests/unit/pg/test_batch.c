/* test_batch: batches as they are built, sessions as they begin */
#include "pg/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "pg/session.h"

static void
a_batch_copies_and_counts(void **state UNUSED)
{
	struct batch *b = batch_new();
	char value[] = "one";
	const char *values[] = { value, NULL };

	assert_int_equal(batch_add(b, "SELECT $1, $2", 2, values), 0);
	value[0] = 'X';
	batch_sync(b);
	assert_int_equal(batch_add_prepared(b, "p", 0, NULL), 2);
	assert_string_equal(b->v[0].values[0], "one");
	assert_null(b->v[0].values[1]);
	assert_true(b->v[2].prepared);
	assert_int_equal(batch_state(b, 0), BATCH_WAITING);
	assert_null(batch_result(b, 0));
	assert_null(batch_cell(b, 0, 0, 0));
	assert_false(batch_is_ok(b));
	batch_free(b);
	batch_free(NULL);
}

static void
an_optional_statement_may_fail(void **state UNUSED)
{
	struct batch *b = batch_new();

	batch_add(b, "SET x = 1", 0, NULL);
	batch_optional(b);
	batch_sync(b);
	batch_add(b, "SELECT 1", 0, NULL);
	b->v[0].state = BATCH_FAILED;
	b->v[2].state = BATCH_OK;
	assert_true(batch_is_ok(b));
	assert_int_equal(batch_failed(b), (size_t)-1);
	b->v[2].state = BATCH_FAILED;
	assert_false(batch_is_ok(b));
	assert_int_equal(batch_failed(b), 2);
	b->v[2].state = BATCH_OK;
	b->is_lost = true;
	assert_false(batch_is_ok(b));
	batch_free(b);
}

/* What a role, a database or a user's own options say stands before ours. */
static void
the_session_is_pinned_from_its_start(void **state UNUSED)
{
	static const char *const pins[] = {
		"-c standard_conforming_strings=on",
		"-c DateStyle=ISO,\\ MDY",
		"-c IntervalStyle=postgres",
		"-c TimeZone=UTC",
		"-c extra_float_digits=1",
		"-c bytea_output=hex",
		"-c xmloption=content",
		"-c row_security=on",
		"-c lock_timeout=7",
		"-c statement_timeout=8",
	};
	struct session_options o = { "\"$user\", a\\b", 7, 8 };
	char *s = session_startup(&o);

	for (size_t i = 0; i < sizeof(pins) / sizeof(pins[0]); i++)
		if (strstr(s, pins[i]) == NULL)
			fail_msg("no '%s' in '%s'", pins[i], s);
	assert_non_null(
	    strstr(s, "-c search_path=\"$user\",\\ a\\\\b,\\ pg_temp "));
	free(s);
	o.search_path = "pg_temp, x";
	s = session_startup(&o);
	assert_non_null(strstr(s, "search_path=pg_temp,\\ x "));
	free(s);
	o.search_path = "";
	s = session_startup(&o);
	assert_non_null(strstr(s, "search_path=pg_temp "));
	free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_copies_and_counts),
		cmocka_unit_test(an_optional_statement_may_fail),
		cmocka_unit_test(the_session_is_pinned_from_its_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
