/* test_reasons: the table of reasons is whole; functions that reach out are
 * known */
#include "rule/reasons.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/err.h"
#include "rule/functions.h"

static void
every_reason_is_whole(void **state UNUSED)
{
	for (int i = 0; i < REASON_N; i++) {
		const struct reason_row *r = &reasons[i];

		assert_int_equal(strspn(r->code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"),
		    strlen(r->code));
		assert_int_equal(reason_by_code(r->code), i);
		assert_true(strlen(r->meaning) > 0);
		/* who is refused is told what would be accepted, who decides
		 * what to look at */
		assert_true(strlen(r->advice) > 0);
		assert_non_null(severity_name[r->severity]);
	}
	assert_int_equal(reason_by_code("no_where"), REASON_NO_WHERE);
	assert_int_equal(reason_by_code("NO"), REASON_N);
}

static void
functions_that_reach_out(void **state UNUSED)
{
	static const char *const out[] = { "pg_read_file", "PG_READ_FILE",
		"pg_sleep", "pg_sleep_for", "set_config", "lo_create",
		"lo_import", "loread", "dblink", "dblink_exec", "pg_notify",
		"pg_advisory_lock", "pg_advisory_xact_lock_shared",
		"pg_try_advisory_lock", "pg_terminate_backend",
		"pg_cancel_backend", "pg_reload_conf", "pg_rotate_logfile",
		"pg_switch_wal", "pg_promote", "query_to_xml",
		"query_to_xmlschema", "table_to_xml", "database_to_xml",
		"pg_ls_dir", "pg_stat_file", "setval", "pg_export_snapshot",
		"pg_logical_emit_message", "pg_create_restore_point",
		"pg_import_system_collations", "pg_stat_reset", "ts_stat" };
	static const char *const in[] = { "upper", "now", "count", "nextval",
		"random", "gen_random_uuid", "pg_typeof", "pg_relation_size",
		"log", "lower", "locate", "dblin", "pg_sleeper", "setvalue",
		"to_json", "current_setting" };

	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++)
		if (!function_reaches_out(out[i]))
			fail_msg("%s is let in", out[i]);
	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++)
		if (function_reaches_out(in[i]))
			fail_msg("%s is kept out", in[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_reason_is_whole),
		cmocka_unit_test(functions_that_reach_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
