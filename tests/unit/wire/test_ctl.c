/* test_ctl: the verb table, changes as they are written, request lines */
#include "wire/ctl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void
every_verb_has_a_whole_row(void **state UNUSED)
{
	for (int v = 0; v < CTL_NVERBS; v++) {
		const struct ctl_row *row = &ctl_verbs[v];

		assert_non_null(row->name);
		assert_true(strlen(row->name) > 0);
		assert_int_equal(strspn(row->name,
				     "abcdefghijklmnopqrstuvwxyz"),
		    strlen(row->name));
		assert_int_equal(ctl_verb_by_name(row->name), v);
		assert_non_null(row->pattern);
		assert_true(strlen(row->help) > 0);
		assert_null(strchr(row->help, '\n'));
		assert_in_range(row->role, ROLE_NONE, ROLE_N - 1);
		/* whatever shows or changes data asks the guard as well */
		assert_int_equal(row->guarded, row->role != ROLE_NONE);
	}
	assert_int_equal(ctl_verb_by_name("no-such-verb"), CTL_NVERBS);
	assert_int_equal(ctl_verb_by_name(""), CTL_NVERBS);
	assert_int_equal(ctl_verb_by_name("PING"), CTL_NVERBS);
	assert_int_equal(ctl_verb_by_name("pingx"), CTL_NVERBS);
}

static void
roles_are_what_the_verbs_need(void **state UNUSED)
{
	static const enum role least[CTL_NVERBS] = {
		[CTL_PING] = ROLE_NONE,
		[CTL_VERSION] = ROLE_NONE,
		[CTL_STATUS] = ROLE_NONE,
		[CTL_PENDING] = ROLE_VIEW,
		[CTL_SHOW] = ROLE_VIEW,
		[CTL_COMMIT] = ROLE_DECIDE,
		[CTL_ROLLBACK] = ROLE_DECIDE,
		[CTL_LOG] = ROLE_VIEW,
		[CTL_AGENTS] = ROLE_VIEW,
	};

	for (int v = 0; v < CTL_NVERBS; v++)
		assert_int_equal(ctl_verbs[v].role, least[v]);
	for (int r = 0; r < ROLE_N; r++)
		assert_true(strlen(role_name[r]) > 0);
}

static const struct {
	const char *s, *id, *digest; /* id NULL: refused */
} changes[] = {
	{ "chg_0123456789", "chg_0123456789", "" },
	{ "chg_abcdefabcd@" SHA, "chg_abcdefabcd", SHA },
	{ "", NULL, NULL },
	{ "chg_", NULL, NULL },
	{ "chg_012345678", NULL, NULL },
	{ "chg_01234567890", NULL, NULL },
	{ "chg_012345678g", NULL, NULL },
	{ "CHG_0123456789", NULL, NULL },
	{ "chg_ABCDEFABCD", NULL, NULL },
	{ " chg_0123456789", NULL, NULL },
	{ "chg_0123456789 ", NULL, NULL },
	{ "chg_0123456789@", NULL, NULL },
	{ "chg_0123456789@0123", NULL, NULL },
	{ "chg_0123456789@" SHA "0", NULL, NULL },
	{ "chg_0123456789@" SHA "@", NULL, NULL },
	{ "chg_0123456789x" SHA, NULL, NULL },
	{ "\x1b[2Jchg_0123456789", NULL, NULL },
};

static void
changes_are_whole_or_refused(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		char id[15] = "untouched", digest[65] = "untouched";
		struct err e = ERR_INIT;
		int rc = ctl_parse_change(changes[i].s, id, digest, &e);

		if ((rc == 0) != (changes[i].id != NULL))
			fail_msg("'%s': %d %s", changes[i].s, rc, e.text);
		if (rc == 0) {
			assert_string_equal(id, changes[i].id);
			assert_string_equal(digest, changes[i].digest);
			continue;
		}
		assert_int_equal(e.code, ERR_INPUT);
		assert_null(strchr(e.text, '\x1b'));
		assert_string_equal(id, "untouched");
		assert_string_equal(digest, "untouched");
	}
}

static const struct {
	const char *line;
	int verb;         /* -1: refused */
	const char *says; /* part of the refusal */
} requests[] = {
	{ "{\"airlock\":1,\"nonce\":\"n\",\"verb\":\"ping\"}", CTL_PING, NULL },
	{ "{\"airlock\":1,\"nonce\":\"n\",\"verb\":\"show\",\"args\":"
	  "{\"change\":\"x\"}}",
	    CTL_SHOW, NULL },
	{ "{\"airlock\":1,\"nonce\":\"n\",\"verb\":\"log\",\"future\":[]}",
	    CTL_LOG, NULL },
	{ "", -1, "not JSON" },
	{ "ping", -1, "not JSON" },
	{ "[]", -1, "not an object" },
	{ "{}", -1, "protocol version" },
	{ "{\"airlock\":\"1\"}", -1, "protocol version" },
	{ "{\"airlock\":2,\"nonce\":\"n\",\"verb\":\"ping\"}", -1,
	    "one release" },
	{ "{\"airlock\":1,\"verb\":\"ping\"}", -1, "nonce" },
	{ "{\"airlock\":1,\"nonce\":7,\"verb\":\"ping\"}", -1, "nonce" },
	{ "{\"airlock\":1,\"nonce\":\"n\"}", -1, "no verb" },
	{ "{\"airlock\":1,\"nonce\":\"n\",\"verb\":1}", -1, "no verb" },
	{ "{\"airlock\":1,\"nonce\":\"n\",\"verb\":\"pin\\ng\"}", -1,
	    "'pin\\ng'" },
	{ "{\"airlock\":1,\"nonce\":\"n\",\"verb\":\"ping\",\"args\":[]}", -1,
	    "arguments" },
	{ "{\"airlock\":1,\"nonce\":\"n\",\"verb\":\"ping\",\"args\":null}", -1,
	    "arguments" },
	{ "{\"airlock\":1,\"nonce\":\"n\",\"verb\":\"ping\",\"verb\":\"commit\"}",
	    -1, "not JSON" },
	{ "{\"airlock\":1,\"nonce\":\"n\",\"verb\":\"commit\",\"args\":"
	  "{\"change\":\"a\",\"change\":\"b\"}}",
	    -1, "not JSON" },
	{ "{\"airlock\":1,\"nonce\":\"\\u0000\",\"verb\":\"ping\"}", -1,
	    "not JSON" },
	{ "{\"airlock\":1,\"nonce\":\"n\",\"verb\":\"ping\"}{}", -1,
	    "not JSON" },
};

static void
requests_are_parsed_or_refused(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		struct err e = ERR_INIT;
		enum ctl_verb verb = CTL_NVERBS;
		json_t *msg = NULL, *args = NULL;
		int rc = ctl_parse_request(requests[i].line,
		    strlen(requests[i].line), &msg, &verb, &args, &e);

		if ((rc == 0) != (requests[i].verb >= 0))
			fail_msg("%s: %d %s", requests[i].line, rc, e.text);
		if (rc == 0) {
			assert_int_equal(verb, requests[i].verb);
			assert_true(json_is_object(args));
			json_decref(msg);
			continue;
		}
		assert_int_equal(e.code, ERR_INPUT);
		assert_null(msg);
		if (strstr(e.text, requests[i].says) == NULL)
			fail_msg("%s: %s", requests[i].line, e.text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_verb_has_a_whole_row),
		cmocka_unit_test(roles_are_what_the_verbs_need),
		cmocka_unit_test(changes_are_whole_or_refused),
		cmocka_unit_test(requests_are_parsed_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
