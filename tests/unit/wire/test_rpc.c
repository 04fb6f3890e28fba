/* test_rpc: lines to classified messages, and answers */
#include "wire/rpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"

#define R "\"jsonrpc\":\"2.0\","

static const struct {
	const char *line;
	enum rpc_kind kind;
	int code;           /* RPC_BAD */
	const char *id;     /* as JSON, NULL none */
	const char *method; /* NULL: none */
} cases[] = {
	{ "{" R "\"id\":0,\"method\":\"ping\"}", RPC_REQUEST, 0, "0", "ping" },
	{ "{" R "\"id\":-9007199254740993,\"method\":\"m\"}", RPC_REQUEST, 0,
	    "-9007199254740993", "m" },
	{ "{" R "\"id\":\"a-1\",\"method\":\"m\",\"params\":{}}", RPC_REQUEST,
	    0, "\"a-1\"", "m" },
	{ "{" R "\"id\":\"\",\"method\":\"m\",\"params\":null}", RPC_REQUEST, 0,
	    "\"\"", "m" },
	{ "{" R "\"id\":\"\\u0000x\",\"method\":\"m\"}", RPC_REQUEST, 0,
	    "\"\\u0000x\"", "m" },
	{ "{" R "\"method\":\"m\",\"future\":[1],\"id\":1}", RPC_REQUEST, 0,
	    "1", "m" },
	{ " \t{" R "\"id\":1,\"method\":\"m\"} \r", RPC_REQUEST, 0, "1", "m" },
	/* never answered */
	{ "{" R "\"method\":\"notifications/x\"}", RPC_NOTIFICATION, 0, NULL,
	    "notifications/x" },
	{ "{\"method\":\"notifications/x\",\"params\":3}", RPC_NOTIFICATION, 0,
	    NULL, "notifications/x" },
	{ "{" R "\"id\":1,\"result\":{}}", RPC_RESPONSE, 0, "1", NULL },
	{ "{" R "\"id\":null,\"error\":{}}", RPC_RESPONSE, 0, NULL, NULL },
	{ "[]", RPC_BATCH, 0, NULL, NULL },
	{ "[{" R "\"id\":1,\"method\":\"m\"}]", RPC_BATCH, 0, NULL, NULL },
	/* JSON, not JSON-RPC */
	{ "3", RPC_BAD, -32600, NULL, NULL },
	{ "null", RPC_BAD, -32600, NULL, NULL },
	{ "{}", RPC_BAD, -32600, NULL, NULL },
	{ "{" R "\"id\":7}", RPC_BAD, -32600, "7", NULL },
	{ "{" R "\"id\":7,\"method\":3}", RPC_BAD, -32600, "7", NULL },
	{ "{" R "\"id\":7,\"method\":\"a\\u0000b\"}", RPC_BAD, -32600, "7",
	    NULL },
	{ "{" R "\"id\":null,\"method\":\"m\"}", RPC_BAD, -32600, NULL, "m" },
	{ "{" R "\"id\":1.0,\"method\":\"m\"}", RPC_BAD, -32600, NULL, "m" },
	{ "{" R "\"id\":true,\"method\":\"m\"}", RPC_BAD, -32600, NULL, "m" },
	{ "{" R "\"id\":[1],\"method\":\"m\"}", RPC_BAD, -32600, NULL, "m" },
	{ "{\"id\":7,\"method\":\"m\"}", RPC_BAD, -32600, "7", "m" },
	{ "{\"jsonrpc\":2.0,\"id\":7,\"method\":\"m\"}", RPC_BAD, -32600, "7",
	    "m" },
	{ "{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"m\"}", RPC_BAD, -32600,
	    "7", "m" },
	{ "{" R "\"id\":7,\"method\":\"m\",\"params\":[1]}", RPC_BAD, -32602,
	    "7", "m" },
	{ "{" R "\"id\":7,\"method\":\"m\",\"params\":\"p\"}", RPC_BAD, -32602,
	    "7", "m" },
	/* not JSON, or more than is read of it; the id is scraped */
	{ "garbage", RPC_BAD, -32700, NULL, NULL },
	{ "{", RPC_BAD, -32700, NULL, NULL },
	{ "{" R "\"id\":7,\"method\":\"m\"", RPC_BAD, -32700, "7", NULL },
	{ "{" R "\"id\":7,\"method\":\"m\"}{}", RPC_BAD, -32700, "7", NULL },
	{ "{" R "\"id\":7,\"method\":\"m\",\"method\":\"n\"}", RPC_BAD, -32700,
	    "7", NULL },
	{ "{" R "\"id\":7,\"id\":8,\"method\":\"m\"}", RPC_BAD, -32700, NULL,
	    NULL },
	{ "{" R "\"id\":7,\"method\":\"m\",\"params\":{\"a\":1,\"a\":2}}",
	    RPC_BAD, -32700, "7", NULL },
	{ "{" R "\"id\":\"x\",\"method\":\"m\",\"params\":{\"n\":"
	  "123456789012345678901234567890}}",
	    RPC_BAD, -32700, "\"x\"", NULL },
	{ "{" R "\"id\":7,\"method\":\"m\",\"params\":{\"n\":1e999}}", RPC_BAD,
	    -32700, "7", NULL },
	{ "{" R "\"params\":{\"a\\u0000\":1},\"id\":7,\"method\":\"m\"}",
	    RPC_BAD, -32700, "7", NULL },
	{ "{" R "\"params\":{\"id\":5,},\"id\":7,\"method\":\"m\"}", RPC_BAD,
	    -32700, "7", NULL },
	{ "{" R "\"id\":99999999999999999999,\"method\":\"m\"}", RPC_BAD,
	    -32700, NULL, NULL },
	{ "[{" R "\"id\":7,\"method\":\"m\"},", RPC_BAD, -32700, NULL, NULL },
	{ "{" R "\"id\":\"\xff\",\"method\":\"m\"", RPC_BAD, -32700, NULL,
	    NULL },
	{ "{" R "\"id\":7,\"method\":\"m\"}\xff", RPC_BAD, -32700, "7", NULL },
};

static void
classifies(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rpc_message m;
		char *id;

		rpc_parse(cases[i].line, strlen(cases[i].line), &m);
		id = m.id != NULL ? json_dumps(m.id, JSON_ENCODE_ANY) : NULL;
		if (m.kind != cases[i].kind ||
		    (m.kind == RPC_BAD && (int)m.code != cases[i].code))
			fail_msg("%s: kind %d, code %d, %s", cases[i].line,
			    m.kind, m.code, m.text);
		if ((id == NULL) != (cases[i].id == NULL) ||
		    (id != NULL && strcmp(id, cases[i].id) != 0))
			fail_msg("%s: id %s", cases[i].line, id);
		if ((m.method == NULL) != (cases[i].method == NULL) ||
		    (m.method != NULL &&
			strcmp(m.method, cases[i].method) != 0))
			fail_msg("%s: method %s", cases[i].line, m.method);
		assert_true(m.kind != RPC_BAD ||
			    (m.text[0] != '\0' &&
				text_is_utf8(m.text, strlen(m.text))));
		free(id);
		rpc_release(&m);
	}
}

/* What one text cannot be must not cost the message. */
static const struct {
	const char *sql, *as; /* as json_dumps writes it */
	size_t len;
} texts[] = {
	{ "a\\u0000b", "\"a\\u0000b\"", 3 },
	{ "a\xff"
	  "b",
	    "\"a\\u0000b\"", 3 },
	{ "a\xc3", "\"a\\u0000\"", 2 },
	{ "\xed\xa0\x80", "\"\\u0000\\u0000\\u0000\"", 3 },
	{ "\\ud800", "\"\\u0000\"", 1 },
	{ "\\udc00\\ud83d\\ude00", "\"\\u0000\xf0\x9f\x98\x80\"", 5 },
	{ "\\ud83d\\u0041", "\"\\u0000A\"", 2 },
	{ "\\ud83d\\ud83d\\ude00", "\"\\u0000\xf0\x9f\x98\x80\"", 5 },
	{ "\\ud83dx\\ude00", "\"\\u0000x\\u0000\"", 3 },
	{ "\\\\ud800\xfe", "\"\\\\ud800\\u0000\"", 7 },
	{ "\xc3\xa9\\u00e9", "\"\xc3\xa9\xc3\xa9\"", 4 },
	{ "\xe2\x80\xa8", "\"\xe2\x80\xa8\"", 3 },
};

static void
reads_what_utf8_cannot_hold_as_nul(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct rpc_message m;
		const json_t *sql;
		char line[256], *s;

		snprintf(line, sizeof(line),
		    "{" R "\"id\":1,\"method\":\"m\","
		    "\"params\":{\"sql\":\"%s\"}}",
		    texts[i].sql);
		rpc_parse(line, strlen(line), &m);
		assert_int_equal(m.kind, RPC_REQUEST);
		sql = json_object_get(m.params, "sql");
		assert_int_equal(json_string_length(sql), texts[i].len);
		s = json_dumps(sql, JSON_ENCODE_ANY);
		assert_string_equal(s, texts[i].as);
		free(s);
		rpc_release(&m);
	}
	/* a NUL byte itself, in a text and outside one */
	{
		static const char in[] = "{" R "\"id\":1,\"method\":\"m\","
					 "\"params\":{\"sql\":\"a\0b\"}}";
		static const char out[] = "{" R "\"id\":1,\0\"method\":\"m\"}";
		struct rpc_message m;

		rpc_parse(in, sizeof(in) - 1, &m);
		assert_int_equal(m.kind, RPC_REQUEST);
		rpc_release(&m);
		rpc_parse(out, sizeof(out) - 1, &m);
		assert_int_equal(m.kind, RPC_BAD);
		assert_int_equal(json_integer_value(m.id), 1);
		rpc_release(&m);
	}
}

static void
refuses_depth(void **state UNUSED)
{
	struct rpc_message m;
	struct text t;

	text_init(&t);
	text_add(&t, "{" R "\"method\":\"m\",\"params\":{\"a\":");
	for (int i = 0; i < 100000; i++)
		text_addc(&t, '[');
	for (int i = 0; i < 100000; i++)
		text_addc(&t, ']');
	text_add(&t, "},\"id\":\"deep\"}");
	rpc_parse(t.s, t.len, &m);
	assert_int_equal(m.kind, RPC_BAD);
	assert_int_equal(m.code, RPC_PARSE);
	assert_string_equal(json_string_value(m.id), "deep");
	assert_non_null(strstr(m.text, "nested"));
	rpc_release(&m);
	text_release(&t);
}

static void
is(json_t *j, const char *expected)
{
	char *s = json_dumps(j, JSON_COMPACT);

	assert_string_equal(s, expected);
	free(s);
	json_decref(j);
}

static void
answers_without_null_members(void **state UNUSED)
{
	json_t *zero = json_integer(0), *text = json_string("0");

	is(rpc_error(NULL, RPC_PARSE, "why", NULL),
	    "{" R "\"error\":{\"code\":-32700,\"message\":\"why\"}}");
	is(rpc_error(zero, RPC_VERSION, "v\xff\xc3\xa9\\",
	       json_pack("{s:i}", "a", 1)),
	    "{" R "\"id\":0,\"error\":{\"code\":-32022,"
	    "\"message\":\"v\xef\xbf\xbd\xc3\xa9\\\\\",\"data\":{\"a\":1}}}");
	is(rpc_result(text, json_object()),
	    "{" R "\"id\":\"0\",\"result\":{}}");
	json_decref(zero);
	json_decref(text);
}

static void
texts_of_members_hold_no_nul(void **state UNUSED)
{
	json_t *j =
	    json_pack("{s:s, s:s%, s:i}", "a", "x", "b", "x\0y", 3, "c", 1);

	assert_string_equal(rpc_text(j, "a"), "x");
	assert_null(rpc_text(j, "b"));
	assert_null(rpc_text(j, "c"));
	assert_null(rpc_text(j, "d"));
	assert_null(rpc_text(NULL, "a"));
	json_decref(j);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classifies),
		cmocka_unit_test(reads_what_utf8_cannot_hold_as_nul),
		cmocka_unit_test(refuses_depth),
		cmocka_unit_test(answers_without_null_members),
		cmocka_unit_test(texts_of_members_hold_no_nul),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
