/* test_parts: parameters, replies, grids and spools of the core */
#include "core/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/spool.h"

static int
read_params(const char *json, struct parameters *p, struct err *e)
{
	struct limits l;
	json_t *j = json != NULL ? json_loads(json,
				       JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
	                         : NULL;
	int rc;

	limits_init(&l);
	l.params_max = 3;
	l.param_bytes_max = 20;
	rc = parameters_read(j, &l, p, e);
	json_decref(j);
	return rc;
}

static void
parameters_are_text_or_null(void **state UNUSED)
{
	struct parameters p;
	struct err e = ERR_INIT;

	assert_int_equal(read_params(NULL, &p, &e), 0);
	assert_int_equal(p.n, 0);
	parameters_release(&p);
	assert_int_equal(read_params("[\"x\", null, 42]", &p, &e), 0);
	assert_int_equal(p.n, 3);
	assert_string_equal(p.v[0], "x");
	assert_null(p.v[1]);
	assert_string_equal(p.v[2], "42");
	parameters_release(&p);
	assert_int_equal(read_params("[true, -92233720368, 0.5]", &p, &e), 0);
	assert_string_equal(p.v[0], "true");
	assert_string_equal(p.v[1], "-92233720368");
	assert_string_equal(p.v[2], "0.5");
	parameters_release(&p);
}

static void
parameters_that_are_refused(void **state UNUSED)
{
	static const char *const bad[] = { "{}", "\"x\"", "[[1]]", "[{}]",
		"[\"a\\u0000b\"]", "[1,2,3,4]",
		"[\"0123456789\", \"01234567890\"]" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct parameters p;
		struct err e = ERR_INIT;

		assert_int_equal(read_params(bad[i], &p, &e), -1);
		assert_int_equal(e.code, ERR_INPUT);
	}
}

static void
replies_name_the_place_and_the_way_out(void **state UNUSED)
{
	struct finding f = { REASON_FUNCTION_OUTSIDE, 9, "bad() is bad" };
	struct reply r = { 0 };

	reply_finding(&r, &f,
	    "SELECT \xc3\xa9"
	    "bad('\x1b')");
	assert_string_equal(r.code, "FUNCTION_OUTSIDE");
	assert_string_equal(text_str(&r.text),
	    "REFUSED FUNCTION_OUTSIDE: bad() is bad (at character 9, near "
	    "\"bad('\\x1b')\"). Leave the call out.");
	f.position = 1000;
	reply_finding(&r, &f, "SELECT 1");
	assert_null(strstr(text_str(&r.text), "at character"));
	reply_reason(&r, REASON_LOST, "gone\nsay \"%s\"", "x");
	assert_true(text_starts_with(text_str(&r.text),
	    "REFUSED LOST: gone\\nsay \"x\". Nothing was applied."));
	reply_release(&r);
}

static void
every_status_of_the_parser_has_a_reply(void **state UNUSED)
{
	for (int s = PARSER_SYNTAX; s < PARSER_NSTATUS; s++) {
		struct parser_answer a = { .status = (enum parser_status)s };
		struct reply r = { 0 };

		reply_parser(&r, &a, "SELECT 1");
		assert_true(text_starts_with(text_str(&r.text),
		    s == PARSER_SYNTAX ? "ERROR 42601: " : "REFUSED "));
		assert_int_equal(strcmp(r.code, "NOT_PROVED") == 0,
		    s == PARSER_UNPROVED);
		reply_release(&r);
	}
}

static void
rows_come_back_from_the_spool(void **state UNUSED)
{
	int dir = open("/tmp", O_RDONLY | O_DIRECTORY);
	struct spool *s;
	struct err e = ERR_INIT;
	char big[10000];

	memset(big, 'x', sizeof(big));
	assert_int_equal(spool_open(dir, &s, &e), 0);
	for (uint32_t i = 0; i < 100; i++) {
		struct rowid id = { i + 1, i, 7 };
		struct value v[] = { { NULL, 0 }, { "", 0 }, { big, i * 100 } };

		assert_int_equal(spool_add(s, &id, v, 3, &e), 0);
	}
	assert_int_equal(spool_rewind(s, &e), 0);
	for (uint32_t i = 0; i < 100; i++) {
		struct rowid id;
		struct value v[3];

		assert_int_equal(spool_next(s, &id, v, 3, &e), 1);
		assert_int_equal(id.leaf, i + 1);
		assert_null(v[0].p);
		assert_non_null(v[1].p);
		assert_int_equal(v[1].len, 0);
		assert_int_equal(v[2].len, i * 100);
		assert_memory_equal(v[2].p, big, v[2].len);
	}
	{
		struct rowid id;
		struct value v[3];

		assert_int_equal(spool_next(s, &id, v, 3, &e), 0);
	}
	spool_close(s);
	spool_close(NULL);
	close(dir);
}

static void
counters_are_equal_only_in_all(void **state UNUSED)
{
	char name[] = "t";
	struct count_row a[] = { { 1, name, NULL, 'r', 'p', false, false,
				     { 1, 2, 3 }, false, false },
		{ 2, name, NULL, 'r', 'p', false, false, { 0, 0, 0 }, false,
		    false } };
	struct count_row b[2];
	struct counts x = { a, 2 }, y = { b, 2 };

	memcpy(b, a, sizeof(b));
	assert_true(counts_equal(&x, &y));
	b[1].n[IMAGE_DELETE] = 1;
	assert_false(counts_equal(&x, &y));
	memcpy(b, a, sizeof(b));
	b[0].exclusive = true;
	assert_false(counts_equal(&x, &y));
	memcpy(b, a, sizeof(b));
	b[0].oid = 9;
	assert_false(counts_equal(&x, &y));
	y.n = 1;
	assert_false(counts_equal(&x, &y));
	memcpy(b, a, sizeof(b));
	a[1].kind = 'S'; /* only locked */
	assert_true(counts_equal(&x, &y));
	assert_true(counts_equal(&y, &x));
	assert_null(counts_find(&x, 7));
	assert_ptr_equal(counts_find(&x, 2), &a[1]);
}

static void
every_state_has_its_word(void **state UNUSED)
{
	for (int s = 0; s < CHANGE_NSTATES; s++)
		assert_non_null(change_status[s]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_are_text_or_null),
		cmocka_unit_test(parameters_that_are_refused),
		cmocka_unit_test(replies_name_the_place_and_the_way_out),
		cmocka_unit_test(every_status_of_the_parser_has_a_reply),
		cmocka_unit_test(rows_come_back_from_the_spool),
		cmocka_unit_test(counters_are_equal_only_in_all),
		cmocka_unit_test(every_state_has_its_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
