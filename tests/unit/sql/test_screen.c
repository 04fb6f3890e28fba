/* screen: what never reaches the parser, and what must not be kept from it */
#include "sql/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/text.h"

static const struct screen_limits limits = { 100000, 256, 64 };

/* before, middle n times, after */
static const struct {
	const char *before, *middle;
	size_t n;
	const char *after;
	enum screen verdict;
} cases[] = {
	{ "SELECT 1", "", 0, "", SCREEN_FINE },
	{ "", "", 0, "", SCREEN_FINE },
	{ "", "x", 100000, "", SCREEN_FINE },
	{ "", "x", 100001, "", SCREEN_TOO_LARGE },
	{ "SELECT '\xff", "", 0, "'", SCREEN_NOT_UTF8 },
	{ "SELECT '\xed\xa0\x80", "", 0, "'", SCREEN_NOT_UTF8 },
	{ "SELECT 'é漢'", "", 0, "", SCREEN_FINE },
	/* operators */
	{ "SELECT 1 ", "+", 256, "1", SCREEN_FINE },
	{ "SELECT 1 ", "+", 257, "1", SCREEN_TOO_COMPLEX },
	{ "SELECT 1 ", "+-", 129, "1", SCREEN_TOO_COMPLEX },
	{ "SELECT 1 ", "~!@#^&|`?+*%<>=", 18, "1", SCREEN_TOO_COMPLEX },
	{ "SELECT 1 ", "+ ", 1000, "1", SCREEN_FINE },
	{ "SELECT 1", "+1", 1000, "", SCREEN_FINE },
	/* inside literals nothing is looked at */
	{ "SELECT '", "=", 1000, "'", SCREEN_FINE },
	{ "SELECT '", "/*", 1000, "'", SCREEN_FINE },
	{ "SELECT \"", "=", 1000, "\"", SCREEN_FINE },
	{ "SELECT $$", "=", 1000, "$$", SCREEN_FINE },
	{ "SELECT $a$ $$ $b$", "=", 1000, "$a$", SCREEN_FINE },
	{ "SELECT E'\\'", "=", 1000, "'", SCREEN_FINE },
	{ "SELECT e'''\\'", "=", 1000, "'", SCREEN_FINE },
	{ "SELECT E'a'\n'\\'", "=", 1000, "'", SCREEN_FINE },
	{ "SELECT ''''", "=", 1000, "", SCREEN_TOO_COMPLEX },
	{ "SELECT '\\'", "=", 1000, "", SCREEN_TOO_COMPLEX },
	{ "SELECT E'\\\\'", "=", 1000, "", SCREEN_TOO_COMPLEX },
	{ "SELECT $a$ $a$", "=", 1000, "", SCREEN_TOO_COMPLEX },
	{ "SELECT a$b$ ", "=", 1000, "", SCREEN_TOO_COMPLEX },
	{ "SELECT $1", "=", 1000, "", SCREEN_TOO_COMPLEX },
	{ "SELECT $1$", "=", 1000, "", SCREEN_TOO_COMPLEX },
	/* comments */
	{ "-", "-", 1000, "\nSELECT 1", SCREEN_FINE },
	{ "/* ", "-", 1000, " */ SELECT 1", SCREEN_FINE },
	{ "/*", "*", 1000, "/ SELECT 1", SCREEN_FINE },
	{ "/* ", "=", 1000, " */ SELECT 1", SCREEN_FINE },
	{ "-- x\n", "=", 257, "", SCREEN_TOO_COMPLEX },
	{ "-- ' \n", "=", 257, "'", SCREEN_TOO_COMPLEX },
	{ "-- ' \r", "=", 257, "'", SCREEN_TOO_COMPLEX },
	{ "/* ' */ ", "=", 257, "'", SCREEN_TOO_COMPLEX },
	{ "/* /* */ ", "=", 257, "", SCREEN_FINE },
	{ "/* /* */ */ ", "=", 257, "", SCREEN_TOO_COMPLEX },
	{ "", "/*", 64, "", SCREEN_FINE },
	{ "", "/* ", 64, "", SCREEN_FINE },
	{ "", "/* ", 65, "", SCREEN_TOO_COMPLEX },
	{ "", "/**/", 64, "", SCREEN_FINE },
	{ "", "/**/", 65, "", SCREEN_TOO_COMPLEX },
	{ "", "/*-*/+", 65, "", SCREEN_TOO_COMPLEX },
	{ "", "/**/ ", 1000, "SELECT 1", SCREEN_FINE },
	{ "", "/* x */", 1000, "SELECT 1", SCREEN_FINE },
	{ "SELECT '", "x", 10, "", SCREEN_FINE },
	{ "SELECT $", "", 0, "", SCREEN_FINE },
	{ "SELECT $a", "", 0, "", SCREEN_FINE },
	{ "SELECT E'\\", "", 0, "", SCREEN_FINE },
	{ "/", "", 0, "", SCREEN_FINE },
	{ "e", "", 0, "", SCREEN_FINE },
};

static void
screens(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text t = { 0 };
		char why[128] = "", *copy;
		enum screen verdict;
		long at;

		text_add(&t, cases[i].before);
		for (size_t k = 0; k < cases[i].n; k++)
			text_add(&t, cases[i].middle);
		text_add(&t, cases[i].after);
		/* Of its own size, so that reading past it is seen. */
		copy = malloc(t.len > 0 ? t.len : 1);
		assert_non_null(copy);
		memcpy(copy, text_str(&t), t.len);
		verdict =
		    screen_text(copy, t.len, &limits, why, sizeof(why), &at);
		if (verdict != cases[i].verdict)
			fail_msg("case %zu (%s%s...): %d, %s", i,
			    cases[i].before, cases[i].middle, verdict, why);
		assert_int_equal(verdict == SCREEN_FINE, *why == '\0');
		assert_int_equal(verdict == SCREEN_TOO_COMPLEX, at != -1);
		free(copy);
		text_release(&t);
	}
}

static void
finds_nul(void **state UNUSED)
{
	char why[128];
	long at;

	assert_int_equal(screen_text("SELECT 1;\0DROP", 14, &limits, why,
			     sizeof(why), &at),
	    SCREEN_NUL);
	assert_int_equal(at, 9);
	assert_int_equal(screen_text("", 1, &limits, why, sizeof(why), &at),
	    SCREEN_NUL);
	assert_int_equal(at, 0);
}

/* what it is with its comments gone; NULL: the same */
static const struct {
	const char *sql, *bare;
} bare[] = {
	{ "", NULL },
	{ "SELECT 1", NULL },
	{ "SELECT 1 -- x", "SELECT 1     " },
	{ "--\tx\nSELECT 1", "  \t \nSELECT 1" },
	{ "a/**/b", "a    b" },
	{ "a\v/*\v*/\vb -- \v", "a\v     \vb     " },
	{ "a/* x\n y */b", "a    \n     b" },
	{ "a/* /* x */ ' */b", "a               b" },
	{ "1 NOT /*c*/ IN (2)", "1 NOT       IN (2)" },
	{ "a+--b\n-1", "a+   \n-1" },
	{ "2*/*c*/3", "2*     3" },
	{ "1//*x*/2", "1/     2" },
	{ "/* é */1", "        1" },
	/* what only looks like one */
	{ "SELECT '--', '/*', \"--\", \"/*\"", NULL },
	{ "SELECT 'it''s -- ' -- x", "SELECT 'it''s -- '     " },
	{ "SELECT $$ -- /* $$, $a$ -- $$ $a$", NULL },
	{ "SELECT $1$ -- $$1$", "SELECT $1$        " },
	{ "SELECT a$b$ -- $b$", "SELECT a$b$       " },
	{ "SELECT E'\\' -- ', 1", NULL },
	{ "SELECT E'\\\\' -- ', 1", "SELECT E'\\\\'        " },
	{ "SELECT '\\' -- ', 1", "SELECT '\\'        " },
	{ "SELECT xE'\\' -- '", "SELECT xE'\\'     " },
	{ "SELECT U&'\\0041' /*c*/ UESCAPE /*c*/ '!'",
	    "SELECT U&'\\0041'       UESCAPE       '!'" },
	/* E'..' goes on behind a line end, also where a comment has it */
	{ "SELECT E'a'\n'\\' -- '", NULL },
	{ "SELECT E'a' --x\n'\\' -- '", "SELECT E'a'    \n'\\' -- '" },
	{ "SELECT E'a'\n--x\n \n'\\' -- '", "SELECT E'a'\n   \n \n'\\' -- '" },
	{ "SELECT E'a' /*x*/\n'\\' -- '", "SELECT E'a' /*x*/\n'\\'     " },
	{ "SELECT E'a' '\\' -- '", "SELECT E'a' '\\'     " },
	/* between two literals one stays, or the second would go on */
	{ "SELECT 'a' /*x*/\n'b' /*y*/", "SELECT 'a' /*x*/\n'b'      " },
	{ "SELECT 'a' /*\n*/ 'b'", NULL },
	{ "SELECT 'a' --x\n'b'", "SELECT 'a'    \n'b'" },
	{ "SELECT 'a' /*\n*/, 'b'", "SELECT 'a'   \n  , 'b'" },
	{ "SELECT date /*\n*/ 'b'", "SELECT date   \n   'b'" },
	/* what does not end */
	{ "SELECT 1 /* x", NULL },
	{ "SELECT 1 /* /* x */", NULL },
	{ "SELECT 1 /*a*/ /* x", NULL },
	{ "SELECT /*a*/ '-- x", "SELECT       '-- x" },
};

static void
blanks_comments(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(bare) / sizeof(bare[0]); i++) {
		size_t len = strlen(bare[i].sql);
		const char *expected =
		    bare[i].bare != NULL ? bare[i].bare : bare[i].sql;
		char *copy = malloc(len > 0 ? len : 1);

		assert_non_null(copy);
		memcpy(copy, bare[i].sql, len);
		screen_blank(copy, len);
		if (len != strlen(expected) || memcmp(copy, expected, len) != 0)
			fail_msg("%s became %.*s", bare[i].sql, (int)len, copy);
		screen_blank(copy, len);
		assert_memory_equal(copy, expected, len);
		free(copy);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(screens),
		cmocka_unit_test(finds_nul),
		cmocka_unit_test(blanks_comments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
