/* test_text: a growing string, and the escapes that foreign bytes must pass */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct bytes {
	const char *p;
	size_t n;
};
#define B(s) (s), sizeof(s) - 1

static void
it_grows(void **state UNUSED)
{
	struct text t;
	size_t len = 0;

	text_init(&t);
	assert_string_equal(text_str(&t), "");
	for (int i = 0; i < 3000; i++) {
		text_addn(&t, "abcdefgh", (size_t)(i % 9));
		len += (size_t)(i % 9);
		assert_int_equal(t.len, len);
		assert_int_equal(strlen(text_str(&t)), len);
	}
	text_reset(&t);
	assert_string_equal(text_str(&t), "");
	text_add(&t, "a");
	text_addc(&t, 'b');
	text_addf(&t, "%d%s", 12, "c");
	text_addn(&t, NULL, 0);
	assert_string_equal(text_str(&t), "ab12c");
	text_drop(&t, 2);
	assert_string_equal(text_str(&t), "12c");
	text_drop(&t, 0);
	assert_string_equal(text_str(&t), "12c");
	text_drop(&t, 99);
	assert_string_equal(text_str(&t), "");
	text_release(&t);
	text_release(&t);
	text_reset(&t);
}

static void
a_string_can_be_taken(void **state UNUSED)
{
	struct text t = { 0 };
	char *s = text_take(&t);

	assert_string_equal(s, "");
	free(s);
	text_add(&t, "abc");
	s = text_take(&t);
	assert_string_equal(s, "abc");
	assert_int_equal(t.len, 0);
	assert_string_equal(text_str(&t), "");
	free(s);
}

static void
json_strings_are_escaped(void **state UNUSED)
{
	static const struct {
		struct bytes in;
		const char *out;
	} cases[] = {
		{ { B("") }, "\"\"" },
		{ { B("plain") }, "\"plain\"" },
		{ { B("a\"b\\c/d") }, "\"a\\\"b\\\\c/d\"" },
		{ { B("\n\t\r\b\f") }, "\"\\n\\u0009\\u000d\\u0008\\u000c\"" },
		{ { B("\0\x1f\x7f") }, "\"\\u0000\\u001f\x7f\"" },
		{ { B("\xc3\xa9\xf0\x9f\x90\x98") },
		    "\"\xc3\xa9\xf0\x9f\x90\x98\"" },
		{ { B("\xff") }, "\"\xef\xbf\xbd"
				 "ff\"" },
		{ { B("a\xc3") }, "\"a\xef\xbf\xbd"
				  "c3\"" },
		{ { B("\xed\xa0\x80") }, "\"\xef\xbf\xbd"
					 "ed\xef\xbf\xbd"
					 "a0\xef\xbf\xbd"
					 "80\"" },
		{ { B("\xc0\xaf") }, "\"\xef\xbf\xbd"
				     "c0\xef\xbf\xbd"
				     "af\"" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text t = { 0 };

		text_add_json(&t, cases[i].in.p, cases[i].in.n);
		assert_string_equal(text_str(&t), cases[i].out);
		text_release(&t);
	}
}

static void
bad_bytes_are_replaced_one_by_one(void **state UNUSED)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "a\tb\"", "a\tb\"" },
		{ "\xc3\xa4\xff", "\xc3\xa4\xef\xbf\xbd"
				  "ff" },
		{ "\xed\xa0\x80x", "\xef\xbf\xbd"
				   "ed\xef\xbf\xbd"
				   "a0\xef\xbf\xbd"
				   "80x" },
		{ "x\xc3", "x\xef\xbf\xbd"
			   "c3" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text t = { 0 };

		text_add_utf8(&t, cases[i][0], strlen(cases[i][0]));
		assert_string_equal(text_str(&t), cases[i][1]);
		text_release(&t);
	}
}

static void
identifiers_are_quoted(void **state UNUSED)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "a", "\"a\"" },
		{ "", "\"\"" },
		{ "A b", "\"A b\"" },
		{ "a\"b\"\"", "\"a\"\"b\"\"\"\"\"" },
		{ "a\\b'", "\"a\\b'\"" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text t = { 0 };

		text_add_ident(&t, cases[i].in);
		assert_string_equal(text_str(&t), cases[i].out);
		text_release(&t);
	}
}

static void
arrays_are_literals(void **state UNUSED)
{
	static const struct bytes items[] = { { "a", 1 }, { NULL, 0 },
		{ "", 0 }, { "q\"\\{,}", 6 } };
	struct text t = { 0 };

	text_end_items(&t);
	assert_string_equal(text_str(&t), "{}");
	text_release(&t);
	for (size_t i = 0; i < 4; i++)
		text_add_item(&t, items[i].p, items[i].n);
	text_end_items(&t);
	assert_string_equal(text_str(&t), "{\"a\",NULL,\"\",\"q\\\"\\\\{,}\"}");
	text_release(&t);
	text_add_number(&t, -1);
	text_add_string(&t, "b\"");
	text_add_string(&t, NULL);
	text_add_number(&t, 4294967295);
	text_end_items(&t);
	assert_string_equal(text_str(&t), "{-1,\"b\\\"\",NULL,4294967295}");
	text_release(&t);
}

static void
what_a_terminal_shows_is_harmless(void **state UNUSED)
{
	static const struct {
		struct bytes in;
		const char *out;
	} cases[] = {
		{ { B("") }, "" },
		{ { B("plain \xc3\xa9") }, "plain \xc3\xa9" },
		{ { B("a\nb\tc\rd\\e") }, "a\\nb\\tc\\rd\\\\e" },
		{ { B("\x1b[2J") }, "\\x1b[2J" },
		{ { B("\0\x7f") }, "\\x00\\x7f" },
		{ { B("\xc2\x9b"
		      "31m") },
		    "\\u{009b}31m" },
		{ { B("\xe2\x80\xa8\xe2\x80\xa9") }, "\\u{2028}\\u{2029}" },
		{ { B("\xe2\x80\xae"
		      "abc") },
		    "\\u{202e}abc" },
		{ { B("\xe2\x81\xa6") }, "\\u{2066}" },
		{ { B("\xe2\x80\x8b\xe2\x80\x8d\xef\xbb\xbf") },
		    "\\u{200b}\\u{200d}\\u{feff}" },
		{ { B("\xd8\x9c") }, "\\u{061c}" },
		{ { B("\xf3\xa0\x81\x81") }, "\\u{e0041}" },
		{ { B("\xff\xc3") }, "\\xff\\xc3" },
		{ { B("e\xcc\x81\xcc\xa3") }, "e\xcc\x81\xcc\xa3" },
		{ { B("\xcc\x81") }, "\\u{0301}" },
		{ { B("\n\xcc\x81") }, "\\n\\u{0301}" },
		{ { B("a\xe2\x83\x92\xcc\x81\xcc\x81\xcc\x81\xcc\x81") },
		    "a\xe2\x83\x92\xcc\x81\xcc\x81\\u{0301}\\u{0301}" },
		{ { B("\xf0\x9f\x90\x98") }, "\xf0\x9f\x90\x98" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text t = { 0 };
		char fixed[100];

		text_quote(&t, cases[i].in.p, cases[i].in.n);
		assert_string_equal(text_str(&t), cases[i].out);
		text_quote_into(fixed, sizeof(fixed), cases[i].in.p,
		    cases[i].in.n);
		assert_string_equal(fixed, cases[i].out);
		text_release(&t);
	}
}

static void
quoted_char(char *out, size_t size, uint32_t cp)
{
	char in[4];
	size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;

	for (size_t i = n; i-- > 1; cp >>= 6)
		in[i] = (char)(0x80 | (cp & 0x3f));
	in[0] = (char)(n == 1 ? cp : cp | (0xf00 >> n & 0xff));
	text_quote_into(out, size, in, n);
}

/* Blanks, fillers, format and private characters, one of each kind and the
 * ends of each range: only the space may show as a blank. */
static void
what_shows_nothing_is_spelt_out(void **state UNUSED)
{
	static const uint32_t hidden[] = { 0x80, 0x85, 0xa0, 0xad, 0x34f, 0x61c,
		0x115f, 0x1160, 0x1680, 0x17b4, 0x180b, 0x180e, 0x180f, 0x2000,
		0x2003, 0x200a, 0x200b, 0x200f, 0x2028, 0x202a, 0x202e, 0x202f,
		0x205f, 0x2060, 0x2066, 0x206f, 0x2800, 0x3000, 0x3164, 0xe000,
		0xf8ff, 0xfdd0, 0xfe00, 0xfe0f, 0xfeff, 0xffa0, 0xfff0, 0xfff9,
		0xfffe, 0xffff, 0x13430, 0x1bca0, 0x1d173, 0x1fffe, 0xe0001,
		0xe0020, 0xe007f, 0xe0100, 0xe01ef, 0xf0000, 0x10fffd };
	static const uint32_t shown[] = { ' ', 'a', 0xa1, 0xe9, 0x2ff, 0x370,
		0x115e, 0x1161, 0x2010, 0x2027, 0x2030, 0x2801, 0x3001, 0x3163,
		0x4e00, 0xf900, 0xfffd, 0x1f418, 0x20000 };

	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		char want[16], got[32];

		snprintf(want, sizeof(want), "\\u{%04x}", hidden[i]);
		quoted_char(got, sizeof(got), hidden[i]);
		assert_string_equal(got, want);
	}
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		char got[32];

		quoted_char(got, sizeof(got), shown[i]);
		if (got[0] == '\\')
			fail_msg("U+%04X is not shown", shown[i]);
	}
}

/* Whatever comes in, nothing but printable bytes and whole UTF-8 comes out. */
static void
any_bytes_quote_to_one_clean_line(void **state UNUSED)
{
	srand(5);
	for (int i = 0; i < 20000; i++) {
		char in[24];
		struct text t = { 0 };

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = (char)(rand() % 3 == 0   ? 0xe2
				       : rand() % 2 == 0 ? 0x80 + rand() % 64
							 : rand() % 256);
		text_quote(&t, in, sizeof(in));
		assert_true(text_is_utf8(text_str(&t), t.len));
		for (size_t k = 0; k < t.len; k++)
			assert_true(
			    (unsigned char)t.s[k] >= 0x20 && t.s[k] != 0x7f);
		assert_null(strstr(text_str(&t), "\xe2\x80\xae"));
		text_release(&t);
	}
}

static void
a_fixed_buffer_is_cut_at_a_whole_escape(void **state UNUSED)
{
	static const char in[] = "ab\x1b\xc3\xa9\xe2\x80\xae";
	static const char *const outs[] = { "", "", "a", "ab", "ab", "ab", "ab",
		"ab\\x1b", "ab\\x1b", "ab\\x1b\xc3\xa9", "ab\\x1b\xc3\xa9" };

	for (size_t size = 1; size < sizeof(outs) / sizeof(outs[0]); size++) {
		char *out = malloc(size);

		text_quote_into(out, size, in, sizeof(in) - 1);
		assert_string_equal(out, outs[size]);
		free(out);
	}
}

static void
utf8_is_judged_strictly(void **state UNUSED)
{
	static const struct {
		struct bytes in;
		bool good;
	} cases[] = {
		{ { B("") }, true },
		{ { B("a") }, true },
		{ { B("\0") }, true },
		{ { B("\x7f") }, true },
		{ { B("\xc2\x80") }, true },
		{ { B("\xdf\xbf") }, true },
		{ { B("\xe0\xa0\x80") }, true },
		{ { B("\xed\x9f\xbf") }, true },
		{ { B("\xee\x80\x80") }, true },
		{ { B("\xef\xbf\xbf") }, true },
		{ { B("\xf0\x90\x80\x80") }, true },
		{ { B("\xf4\x8f\xbf\xbf") }, true },
		{ { B("\x80") }, false },
		{ { B("\xbf") }, false },
		{ { B("\xc0\x80") }, false },
		{ { B("\xc1\xbf") }, false },
		{ { B("\xe0\x9f\xbf") }, false },
		{ { B("\xed\xa0\x80") }, false },
		{ { B("\xed\xbf\xbf") }, false },
		{ { B("\xf0\x8f\xbf\xbf") }, false },
		{ { B("\xf4\x90\x80\x80") }, false },
		{ { B("\xf5\x80\x80\x80") }, false },
		{ { B("\xfe") }, false },
		{ { B("\xc3") }, false },
		{ { B("\xe2\x82") }, false },
		{ { B("\xf0\x9f\x90") }, false },
		{ { B("\xe2\x82\x41") }, false },
		{ { B("ok\xc3\xa9\xff") }, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (text_is_utf8(cases[i].in.p, cases[i].in.n) != cases[i].good)
			fail_msg("case %zu", i);
}

static void
cuts_do_not_split_characters(void **state UNUSED)
{
	static const char s[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x98";
	static const size_t cut[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10 };

	for (size_t n = 0; n < sizeof(cut) / sizeof(cut[0]); n++) {
		size_t got = text_utf8_cut(s, sizeof(s) - 1, n);

		assert_int_equal(got, cut[n]);
		assert_true(text_is_utf8(s, got));
	}
}

static void
copies_are_checked(void **state UNUSED)
{
	struct err e = ERR_INIT;
	char out[4] = "zzz";

	assert_int_equal(text_copy(out, sizeof(out), "abc", &e), 0);
	assert_string_equal(out, "abc");
	assert_int_equal(text_copy(out, sizeof(out), "", &e), 0);
	assert_string_equal(out, "");
	assert_int_equal(text_copy(out, sizeof(out), "abcd", &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_string_equal(out, "");
}

static void
numbers_are_read_strictly(void **state UNUSED)
{
	static const struct {
		const char *s;
		long long min, max, v;
		bool good;
	} cases[] = {
		{ "0", 0, 10, 0, true },
		{ "10", 0, 10, 10, true },
		{ "-3", -5, 5, -3, true },
		{ "007", 0, 10, 7, true },
		{ "999999999999999999", 0, LLONG_MAX, 999999999999999999LL,
		    true },
		{ "11", 0, 10, 0, false },
		{ "-1", 0, 10, 0, false },
		{ "9999999999999999999", 0, LLONG_MAX, 0, false },
		{ "18446744073709551616", 0, LLONG_MAX, 0, false },
		{ "", 0, 10, 0, false },
		{ "-", -10, 10, 0, false },
		{ "+1", 0, 10, 0, false },
		{ " 1", 0, 10, 0, false },
		{ "1 ", 0, 10, 0, false },
		{ "1x", 0, 10, 0, false },
		{ "0x1", 0, 10, 0, false },
		{ "1.0", 0, 10, 0, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = ERR_INIT;
		long long v = 0;
		int r = text_to_long(cases[i].s, cases[i].min, cases[i].max, &v,
		    &e);

		if (r != (cases[i].good ? 0 : -1))
			fail_msg("'%s' gives %d", cases[i].s, r);
		assert_true(v == cases[i].v);
		if (r == -1)
			assert_int_equal(e.code, ERR_INPUT);
	}
}

static void
small_things(void **state UNUSED)
{
	char hex[9];

	text_hex(hex, (const unsigned char *)"\x00\x0f\xa0\xff", 4);
	assert_string_equal(hex, "000fa0ff");
	text_hex(hex, (const unsigned char *)"", 0);
	assert_string_equal(hex, "");
	assert_true(text_starts_with("abc", "ab"));
	assert_true(text_starts_with("abc", ""));
	assert_false(text_starts_with("ab", "abc"));
	assert_false(text_starts_with("xab", "ab"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_grows),
		cmocka_unit_test(arrays_are_literals),
		cmocka_unit_test(a_string_can_be_taken),
		cmocka_unit_test(json_strings_are_escaped),
		cmocka_unit_test(bad_bytes_are_replaced_one_by_one),
		cmocka_unit_test(identifiers_are_quoted),
		cmocka_unit_test(what_a_terminal_shows_is_harmless),
		cmocka_unit_test(what_shows_nothing_is_spelt_out),
		cmocka_unit_test(any_bytes_quote_to_one_clean_line),
		cmocka_unit_test(a_fixed_buffer_is_cut_at_a_whole_escape),
		cmocka_unit_test(utf8_is_judged_strictly),
		cmocka_unit_test(cuts_do_not_split_characters),
		cmocka_unit_test(copies_are_checked),
		cmocka_unit_test(numbers_are_read_strictly),
		cmocka_unit_test(small_things),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
