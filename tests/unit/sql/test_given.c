/* test_given: which columns get data, and which but the clock's time or such */
#include "sql/given.h"

#include <string.h>

#include "../facts_of.h"

static const struct {
	const char *sql, *given, *made;
} cases[] = {
	/* what the text tells */
	{ "INSERT INTO t DEFAULT VALUES", "", "" },
	{ "INSERT INTO t(a, b) VALUES (1, $1), (DEFAULT, 'x'::date)", "", "" },
	{ "INSERT INTO t VALUES (1 + 2, -1, lower('A') || $1)", "", "" },
	{ "UPDATE t SET a = 1, b = DEFAULT WHERE c = d", "", "" },
	{ "DELETE FROM t WHERE a = now()", "", "" },
	/* the clock, sequences, chance */
	{ "INSERT INTO t(a, b) VALUES (now(), 1)", "", "=a" },
	{ "INSERT INTO t(a) VALUES ('x'), (now())", "", "=a" },
	{ "INSERT INTO t VALUES (1, nextval('s'), random() * 100)", "",
	    "#2,#3" },
	{ "INSERT INTO t(a, b) SELECT gen_random_uuid(), 1 FROM s", "", "=a" },
	{ "UPDATE t SET a = CURRENT_TIMESTAMP, b = LOCALTIME(0)", "", "=a,=b" },
	{ "UPDATE t SET a = now() + interval '1 day'", "", "=a" },
	{ "UPDATE t SET a = (now() AT TIME ZONE 'UTC')::date", "", "=a" },
	{ "UPDATE t SET a = md5(random()::text)", "", "=a" },
	{ "UPDATE t SET a = pg_catalog.now()", "", "=a" },
	{ "UPDATE t SET a = extract(epoch FROM now())", "", "=a" },
	{ "UPDATE t SET (a, b) = (now(), 1)", "", "=a" },
	{ "UPDATE t SET (a, b) = ROW (1, now())", "", "=b" },
	/* data */
	{ "INSERT INTO t(a, b) SELECT x, now() FROM s", "=a", "=b" },
	{ "INSERT INTO t SELECT now(), x FROM s", "#2", "#1" },
	{ "INSERT INTO t(a) VALUES ((SELECT x FROM s))", "=a", "" },
	{ "INSERT INTO t(a) VALUES (1), ((SELECT x FROM s))", "=a", "" },
	{ "INSERT INTO t(a, b) SELECT * FROM s", "=a,=b", "" },
	{ "INSERT INTO t SELECT * FROM s", "*", "" },
	{ "INSERT INTO t SELECT s.* FROM s", "*", "" },
	{ "INSERT INTO t SELECT (f(s)).* FROM s", "*", "" },
	{ "INSERT INTO t TABLE s", "*", "" },
	{ "INSERT INTO t(a) SELECT now() UNION SELECT x FROM s", "=a", "" },
	{ "INSERT INTO t SELECT now() UNION SELECT x FROM s", "*", "" },
	{ "INSERT INTO t(a[1]) VALUES (now()::text)", "=a", "" },
	{ "UPDATE t SET a = b", "=a", "" },
	{ "UPDATE t SET a = now() + b", "=a", "" },
	{ "UPDATE t SET a = f(1)", "=a", "" },
	{ "UPDATE t SET a = public.now()", "=a", "" },
	{ "UPDATE t SET a = x.y.now()", "=a", "" },
	{ "UPDATE t SET a = CURRENT_USER", "=a", "" },
	{ "UPDATE t SET a = 1 OPERATOR(public.+) 2", "=a", "" },
	{ "UPDATE t SET a = 1 <-> 2", "=a", "" },
	{ "UPDATE t SET a = coalesce(b, now())", "=a", "" },
	{ "UPDATE t SET a = CASE WHEN b THEN now() END", "=a", "" },
	{ "UPDATE t SET a = (SELECT now())", "=a", "" },
	{ "UPDATE t SET (a, b) = (SELECT 1, now())", "=a,=b", "" },
	{ "UPDATE t SET a.x = now()", "=a", "" },
	{ "UPDATE t SET a = random() OVER ()", "=a", "" },
	{ "UPDATE t SET a = now(VARIADIC b)", "=a", "" },
	{ "UPDATE t SET a = nextval(b)", "=a", "" },
	/* both, in two places */
	{ "INSERT INTO t(a) VALUES (now()), ((SELECT x FROM s))", "=a", "=a" },
	/* ON CONFLICT */
	{ "INSERT INTO t(a, b) VALUES (1, now()) ON CONFLICT (a) DO UPDATE SET b "
	  "= excluded.b",
	    "", "=b" },
	{ "INSERT INTO t(a, b) SELECT x, 1 FROM s ON CONFLICT (a) DO UPDATE SET "
	  "b = excluded.a, c = now()",
	    "=a,=b", "=c" },
	{ "INSERT INTO t(a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = t.b + 1",
	    "=b", "" },
	{ "INSERT INTO t(a) VALUES (excluded.a)", "=a", "" },
	{ "UPDATE t SET a = excluded.a FROM excluded", "=a", "" },
	/* MERGE */
	{ "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = "
	  "now(), c = s.c WHEN NOT MATCHED THEN INSERT (a, d) VALUES (s.a, "
	  "now())",
	    "=c,=a", "=b,=d" },
	{ "MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED THEN INSERT VALUES "
	  "(1, now(), s.b) WHEN MATCHED THEN DELETE",
	    "#3", "#2" },
	{ "MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED THEN INSERT "
	  "DEFAULT VALUES",
	    "", "" },
	/* WITH */
	{ "WITH w AS (UPDATE u SET a = now() RETURNING *) UPDATE t SET b = b + 1",
	    "=b", "=a" },
	{ "WITH w AS (INSERT INTO u VALUES (1, 2)) INSERT INTO t VALUES (now())",
	    "", "#1" },
	{ "WITH w AS (INSERT INTO u VALUES (now())) DELETE FROM t", "*", "" },
	{ "WITH w AS (INSERT INTO u(a) SELECT b FROM s RETURNING a) SELECT * "
	  "FROM w",
	    "=a", "" },
	{ "WITH w AS (SELECT now()) SELECT * FROM w", "", "" },
};

static void
knows_what_goes_where(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct facts f = facts_of(cases[i].sql);

		same_texts(&f.given, cases[i].given, cases[i].sql);
		same_texts(&f.made, cases[i].made, cases[i].sql);
		facts_release(&f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_what_goes_where),
	};

	return cmocka_run_group_tests_name("given", tests, NULL, NULL);
}
