/* where: conditions that choose every row, or rows of something else */
#include "sql/where.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sql/facts.h"
#include "sql/parse.h"

static struct facts
read_facts(const char *sql)
{
	struct err e = ERR_INIT;
	struct facts f;
	struct parse p;
	long position;

	if (parse_text(sql, strlen(sql), &p, &position, &e) == -1)
		fail_msg("%s: %s", sql, e.text);
	if (facts_read(&p, &f, &e) == -1)
		fail_msg("%s: %s", sql, e.text);
	parse_release(&p);
	return f;
}

static const char *const vacuous[] = {
	"TRUE",
	"true",
	"NOT false",
	"NOT NOT true",
	"1 = 1",
	"1 + 1 = 2",
	"2 > 1",
	"1 <> 2",
	"1 != 2",
	"-1 < 0",
	"7 / 2 = 3",
	"7 % 4 = 3",
	"2 * 3 >= 6",
	"0.5 < 0.75",
	"'a' = 'a'",
	"'a' <> 'b'",
	"'a' < 'b'",
	"'t'",
	"'true'::boolean",
	"true::bool",
	"1::boolean",
	"NULL IS NULL",
	"1 IS NOT NULL",
	"(1 = 1) IS TRUE",
	"(1 = 2) IS NOT TRUE",
	"(NULL = 1) IS UNKNOWN",
	"1 IN (2, 1)",
	"1 BETWEEN 0 AND 2",
	"NULL IS NOT DISTINCT FROM NULL",
	"1 IS DISTINCT FROM 2",
	"COALESCE(NULL, true)",
	"CASE WHEN true THEN true END",
	"CASE WHEN false THEN false ELSE true END",
	"id = id",
	"t.id = t.id",
	"id <= id",
	"id >= id",
	"id + 1 = id + 1",
	"id BETWEEN id AND id",
	"id IN (5, id)",
	"id IS NOT DISTINCT FROM id",
	"lower = lower",
	"id = 1 OR true",
	"true OR id = 1",
	"id = id AND 1 = 1",
	"id = 1 OR id = id",
	"id = 1 OR NOT id = 1",
	"id IS NULL OR id IS NOT NULL",
	"name LIKE '%'",
	"name ILIKE '%%'",
	"NOT (1 = 2)",
	"NOT (id IS DISTINCT FROM id)",
	"'1'::int = 1",
	"id = 1 OR '1'::int = 1",
	"current_date > '2020-01-01'",
	"id = 1 OR current_user = 'x'",
	"(TRUE)",
	"$1 = $1",
	"id = 5 OR 1 < 2",
	"true OPERATOR(pg_catalog.=) true",
};

static const char *const not_vacuous[] = {
	"id = 1",
	"id = 1 AND true",
	"id = other",
	"id < id",
	"id <> id",
	"id IS NOT NULL",
	"id IS NULL",
	"false",
	"1 = 2",
	"NULL",
	"id = NULL",
	"NOT true",
	"id = 1 OR false",
	"id = 1 AND '1'::int = 1",
	"$1",
	"id = $1",
	"$1 = 1",
	"id = $1 OR $2 = 1",
	"random() = random()",
	"f(id) = f(id)",
	"random() < 0.9",
	"id IN (1, 2)",
	"id NOT IN (1, 2)",
	"id NOT IN (id)",
	"id BETWEEN 1 AND 2",
	"id NOT BETWEEN id AND id",
	"name LIKE '%x'",
	"name LIKE ''",
	"name NOT LIKE '%'",
	"name LIKE '%' ESCAPE 'x'",
	"id = 1 OR id = 2",
	"id = 1 OR NOT id = 2",
	"id IS NULL OR other IS NOT NULL",
	"CASE WHEN id = 1 THEN true END",
	"CASE id WHEN 1 THEN true END",
	"COALESCE(done, true)",
	"COALESCE(NULL, false)",
	"done",
	"NOT done",
	"done IS TRUE",
	"EXISTS (SELECT 1 FROM u)",
	"id = (SELECT id FROM u)",
	"id = ANY ('{1}')",
	"1 / 0 = id",
	"id OPERATOR(evil.=) id",
	"id ~ id",
	"7 / 2 = 4",
	"NOT (id = id)",
	"sent_at < current_date",
	"'a' = 'b'",
	"id % 2 = 0",
	"(id = 1) = (id = 1) AND id = 2",
	"1 IS DISTINCT FROM 1",
};

static void
check(const char *const *v, size_t n, bool expected)
{
	for (size_t i = 0; i < n; i++) {
		char *sql = mem_printf("DELETE FROM t WHERE %s", v[i]);
		struct facts f = read_facts(sql);

		assert_true(f.has_where);
		if (f.where_vacuous != expected)
			fail_msg("%s", v[i]);
		facts_release(&f);
		free(sql);
	}
}

static void
knows_what_is_vacuous(void **state UNUSED)
{
	check(vacuous, sizeof(vacuous) / sizeof(vacuous[0]), true);
	check(not_vacuous, sizeof(not_vacuous) / sizeof(not_vacuous[0]), false);
}

/* clang-format off */
static const struct {
	const char *sql;
	bool ignores;
} mentions[] = {
	{ "DELETE FROM t WHERE id = 1", false },
	{ "DELETE FROM t WHERE t.id = 1", false },
	{ "DELETE FROM t WHERE s.t.id = 1", false },
	{ "DELETE FROM s.t WHERE s.t.id = 1", false },
	{ "DELETE FROM s.t WHERE o.t.id = 1", true },
	{ "DELETE FROM t WHERE true", true },
	{ "DELETE FROM t WHERE random() < 0.9", true },
	{ "DELETE FROM t WHERE current_setting('x') = 'off'", true },
	{ "DELETE FROM t WHERE $1 = 1", true },
	{ "DELETE FROM t AS q WHERE q.id = 1", false },
	{ "DELETE FROM t AS q WHERE id = 1", false },
	{ "DELETE FROM t USING u WHERE u.id = 1", true },
	{ "DELETE FROM t USING u WHERE id = 1", false },
	{ "DELETE FROM t USING u WHERE u.id = t.id", false },
	{ "DELETE FROM t AS q USING t WHERE t.id = 1", true },
	{ "UPDATE t SET a = 1 FROM u WHERE u.id = 1 AND u.x = 2", true },
	{ "UPDATE t SET a = id WHERE 1 = 1", true },
	{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u)", true },
	{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM t WHERE id = 1)", true },
	{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM t WHERE t.id = 1)", true },
	{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM t x WHERE t.id = 1)", false },
	{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u x WHERE x.id = t.id)", false },
	{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t IS NOT NULL)", false },
	{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u JOIN t ON true WHERE t.id = 1)", true },
	{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM (u JOIN t ON true) AS j WHERE t.id = 1)", false },
	{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM t TABLESAMPLE system (1) WHERE t.id = 1)", true },
	{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM f() AS t WHERE t.id = 1)", true },
	{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM (SELECT 1) AS t(id) WHERE t.id = 1)", true },
	{ "DELETE FROM t WHERE (SELECT id = 1)", false },
	{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM (SELECT id) q)", false },
	{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u, LATERAL (SELECT id) q)", true },
	{ "DELETE FROM t WHERE EXISTS (WITH c AS (SELECT t.id) SELECT 1 FROM t, c)", false },
	{ "DELETE FROM t WHERE id IN (SELECT id FROM t)", false },
	{ "DELETE FROM t WHERE 1 IN (SELECT id FROM t)", true },
	{ "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE EXISTS (SELECT 1 WHERE id = 2))", true },
	{ "DELETE FROM t WHERE (t).id = 1", false },
	{ "DELETE FROM t WHERE t IS NOT NULL", false },
	{ "DELETE FROM t WHERE f(t.*)", false },
	{ "UPDATE ONLY t SET a = 1 WHERE CASE WHEN id = 1 THEN true END", false },
	{ "MERGE INTO t USING s ON s.x = 1 WHEN MATCHED THEN DELETE", true },
	{ "MERGE INTO t USING s ON s.x = t.x WHEN MATCHED THEN DELETE", false },
	{ "EXPLAIN DELETE FROM t WHERE EXISTS (SELECT 1 FROM u)", true },
};
/* clang-format on */

static void
knows_what_ignores_the_target(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(mentions) / sizeof(mentions[0]); i++) {
		struct facts f = read_facts(mentions[i].sql);

		if (f.where_ignores_target != mentions[i].ignores)
			fail_msg("%s", mentions[i].sql);
		facts_release(&f);
	}
}

static void
no_condition_is_neither(void **state UNUSED)
{
	struct facts f = read_facts("DELETE FROM t");

	assert_false(f.has_where);
	assert_false(f.where_vacuous);
	assert_false(f.where_ignores_target);
	facts_release(&f);
	f = read_facts("UPDATE t SET a = (SELECT max(a) FROM t WHERE id = 1)");
	assert_false(f.has_where);
	facts_release(&f);
	f = read_facts("DELETE FROM t /* WHERE id = 5 */");
	assert_false(f.has_where);
	facts_release(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_what_is_vacuous),
		cmocka_unit_test(knows_what_ignores_the_target),
		cmocka_unit_test(no_condition_is_neither),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
