/* rewrite: what is spliced in, where, and that nothing else can slip in */
#include "sql/rewrite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"

#define FROM "(SELECT 1) AS q(z)"
#define WHERE "q.z = 1 OR t.a"

/* clang-format off */
static const struct {
	const char *sql;
	struct rewrite_edit edit;
	const char *rewritten;
} cases[] = {
	/* RETURNING alone */
	{ "DELETE FROM t", { NULL, NULL, "ctid" }, "DELETE FROM t RETURNING ctid" },
	{ "DELETE FROM t;", { NULL, NULL, "ctid" }, "DELETE FROM t RETURNING ctid;" },
	{ "DELETE FROM t -- all", { NULL, NULL, "ctid" }, "DELETE FROM t RETURNING ctid -- all" },
	{ "/* a */ ;; DELETE FROM t /* b */ ;; -- c", { NULL, NULL, "ctid" },
	    "/* a */ ;; DELETE FROM t RETURNING ctid /* b */ ;; -- c" },
	{ "DELETE FROM t RETURNING a", { NULL, NULL, "b, c AS d" }, "DELETE FROM t RETURNING a, b, c AS d" },
	{ "DELETE FROM t RETURNING * -- x", { NULL, NULL, "b" }, "DELETE FROM t RETURNING *, b -- x" },
	{ "DELETE FROM t/**/", { NULL, NULL, "t.*" }, "DELETE FROM t RETURNING t.*/**/" },
	{ "INSERT INTO t VALUES (1)", { NULL, NULL, "a" }, "INSERT INTO t VALUES (1) RETURNING a" },
	{ "INSERT INTO t DEFAULT VALUES", { NULL, NULL, "a" }, "INSERT INTO t DEFAULT VALUES RETURNING a" },
	{ "INSERT INTO t AS r SELECT a AS returning FROM u WHERE b", { NULL, NULL, "a" },
	    "INSERT INTO t AS r SELECT a AS returning FROM u WHERE b RETURNING a" },
	{ "INSERT INTO t VALUES (1) ON CONFLICT (a) WHERE b DO UPDATE SET c = 1 WHERE t.d RETURNING e", { NULL, NULL, "a" },
	    "INSERT INTO t VALUES (1) ON CONFLICT (a) WHERE b DO UPDATE SET c = 1 WHERE t.d RETURNING e, a" },
	{ "INSERT INTO t WITH x AS (DELETE FROM u RETURNING 1) SELECT * FROM x", { NULL, NULL, "a" },
	    "INSERT INTO t WITH x AS (DELETE FROM u RETURNING 1) SELECT * FROM x RETURNING a" },
	{ "WITH x AS (INSERT INTO u VALUES (1) RETURNING a) INSERT INTO t TABLE x", { NULL, NULL, "a" },
	    "WITH x AS (INSERT INTO u VALUES (1) RETURNING a) INSERT INTO t TABLE x RETURNING a" },
	{ "INSERT INTO t VALUES (U&'\\0061')", { NULL, NULL, "a" }, "INSERT INTO t VALUES (U&'\\0061') RETURNING a" },
	{ "DELETE FROM t WHERE a = U&'x'  ", { NULL, NULL, "a" }, "DELETE FROM t WHERE a = U&'x' RETURNING a  " },
	{ "DELETE FROM t WHERE a = U&'d!0061t' UESCAPE '!'", { NULL, NULL, "a" },
	    "DELETE FROM t WHERE a = U&'d!0061t' UESCAPE '!' RETURNING a" },
	{ "DELETE FROM t WHERE a = $x$ RETURNING $x$", { NULL, NULL, "a" },
	    "DELETE FROM t WHERE a = $x$ RETURNING $x$ RETURNING a" },
	{ "DELETE FROM \"returning\" WHERE \"where\".x", { NULL, NULL, "a" },
	    "DELETE FROM \"returning\" WHERE \"where\".x RETURNING a" },
	{ "DELETE FROM t WHERE CURRENT OF c", { NULL, NULL, "a" }, "DELETE FROM t WHERE CURRENT OF c RETURNING a" },
	{ "DELETE FROM 漢 WHERE 字 = '語'", { NULL, NULL, "a" }, "DELETE FROM 漢 WHERE 字 = '語' RETURNING a" },
	/* all three */
	{ "UPDATE t SET a = 1", { FROM, WHERE, "b" }, "UPDATE t SET a = 1 FROM " FROM " WHERE (" WHERE ") RETURNING b" },
	{ "UPDATE t SET a = 1 WHERE b", { FROM, WHERE, "b" },
	    "UPDATE t SET a = 1 FROM " FROM " WHERE (b) AND (" WHERE ") RETURNING b" },
	{ "UPDATE t SET a = 1 WHERE b AND c", { FROM, WHERE, "b" },
	    "UPDATE t SET a = 1 FROM " FROM " WHERE (b AND c) AND (" WHERE ") RETURNING b" },
	{ "UPDATE t SET a = 1 WHERE b AND c", { NULL, "d AND e", NULL },
	    "UPDATE t SET a = 1 WHERE (b AND c) AND (d AND e)" },
	{ "UPDATE t SET a = 1 WHERE b OR c -- d\n RETURNING e -- f", { FROM, WHERE, "b" },
	    "UPDATE t SET a = 1 FROM " FROM " WHERE (b OR c) AND (" WHERE ") -- d\n RETURNING e, b -- f" },
	{ "UPDATE t SET a = b IS DISTINCT FROM c FROM u JOIN v ON w WHERE x", { FROM, WHERE, "b" },
	    "UPDATE t SET a = b IS DISTINCT FROM c FROM u JOIN v ON w, " FROM " WHERE (x) AND (" WHERE ") RETURNING b" },
	{ "UPDATE t SET a = t.where, b = (SELECT 1 FROM u WHERE c)", { FROM, WHERE, "b" },
	    "UPDATE t SET a = t.where, b = (SELECT 1 FROM u WHERE c) FROM " FROM " WHERE (" WHERE ") RETURNING b" },
	{ "UPDATE t SET a[1] = b[(SELECT 1 FROM u)] WHERE c IN (SELECT 1 FROM d WHERE e)", { FROM, WHERE, "b" },
	    "UPDATE t SET a[1] = b[(SELECT 1 FROM u)] FROM " FROM " WHERE (c IN (SELECT 1 FROM d WHERE e)) AND (" WHERE ") RETURNING b" },
	{ "DELETE FROM ONLY t AS x USING u WHERE x.a = u.a", { FROM, WHERE, "b" },
	    "DELETE FROM ONLY t AS x USING u, " FROM " WHERE (x.a = u.a) AND (" WHERE ") RETURNING b" },
	{ "DELETE FROM t", { FROM, WHERE, NULL }, "DELETE FROM t USING " FROM " WHERE (" WHERE ")" },
	{ "WITH update AS (SELECT 1 FROM x WHERE y) DELETE FROM t WHERE a", { FROM, WHERE, "b" },
	    "WITH update AS (SELECT 1 FROM x WHERE y) DELETE FROM t USING " FROM " WHERE (a) AND (" WHERE ") RETURNING b" },
	{ "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 2 FROM r) CYCLE a SET b USING c DELETE FROM t", { FROM, WHERE, "b" },
	    "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 2 FROM r) CYCLE a SET b USING c DELETE FROM t USING " FROM " WHERE (" WHERE ") RETURNING b" },
	{ "DELETE FROM t WHERE a = $1", { NULL, "b = $2", "c" }, "DELETE FROM t WHERE (a = $1) AND (b = $2) RETURNING c" },
	{ "DELETE FROM t WHERE a BETWEEN 1 AND 2 OR NOT b", { NULL, "c", NULL },
	    "DELETE FROM t WHERE (a BETWEEN 1 AND 2 OR NOT b) AND (c)" },
	{ "DELETE FROM t", { NULL, NULL, NULL }, "DELETE FROM t" },
};

static const struct {
	const char *sql;
	struct rewrite_edit edit;
} refused[] = {
	{ "SELECT 1", { NULL, NULL, "a" } },
	{ "", { NULL, NULL, "a" } },
	{ "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE", { NULL, NULL, "a" } },
	{ "DELETE FROM t; DELETE FROM u", { NULL, NULL, "a" } },
	{ "WITH d AS (DELETE FROM t RETURNING 1) SELECT 1", { NULL, NULL, "a" } },
	{ "EXPLAIN DELETE FROM t", { NULL, NULL, "a" } },
	{ "DELETE FROM", { NULL, NULL, "a" } },
	{ "INSERT INTO t VALUES (1)", { FROM, NULL, NULL } },
	{ "INSERT INTO t VALUES (1)", { NULL, WHERE, NULL } },
	{ "DELETE FROM t WHERE CURRENT OF c", { NULL, "a", NULL } },
	{ "DELETE FROM t WHERE CURRENT OF c", { FROM, NULL, NULL } },
	/* fragments that are not what they say */
	{ "DELETE FROM t", { "a, b", NULL, NULL } },
	{ "DELETE FROM t", { "a WHERE b", NULL, NULL } },
	{ "DELETE FROM t", { "a; DROP TABLE t", NULL, NULL } },
	{ "DELETE FROM t", { "", NULL, NULL } },
	{ "DELETE FROM t", { NULL, "", NULL } },
	{ "DELETE FROM t", { NULL, "a) OR (b", NULL } },
	{ "DELETE FROM t", { NULL, "a GROUP BY b", NULL } },
	{ "DELETE FROM t", { NULL, "a UNION SELECT 1", NULL } },
	{ "DELETE FROM t", { NULL, "a FOR UPDATE", NULL } },
	{ "DELETE FROM t", { NULL, "a, b", NULL } },
	{ "DELETE FROM t", { NULL, "CURRENT OF c", NULL } },
	{ "DELETE FROM t", { NULL, NULL, "" } },
	{ "DELETE FROM t", { NULL, NULL, "a FROM b" } },
	{ "DELETE FROM t", { NULL, NULL, "a INTO b" } },
	{ "DELETE FROM t", { NULL, NULL, "a; SELECT 1" } },
	{ "DELETE FROM t", { NULL, NULL, "DISTINCT a" } },
	{ "DELETE FROM t", { NULL, NULL, "a LIMIT 1" } },
	{ "DELETE FROM t WHERE a RETURNING b", { NULL, "b /*", NULL } },
	/* text that would swallow what follows: the proof finds it */
	{ "DELETE FROM t WHERE a", { NULL, "b --", NULL } },
	{ "DELETE FROM t WHERE a", { "u --", "b", NULL } },
};
#define SWALLOWING 2 /* the last of them */
/* clang-format on */

static void
splices(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rewrite_result r = { 0 };
		struct err e = ERR_INIT;

		if (rewrite(cases[i].sql, &cases[i].edit, &r, &e) == -1)
			fail_msg("%s: %s", cases[i].sql, e.text);
		assert_string_equal(r.sql, cases[i].rewritten);
		rewrite_result_release(&r);
	}
}

static void
refuses(void **state UNUSED)
{
	const size_t n = sizeof(refused) / sizeof(refused[0]);

	for (size_t i = 0; i < n; i++) {
		struct rewrite_result r = { 0 };
		struct err e = ERR_INIT;

		if (rewrite(refused[i].sql, &refused[i].edit, &r, &e) == 0)
			fail_msg("case %zu: %s", i, r.sql);
		if (e.code != (i < n - SWALLOWING ? ERR_INPUT : ERR_UNFIT))
			fail_msg("case %zu: %s", i, e.text);
		assert_null(r.sql);
	}
}

/* The agent's bytes, in order, are what is left when the inserts are taken
 * out; and every byte maps back to its own. */
static void
positions_map_back(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rewrite_result r = { 0 };
		struct err e = ERR_INIT;
		long expected = 0, at, len = (long)strlen(cases[i].sql);

		assert_int_equal(rewrite(cases[i].sql, &cases[i].edit, &r, &e),
		    0);
		for (long p = 0; r.sql[p] != '\0'; p++) {
			at = rewrite_map_back(r.inserts, r.ninserts, p);
			if (at == -1)
				continue;
			assert_int_equal(at, expected++);
			assert_int_equal(r.sql[p], cases[i].sql[at]);
		}
		assert_int_equal(expected, len);
		rewrite_result_release(&r);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splices),
		cmocka_unit_test(refuses),
		cmocka_unit_test(positions_map_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
