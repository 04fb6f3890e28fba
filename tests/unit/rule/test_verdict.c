/* test_verdict: what the rules say of each kind of statement and effect */
#include "rule/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../facts_of.h"
#include "sql/parse.h"

static bool
has(const struct verdict *v, enum reason r)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->v[i].reason == r)
			return true;
	return false;
}

/* Each with its code in db_query and in db_execute; REASON_N: not refused. */
/* clang-format off */
static const struct {
	const char *sql;
	enum reason query, execute;
} asked[] = {
	{ "", REASON_NOTHING_TO_RUN, REASON_NOTHING_TO_RUN },
	{ "SELECT 1", REASON_N, REASON_READ_IN_EXECUTE },
	{ "VALUES (1)", REASON_N, REASON_READ_IN_EXECUTE },
	{ "SHOW work_mem", REASON_N, REASON_READ_IN_EXECUTE },
	{ "EXPLAIN SELECT 1", REASON_N, REASON_READ_IN_EXECUTE },
	{ "EXPLAIN ANALYZE SELECT 1", REASON_N, REASON_READ_IN_EXECUTE },
	{ "EXPLAIN DELETE FROM t", REASON_N, REASON_READ_IN_EXECUTE },
	{ "EXPLAIN ANALYZE DELETE FROM t", REASON_WRITE_IN_QUERY, REASON_READ_IN_EXECUTE },
	{ "EXPLAIN (ANALYZE) CREATE TABLE x AS SELECT 1", REASON_SCHEMA_CHANGE, REASON_READ_IN_EXECUTE },
	{ "INSERT INTO t VALUES (1)", REASON_WRITE_IN_QUERY, REASON_N },
	{ "UPDATE t SET a = 1 WHERE id = 1", REASON_WRITE_IN_QUERY, REASON_N },
	{ "DELETE FROM t WHERE id = 1", REASON_WRITE_IN_QUERY, REASON_N },
	{ "MERGE INTO t USING s ON t.i = s.i WHEN MATCHED THEN DELETE", REASON_WRITE_IN_QUERY, REASON_N },
	{ "WITH d AS (DELETE FROM t RETURNING 1) SELECT * FROM d", REASON_WRITE_IN_QUERY, REASON_N },
	{ "SELECT 1; SELECT 2", REASON_MULTIPLE_STATEMENTS, REASON_MULTIPLE_STATEMENTS },
	{ "SELECT * INTO x FROM t", REASON_WRITE_IN_QUERY, REASON_SCHEMA_CHANGE },
	{ "SELECT * FROM t FOR UPDATE", REASON_LOCKING, REASON_READ_IN_EXECUTE },
	{ "COPY t FROM STDIN", REASON_COPY, REASON_COPY },
	{ "CALL p()", REASON_PROCEDURAL, REASON_PROCEDURAL },
	{ "DO 'x'", REASON_PROCEDURAL, REASON_PROCEDURAL },
	{ "COMMIT", REASON_TRANSACTION_CONTROL, REASON_TRANSACTION_CONTROL },
	{ "PREPARE TRANSACTION 'x'", REASON_TRANSACTION_CONTROL, REASON_TRANSACTION_CONTROL },
	{ "SET ROLE x", REASON_SESSION_CONTROL, REASON_SESSION_CONTROL },
	{ "NOTIFY x", REASON_SESSION_CONTROL, REASON_SESSION_CONTROL },
	{ "DISCARD ALL", REASON_SESSION_CONTROL, REASON_SESSION_CONTROL },
	{ "LOCK TABLE t", REASON_LOCKING, REASON_LOCKING },
	{ "TRUNCATE t", REASON_SCHEMA_CHANGE, REASON_SCHEMA_CHANGE },
	{ "DROP TABLE t", REASON_SCHEMA_CHANGE, REASON_SCHEMA_CHANGE },
	{ "GRANT SELECT ON t TO PUBLIC", REASON_SYSTEM, REASON_SYSTEM },
	{ "ALTER SYSTEM SET work_mem = '1MB'", REASON_SYSTEM, REASON_SYSTEM },
	{ "CREATE ROLE x", REASON_SYSTEM, REASON_SYSTEM },
	{ "VACUUM t", REASON_MAINTENANCE, REASON_MAINTENANCE },
	{ "SELECT pg_read_file('x')", REASON_FUNCTION_OUTSIDE, REASON_READ_IN_EXECUTE },
	{ "SELECT 1 LIMIT length(pg_catalog.pg_read_file('x'))", REASON_FUNCTION_OUTSIDE, REASON_READ_IN_EXECUTE },
	{ "UPDATE t SET a = 1 WHERE set_config('a', 'b', true) = 'b'", REASON_WRITE_IN_QUERY, REASON_FUNCTION_OUTSIDE },
	{ "DELETE FROM t WHERE dblink_exec('x') = 'y'", REASON_WRITE_IN_QUERY, REASON_FUNCTION_OUTSIDE },
};
/* clang-format on */

static void
every_kind_is_asked_in_both_tools(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		const enum reason want[] = { asked[i].query, asked[i].execute };

		for (int tool = TOOL_QUERY; tool <= TOOL_EXECUTE; tool++) {
			struct facts f = facts_of(asked[i].sql);
			struct verdict v = { 0 };
			const struct finding *r;

			verdict_ask((enum verdict_tool)tool, &f, &v);
			r = verdict_refusal(&v);
			if ((r != NULL ? r->reason : REASON_N) != want[tool])
				fail_msg("%s in %s: %s", asked[i].sql,
				    tool == TOOL_QUERY ? "db_query"
						       : "db_execute",
				    r != NULL ? reasons[r->reason].code
					      : "let in");
			facts_release(&f);
		}
	}
}

static void
conditions_that_choose_nothing_raise_the_risk(void **state UNUSED)
{
	static const struct {
		const char *sql;
		enum reason r;
	} cases[] = {
		{ "UPDATE t SET a = 1", REASON_NO_WHERE },
		{ "DELETE FROM t WHERE 1 + 1 = 2", REASON_VACUOUS_WHERE },
		{ "DELETE FROM t WHERE id = id", REASON_VACUOUS_WHERE },
		{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = 1)",
		    REASON_WHERE_IGNORES_TARGET },
		{ "DELETE FROM t WHERE id = 1", REASON_N },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct facts f = facts_of(cases[i].sql);
		struct verdict v = { 0 };

		verdict_ask(TOOL_EXECUTE, &f, &v);
		assert_null(verdict_refusal(&v));
		assert_int_equal(v.n, cases[i].r == REASON_N ? 0 : 1);
		if (v.n > 0) {
			assert_int_equal(v.v[0].reason, cases[i].r);
			assert_int_equal(verdict_risk(&v), SEVERITY_HIGH);
		}
		facts_release(&f);
	}
}

/* A kind or a part that this program does not know, of a newer library. */
static void
what_is_not_understood_is_refused(void **state UNUSED)
{
	for (int tool = TOOL_QUERY; tool <= TOOL_EXECUTE; tool++)
		for (int part = 0; part < 2; part++) {
			struct facts f = facts_of("DELETE FROM t WHERE a = 1");
			struct verdict v = { 0 };

			if (part == 0)
				f.kind = STMT_OTHER;
			else
				f.opaque = true;
			verdict_ask((enum verdict_tool)tool, &f, &v);
			assert_true(has(&v, REASON_NOT_UNDERSTOOD));
			assert_non_null(verdict_refusal(&v));
			facts_release(&f);
		}
}

/* One table of measured effects a row; the reasons that must and no others. */
/* clang-format off */
static const struct {
	struct effect_table t;
	bool complete, ddl;
	enum reason want[3];
	enum severity risk;
} effects[] = {
	{ { "t", 0, 1, 0, 0, false, true, 100 }, true, false, { REASON_N }, SEVERITY_LOW },
	{ { "t", 99, 0, 0, 0, false, true, 0 }, true, false, { REASON_N }, SEVERITY_LOW },
	{ { "t", 100, 0, 0, 0, false, true, 0 }, true, false, { REASON_HUNDRED_ROWS, REASON_N }, SEVERITY_MEDIUM },
	{ { "t", 1000, 0, 0, 0, false, true, 0 }, true, false, { REASON_MANY_ROWS, REASON_N }, SEVERITY_HIGH },
	{ { "t", 0, 10, 0, 0, false, true, 20 }, true, false, { REASON_N }, SEVERITY_LOW },
	{ { "t", 0, 6, 5, 0, false, true, 20 }, true, false, { REASON_LARGE_SHARE, REASON_N }, SEVERITY_HIGH },
	{ { "t", 0, 11, 0, 0, false, true, 19 }, true, false, { REASON_N }, SEVERITY_LOW },
	{ { "t", 0, 11, 0, 0, false, true, -1 }, true, false, { REASON_N }, SEVERITY_LOW },
	{ { "t", 1, 0, 0, 0, true, true, -1 }, true, false, { REASON_COLLATERAL, REASON_N }, SEVERITY_MEDIUM },
	{ { "t", 0, 0, 1, 0, true, true, -1 }, true, false, { REASON_COLLATERAL_DELETE, REASON_N }, SEVERITY_HIGH },
	{ { "t", 0, 0, 0, 0, false, false, -1 }, false, false, { REASON_INCOMPLETE, REASON_N }, SEVERITY_HIGH },
	{ { "t", 0, 1, 0, 0, false, true, -1 }, false, true, { REASON_HIDDEN_DDL, REASON_INCOMPLETE, REASON_N }, SEVERITY_HIGH },
};
/* clang-format on */

static void
effects_give_their_reasons(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++) {
		struct effect x = { &effects[i].t, 1, effects[i].complete,
			effects[i].ddl };
		struct facts f = { 0 };
		struct verdict v = { 0 };
		size_t n = 0;

		verdict_effect(&f, &x, &v);
		for (; effects[i].want[n] != REASON_N; n++)
			assert_true(has(&v, effects[i].want[n]));
		assert_int_equal(v.n, n);
		assert_int_equal(verdict_risk(&v), effects[i].risk);
	}
}

static void
several_tables_are_a_reason(void **state UNUSED)
{
	const struct effect_table t[] = {
		{ "a", 1, 0, 0, 0, false, true, -1 },
		{ "b", 1, 0, 0, 0, false, true, -1 },
		{ "c", 0, 0, 0, 3, false, true, -1 },
	};
	struct effect x = { t, 3, true, false };
	struct facts f = { 0 };
	struct verdict v = { 0 };

	verdict_effect(&f, &x, &v);
	assert_int_equal(v.n, 1);
	assert_int_equal(v.v[0].reason, REASON_SEVERAL_TABLES);
	assert_non_null(strstr(v.v[0].text, "2 tables"));
}

static void
a_verdict_holds_a_code_once_and_is_bounded(void **state UNUSED)
{
	struct verdict v = { 0 };

	for (int round = 0; round < 2; round++)
		for (int r = 0; r < REASON_N; r++)
			verdict_add(&v, (enum reason)r, -1, "%d", r);
	assert_int_equal(v.n, VERDICT_MAX);
	for (size_t i = 0; i < v.n; i++)
		assert_int_equal(v.v[i].reason, i);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_asked_in_both_tools),
		cmocka_unit_test(what_is_not_understood_is_refused),
		cmocka_unit_test(conditions_that_choose_nothing_raise_the_risk),
		cmocka_unit_test(effects_give_their_reasons),
		cmocka_unit_test(several_tables_are_a_reason),
		cmocka_unit_test(a_verdict_holds_a_code_once_and_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
