/* test_diffview: no value reads like another, or like a line of ours */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../cli/diffview.h"

/* NULL stands for SQL's. */
static json_t *
value(const char *s)
{
	return s != NULL ? json_string(s) : json_null();
}

static void
test_value(void **state UNUSED)
{
	static const struct {
		const char *value, *shown;
		size_t most;
	} cases[] = {
		{ NULL, "NULL", 0 },
		{ "NULL", "\"NULL\"", 0 },
		{ "", "\"\"", 0 },
		{ "100.00", "100.00", 0 },
		{ "-1", "-1", 0 },
		{ "2026-01-02 03:04:05+00", "2026-01-02 03:04:05+00", 0 },
		{ "ann@example.org", "ann@example.org", 0 },
		{ "a b", "a b", 0 },
		{ "a  b", "\"a  b\"", 0 },
		{ " a", "\" a\"", 0 },
		{ "a ", "\"a \"", 0 },
		{ "a -> b", "\"a -> b\"", 0 },
		{ "a\" -> \"b", "\"a\\\" -> \\\"b\"", 0 },
		{ "a\\", "\"a\\\\\"", 0 },
		{ "a\nb", "\"a\\nb\"", 0 },
		{ "\x1b[2J", "\"\\x1b[2J\"", 0 },
		{ "caf\xc3\xa9", "\"caf\xc3\xa9\"", 0 },
		{ "abcdef", "\"abc\"... (6 bytes)", 3 },
		{ "abc", "abc", 3 },
		{ "\xc3\xa9\xc3\xa9", "\"\xc3\xa9\"... (4 bytes)", 3 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *v = value(cases[i].value);
		struct text t = { 0 };

		diffview_value(&t, v, cases[i].most);
		assert_string_equal(text_str(&t), cases[i].shown);
		text_release(&t);
		json_decref(v);
	}
}

/* A value that differs behind what is shown must not look the same. */
static void
test_pair(void **state UNUSED)
{
	static const struct {
		const char *before, *after, *shown;
	} cases[] = {
		{ "1", "2", "1 -> 2" },
		{ "1", NULL, "1 -> NULL" },
		{ NULL, "", "NULL -> \"\"" },
		{ "0123456789012345678901234567890123456789x",
		    "0123456789012345678901234567890123456789y",
		    "...\"678901234567890123456789x\" (bytes 17 to 41 of 41) "
		    "-> "
		    "...\"678901234567890123456789y\" (bytes 17 to 41 of 41)" },
		{ "0123456789012345678901234567890123456789",
		    "0123456789012345678901234567890123456789 and more "
		    "than that, quite a lot more than that",
		    NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *b = value(cases[i].before), *a = value(cases[i].after);
		struct text t = { 0 };
		char *arrow;

		diffview_pair(&t, b, a, 40);
		if (cases[i].shown != NULL)
			assert_string_equal(text_str(&t), cases[i].shown);
		arrow = strstr(t.s, " -> ");
		assert_non_null(arrow);
		*arrow = '\0';
		assert_string_not_equal(t.s, arrow + 4);
		text_release(&t);
		json_decref(a);
		json_decref(b);
	}
}

/* What a row prints, with a terminal of no width. */
static char *
printed(const char *json, const char *column)
{
	json_t *row = json_loads(json, 0, NULL);
	struct term t = { 0 };
	char *s = NULL;
	size_t n;

	assert_non_null(row);
	t.out = open_memstream(&s, &n);
	diffview_row(&t, row, column);
	fclose(t.out);
	json_decref(row);
	return s;
}

static void
test_row(void **state UNUSED)
{
	static const struct {
		const char *row, *column, *shown;
	} cases[] = {
		{ "{\"table\":\"s.t\",\"op\":\"update\",\"collateral\":false,"
		  "\"key\":{\"id\":\"1\"},\"before\":{\"id\":\"1\",\"a\":\"x\","
		  "\"b\":\"y\"},\"after\":{\"id\":\"1\",\"a\":\"x\",\"b\":null}}",
		    NULL, "    update s.t id=1\n      b: y -> NULL\n" },
		{ "{\"table\":\"s.t\",\"op\":\"update\",\"collateral\":true,"
		  "\"key\":null,\"before\":{\"a\":\"x\",\"b\":\"y\"},"
		  "\"after\":{\"a\":\"x\",\"b\":\"z\"}}",
		    NULL,
		    "    update s.t (no key) (collateral: not named by the "
		    "statement)\n      a: x (unchanged)\n      b: y -> z\n" },
		{ "{\"table\":\"s.t\",\"op\":\"insert\",\"collateral\":false,"
		  "\"key\":{\"a\":\"x\",\"b\":\"y\"},\"before\":null,"
		  "\"after\":{\"a\":\"x\",\"b\":\"y\",\"c\":null}}",
		    NULL,
		    "    insert s.t a=x, b=y\n      a: x\n      b: y\n"
		    "      c: NULL\n" },
		{ "{\"table\":\"s.t\",\"op\":\"delete\",\"collateral\":false,"
		  "\"key\":{\"a\":\"x\"},\"before\":{\"a\":\"x\",\"c\":\"d\"},"
		  "\"after\":null}",
		    NULL, "    delete s.t a=x\n      a: x\n      c: d\n" },
		{ "{\"table\":\"s.t\",\"op\":\"update\",\"collateral\":false,"
		  "\"key\":{\"a\":\"x\"},\"before\":{\"a\":\"x\",\"c\":\"d\","
		  "\"e: 1 -> 2\":\"0\"},\"after\":{\"a\":\"x\",\"c\":\"e\"}}",
		    NULL,
		    "    update s.t a=x\n      c: d -> e\n"
		    "      \"e: 1 -> 2\": 0\n" },
		{ "{\"table\":\"s.t\",\"op\":\"update\",\"collateral\":false,"
		  "\"key\":{\"a\":\"x\"},\"before\":{\"a\":\"x\",\"c\":\"d\"},"
		  "\"after\":{\"a\":\"x\",\"c\":\"e\"}}",
		    "a", "    update s.t a=x\n      a: x (unchanged)\n" },
		{ "{}", NULL, "      (no key)\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *s = printed(cases[i].row, cases[i].column);

		assert_string_equal(s, cases[i].shown);
		free(s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_value),
		cmocka_unit_test(test_pair),
		cmocka_unit_test(test_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
