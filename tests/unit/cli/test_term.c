/* test_term: what reaches a terminal is quoted, and wrapped by us */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../cli/term.h"

static void
test_lines_are_wrapped(void **state UNUSED)
{
	static const char *const prefixes[] = { "", "  ", "  sql | ",
		"a long one | " };
	static const char wide[] = "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2"
				   "\xe5\xad\x97 and more, a good deal more "
				   "than a narrow terminal can show COMMITTED";

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		for (size_t width = 40; width < 60; width++) {
			struct term t = { .width = width };
			char *s = NULL, *line, *rest;
			size_t n;

			t.out = open_memstream(&s, &n);
			term_line(&t, PLAIN, prefixes[i], wide);
			fclose(t.out);
			rest = s;
			for (int k = 0; (line = strsep(&rest, "\n")); k++) {
				if (*line == '\0')
					continue;
				assert_true(strlen(line) < width + 4);
				assert_true(text_is_utf8(line, strlen(line)));
				if (k > 0)
					assert_memory_equal(line, "    ", 4);
			}
			free(s);
		}
}

static void
test_blocks_keep_their_lines(void **state UNUSED)
{
	static const struct {
		const char *text, *shown;
	} cases[] = {
		{ "", "| \n" },
		{ "a", "| a\n" },
		{ "a\nb", "| a\n| b\n" },
		{ "a\n", "| a\n| \n" },
		{ "\ta\tb", "|     a    b\n" },
		{ "a\rb\x1b[2J", "| a\\rb\\x1b[2J\n" },
		{ "a\\nb", "| a\\\\nb\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct term t = { 0 };
		char *s = NULL;
		size_t n;

		t.out = open_memstream(&s, &n);
		term_block(&t, "| ", cases[i].text, strlen(cases[i].text));
		fclose(t.out);
		assert_string_equal(s, cases[i].shown);
		free(s);
	}
}

static void
test_json_is_ascii(void **state UNUSED)
{
	json_t *v = json_string("\x1b\x7f\xc2\x9b\xe2\x80\xae\xc3\xa9\"");
	char *s = term_json_text(v);
	json_t *back = json_loads(s, JSON_DECODE_ANY, NULL);

	assert_string_equal(s, "\"\\u001B\\u007f\\u009B\\u202E\\u00E9\\\"\"");
	assert_true(json_equal(v, back));
	json_decref(back);
	json_decref(v);
	free(s);
}

static void
test_members(void **state UNUSED)
{
	json_t *o = json_pack("{s:s, s:i, s:[i]}", "s", "a\nb", "n", 7, "l", 1);

	assert_string_equal(term_member(o, "s", 10), "a\\nb");
	assert_string_equal(term_member(o, "s", 1), "a... (3 bytes)");
	assert_string_equal(term_member(o, "n", 10), "7");
	assert_string_equal(term_member(o, "l", 10), "[1]");
	assert_string_equal(term_member(o, "none", 10), "");
	assert_string_equal(term_member(NULL, "none", 10), "");
	json_decref(o);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_are_wrapped),
		cmocka_unit_test(test_blocks_keep_their_lines),
		cmocka_unit_test(test_json_is_ascii),
		cmocka_unit_test(test_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
