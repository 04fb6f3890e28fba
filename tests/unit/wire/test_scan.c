/* test_scan: ids of lines that are only passed on, in pieces of any size */
#include "wire/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"

/* Each message as "id method cancels answer;" with - for none. */
static const struct {
	const char *line, *told;
} cases[] = {
	{ "", "" },
	{ "x", "" },
	{ "3", "" },
	{ "{}", "- - - 0;" },
	{ "{\"id\":1,\"method\":\"m\"}", "1 m - 0;" },
	{ "{\"method\":\"m\",\"jsonrpc\":\"2.0\",\"id\":\"a\\\"}\"}",
	    "\"a\\\"}\" m - 0;" },
	{ " { \"id\" : 17 , \"method\" : \"m\" } ", "17 m - 0;" },
	{ "{\"id\":\"\\u0061\"}", "\"a\" - - 0;" },
	{ "{\"id\":1,\"result\":{\"id\":2,\"error\":[{\"method\":\"x\"}]}}",
	    "1 - - 1;" },
	{ "{\"id\":1,\"error\":{}}", "1 - - 1;" },
	{ "{\"params\":{\"id\":3,\"method\":\"x\",\"a\":{\"id\":4}},\"id\":5}",
	    "5 - - 0;" },
	{ "{\"params\":{\"a\":\"{\\\"id\\\":9}\\\\\"},\"id\":5}", "5 - - 0;" },
	{ "{\"method\":\"notifications/cancelled\",\"params\":{\"reason\":\"r\","
	  "\"requestId\":7}}",
	    "- notifications/cancelled 7 0;" },
	{ "{\"params\":{\"a\":{\"requestId\":7},\"requestId\":\"x\"}}",
	    "- - \"x\" 0;" },
	{ "{\"requestId\":7,\"other\":{\"requestId\":8}}", "- - - 0;" },
	{ "{\"params\":{},\"other\":{\"requestId\":8}}", "- - - 0;" },
	{ "{\"id\":[]5}", "- - - 0;" },
	{ "{\"id\":{},\"method\":[5]}", "- - - 0;" },
	{ "{\"params\":[\"requestId\",7,{\"requestId\":8}],\"id\":1}",
	    "1 - - 0;" },
	/* no id that could be echoed */
	{ "{\"id\":null}", "- - - 0;" },
	{ "{\"id\":1.5}", "- - - 0;" },
	{ "{\"id\":1 2}", "- - - 0;" },
	{ "{\"id\":\"a\"b}", "- - - 0;" },
	{ "{\"id\":[1]}", "- - - 0;" },
	{ "{\"id\":{\"id\":1}}", "- - - 0;" },
	{ "{\"id\":1,\"id\":1}", "- - - 0;" },
	{ "{\"id\":\"\xff\"}", "- - - 0;" },
	/* cut short, or with more behind */
	{ "{\"id\":1,\"method\":\"m", "1 - - 0;" },
	{ "{\"id\":1,\"params\":{\"sql\":\"sel", "1 - - 0;" },
	{ "{\"id\":1}{\"id\":2}", "1 - - 0;" },
	{ "{\"id\":1}]}}}{\"id\":2}", "1 - - 0;" },
	{ "]}{\"id\":2}", "" },
	/* batches */
	{ "[]", "" },
	{ "[{\"id\":1,\"method\":\"a\"},{\"method\":\"b\"},3,[{\"id\":4}],"
	  "{\"id\":\"c\",\"result\":0}]",
	    "1 a - 0;- b - 0;\"c\" - - 1;" },
};

static void
add_json(struct text *t, const json_t *j)
{
	char *s = j != NULL ? json_dumps(j, JSON_ENCODE_ANY) : NULL;

	text_addf(t, "%s ", s != NULL ? s : "-");
	free(s);
}

static void
on_found(void *arg, const struct scan_found *f)
{
	struct text *t = arg;

	add_json(t, f->id);
	text_addf(t, "%s ", f->method != NULL ? f->method : "-");
	add_json(t, f->cancels);
	text_addf(t, "%d;", f->is_answer);
}

static void
tells_the_same_in_any_pieces(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = strlen(cases[i].line);

		for (size_t cut = 1; cut <= len + 1; cut++) {
			struct scan s;
			struct text t;

			text_init(&t);
			scan_start(&s);
			for (size_t at = 0; at < len; at += cut)
				scan_feed(&s, cases[i].line + at,
				    len - at < cut ? len - at : cut, on_found,
				    &t);
			scan_end(&s, on_found, &t);
			if (strcmp(text_str(&t), cases[i].told) != 0)
				fail_msg("%s by %zu: %s", cases[i].line, cut,
				    text_str(&t));
			text_release(&t);
		}
	}
}

/* Tokens are bounded, lines are not; nor is a token cut to fit. */
static void
reads_long_lines_and_refuses_long_tokens(void **state UNUSED)
{
	static const size_t lens[] = { 10, SCAN_TOKEN_MAX - 2,
		SCAN_TOKEN_MAX - 1, SCAN_TOKEN_MAX + 50, 5000000 };
	static const size_t cuts[] = { 7, 100, 250, 10000000 };

	for (size_t i = 0; i < 5 * 4; i++) {
		size_t len = lens[i / 4], cut = cuts[i % 4];
		struct scan s;
		struct text t, line;

		text_init(&t);
		text_init(&line);
		text_add(&line, "{\"id\":\"");
		for (size_t n = 0; n < len; n++)
			text_addc(&line, 'x');
		text_add(&line, "\",\"method\":\"m\"}");
		scan_start(&s);
		for (size_t at = 0; at < line.len; at += cut)
			scan_feed(&s, line.s + at,
			    line.len - at < cut ? line.len - at : cut, on_found,
			    &t);
		assert_int_equal(t.s[0] == '-', len > SCAN_TOKEN_MAX - 2);
		assert_non_null(strstr(t.s, " m - 0;"));
		text_release(&t);
		text_release(&line);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_the_same_in_any_pieces),
		cmocka_unit_test(reads_long_lines_and_refuses_long_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
