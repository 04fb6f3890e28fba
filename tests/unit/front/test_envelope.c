/* test_envelope: revisions, the era of each request, and what wraps a result */
#include "front/envelope.h"

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
#include "base/version.h"

#define P "io.modelcontextprotocol/"

static void
revisions_are_in_order(void **state UNUSED)
{
	for (size_t i = 0; i < REVISIONS; i++) {
		const struct revision *r = &revisions[i];

		assert_ptr_equal(revision_by_name(r->name), r);
		assert_true(i == 0 || strcmp(r[-1].name, r->name) < 0);
		assert_int_equal(r->era == ERA_MODERN, i == REVISIONS - 1);
		/* batches came with one revision and went with the next */
		assert_int_equal(r->batches,
		    strcmp(r->name, "2025-03-26") == 0);
		assert_int_equal(r->annotations,
		    strcmp(r->name, "2025-03-26") >= 0);
		assert_int_equal(r->structured,
		    strcmp(r->name, "2025-06-18") >= 0);
		assert_int_equal(r->titles, r->structured);
	}
	assert_null(revision_by_name("2025-06-19"));
	assert_null(revision_by_name(""));
}

static void
agrees_on_a_legacy_revision(void **state UNUSED)
{
	static const char *const pairs[][2] = {
		{ "2024-11-05", "2024-11-05" },
		{ "2025-03-26", "2025-03-26" },
		{ "2025-06-18", "2025-06-18" },
		{ "2025-11-25", "2025-11-25" },
		{ "2026-07-28", "2025-11-25" },
		{ "2031-01-01", "2025-11-25" },
		{ "1.0", "2025-11-25" },
		{ "", "2025-11-25" },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		assert_string_equal(revision_agree(pairs[i][0])->name,
		    pairs[i][1]);
}

static const struct {
	const char *method, *params; /* NULL: none */
	const char *agreed;          /* of the connection, NULL: none */
	const char *revision;        /* NULL: refused */
	int code;
} opens[] = {
	{ "tools/list", NULL, NULL, "2025-11-25", 0 },
	{ "tools/list", NULL, "2024-11-05", "2024-11-05", 0 },
	{ "tools/list", "{}", "2025-06-18", "2025-06-18", 0 },
	{ "tools/list", "{\"_meta\":{\"progressToken\":0}}", "2025-06-18",
	    "2025-06-18", 0 },
	{ "tools/list", "{\"_meta\":3}", NULL, "2025-11-25", 0 },
	{ "tools/list", "{\"_meta\":{\"" P "clientInfo\":{}}}", NULL,
	    "2025-11-25", 0 },
	{ "tools/list",
	    "{\"_meta\":{\"" P "protocolVersion\":\"2026-07-28\",\"" P
	    "clientCapabilities\":{}}}",
	    NULL, "2026-07-28", 0 },
	/* the request decides, not the connection */
	{ "tools/list",
	    "{\"_meta\":{\"" P "protocolVersion\":\"2026-07-28\",\"" P
	    "clientCapabilities\":{}}}",
	    "2025-06-18", "2026-07-28", 0 },
	{ "server/discover", NULL, NULL, NULL, -32602 },
	{ "server/discover", "{}", "2025-11-25", NULL, -32602 },
	{ "tools/list", "{\"_meta\":{\"" P "protocolVersion\":\"2026-07-28\"}}",
	    NULL, NULL, -32602 },
	{ "tools/list", "{\"_meta\":{\"" P "clientCapabilities\":{}}}", NULL,
	    NULL, -32602 },
	{ "tools/list",
	    "{\"_meta\":{\"" P "protocolVersion\":3,\"" P
	    "clientCapabilities\":{}}}",
	    NULL, NULL, -32602 },
	{ "tools/list",
	    "{\"_meta\":{\"" P "protocolVersion\":\"2026-07-28\",\"" P
	    "clientCapabilities\":[]}}",
	    NULL, NULL, -32602 },
	{ "tools/list",
	    "{\"_meta\":{\"" P "protocolVersion\":\"2027-01-01\",\"" P
	    "clientCapabilities\":{}}}",
	    NULL, NULL, -32022 },
	{ "tools/list",
	    "{\"_meta\":{\"" P "protocolVersion\":\"2025-11-25\",\"" P
	    "clientCapabilities\":{}}}",
	    NULL, NULL, -32022 },
	{ "tools/list",
	    "{\"_meta\":{\"" P "protocolVersion\":"
	    "\"2026-07-28\\u0000\",\"" P "clientCapabilities\":{}}}",
	    NULL, NULL, -32022 },
};

static void
each_request_decides_its_era(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(opens) / sizeof(opens[0]); i++) {
		struct rpc_message m;
		const struct revision *r;
		json_t *no = NULL;
		char line[512];

		snprintf(line, sizeof(line),
		    "{\"jsonrpc\":\"2.0\",\"id\":\"q\","
		    "\"method\":\"%s\"%s%s}",
		    opens[i].method,
		    opens[i].params != NULL ? ",\"params\":" : "",
		    opens[i].params != NULL ? opens[i].params : "");
		rpc_parse(line, strlen(line), &m);
		assert_int_equal(m.kind, RPC_REQUEST);
		r = envelope_open(&m,
		    opens[i].agreed != NULL ? revision_by_name(opens[i].agreed)
					    : NULL,
		    &no);
		if (r == NULL ? opens[i].revision != NULL
			      : opens[i].revision == NULL ||
				    strcmp(opens[i].revision, r->name) != 0)
			fail_msg("%s: %s", line, r != NULL ? r->name : "no");
		if (r == NULL) {
			assert_string_equal(json_string_value(
						json_object_get(no, "id")),
			    "q");
			assert_int_equal(json_integer_value(
					     json_object_get(json_object_get(no,
								 "error"),
						 "code")),
			    opens[i].code);
		} else
			assert_null(no);
		json_decref(no);
		rpc_release(&m);
	}
}

static void
an_unserved_version_is_told_what_is(void **state UNUSED)
{
	static const char line[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":"
	    "\"ping\",\"params\":{\"_meta\":{\"" P "protocolVersion\":"
	    "\"2027-01-01\",\"" P "clientCapabilities\":{}}}}";
	struct rpc_message m;
	json_t *no = NULL;
	char *s;

	rpc_parse(line, strlen(line), &m);
	assert_null(envelope_open(&m, NULL, &no));
	s = json_dumps(no, JSON_COMPACT);
	assert_string_equal(s,
	    "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":"
	    "{\"code\":-32022,\"message\":\"Unsupported protocol version: "
	    "2027-01-01\",\"data\":{\"supported\":[\"2026-07-28\"],"
	    "\"requested\":\"2027-01-01\"}}}");
	free(s);
	json_decref(no);
	rpc_release(&m);
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
success(const struct revision *r, const char *expected)
{
	struct text t = { 0 };

	envelope_success(&t, r, "{\"a\":1}");
	assert_string_equal(text_str(&t), expected);
	text_release(&t);
}

#define SERVER(title)                                                          \
	"{\"name\":\"airlock\"," title "\"version\":\"" AIRLOCK_VERSION "\"}"
#define TITLE "\"title\":\"Airlock for PostgreSQL\","
#define META "\"_meta\":{\"" P "serverInfo\":" SERVER(TITLE) "}"

static void
results_are_wrapped_as_the_revision_wants(void **state UNUSED)
{
	const struct revision *first = &revisions[0], *v618 = &revisions[2],
			      *modern = &revisions[4];

	is(envelope_hello(first, "i"),
	    "{\"protocolVersion\":\"2024-11-05\","
	    "\"capabilities\":{\"tools\":{}},\"serverInfo\":" SERVER(
		"") ",\"instructions\":\"i\"}");
	is(envelope_hello(v618, "i"),
	    "{\"protocolVersion\":\"2025-06-18\","
	    "\"capabilities\":{\"tools\":{}},\"serverInfo\":" SERVER(
		TITLE) ",\"instructions\":\"i\"}");
	is(envelope_discovery("i"),
	    "{\"supportedVersions\":[\"2026-07-28\"],"
	    "\"capabilities\":{\"tools\":{}},\"instructions\":\"i\","
	    "\"ttlMs\":300000,\"cacheScope\":\"private\","
	    "\"resultType\":\"complete\"," META "}");
	is(envelope_tools(v618, json_array()), "{\"tools\":[]}");
	is(envelope_tools(modern, json_array()),
	    "{\"tools\":[],"
	    "\"ttlMs\":300000,\"cacheScope\":\"private\","
	    "\"resultType\":\"complete\"," META "}");
	success(first,
	    "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"a\\\":1}\"}]}");
	success(v618,
	    "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"a\\\":1}\"}],"
	    "\"structuredContent\":{\"a\":1}}");
	success(modern,
	    "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"a\\\":1}\"}],"
	    "\"structuredContent\":{\"a\":1},\"resultType\":\"complete\"," META
	    "}");
	is(envelope_failure(v618, "no\xff"),
	    "{\"content\":[{\"type\":\"text\",\"text\":\"no\xef\xbf\xbd\"}],"
	    "\"isError\":true}");
	is(envelope_failure(modern, "no"),
	    "{\"content\":[{\"type\":\"text\",\"text\":\"no\"}],"
	    "\"isError\":true,\"resultType\":\"complete\"," META "}");
}

static void
client_names_are_bounded(void **state UNUSED)
{
	static const struct {
		const char *info, *name;
	} cases[] = {
		{ "{\"name\":\"c\",\"version\":\"3.1\"}", "c/3.1" },
		{ "{\"name\":\"c\"}", "c" },
		{ "{\"version\":\"3.1\"}", "" },
		{ "{\"name\":3,\"version\":\"1\"}", "" },
		{ "{\"name\":\"a\\u0000b\"}", "" },
		{ "[]", "" },
	};
	char out[ENVELOPE_CLIENT_SIZE];
	struct text t;
	json_t *j;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		j = json_loads(cases[i].info, 0, NULL);
		envelope_client(out, j);
		assert_string_equal(out, cases[i].name);
		json_decref(j);
	}
	envelope_client(out, NULL);
	assert_string_equal(out, "");
	/* 2-byte characters behind one byte: a cut at 128 halves one */
	text_init(&t);
	text_add(&t, "x");
	for (int i = 0; i < 200; i++)
		text_add(&t, "\xc3\xa9");
	j = json_pack("{s:s}", "name", t.s);
	envelope_client(out, j);
	assert_int_equal(strlen(out), 127);
	assert_true(text_is_utf8(out, strlen(out)));
	json_decref(j);
	text_release(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(revisions_are_in_order),
		cmocka_unit_test(agrees_on_a_legacy_revision),
		cmocka_unit_test(each_request_decides_its_era),
		cmocka_unit_test(an_unserved_version_is_told_what_is),
		cmocka_unit_test(results_are_wrapped_as_the_revision_wants),
		cmocka_unit_test(client_names_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
