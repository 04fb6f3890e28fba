/* parse: what is printed is what is packed, and no two trees are one */
#include "sql/parse.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sql/tree.h"
#include "sql/unprint.h"

static struct parse
parsed(const char *sql)
{
	struct err e = ERR_INIT;
	struct parse p;
	long position;

	if (parse_text(sql, strlen(sql), &p, &position, &e) == -1)
		fail_msg("%s: %s", sql, e.text);
	return p;
}

/* whole: it is had from what is printed, and not packed. */
static const struct {
	const char *sql;
	bool whole;
} texts[] = {
	{ "", true },
	{ ";;", true },
	{ "SELECT 1; SELECT 2", true },
	{ "SELECT 'a\"b\\c\x01\x1f\x7f\n\t\r\b\f</>\xc3\xa9', E'\\x41', ''",
	    true },
	{ "SELECT \"\"\"<a>\\\" FROM \"\xe6\xbc\xa2\"", true },
	{ "SELECT 0, 1, 2147483647, 2147483648, 1.5, 1e400, true, false, NULL",
	    true },
	{ "SELECT B'01', X'ff', U&'d\\0061t\\+000061', $$a$$, N'x'", true },
	{ "SELECT -1, - 2, -\n3, -4::int, -5 + 6, a -7, -0, -0.5", true },
	{ "SELECT -2147483647, -2147483648, -2147483649", true },
	{ "UPDATE t SET a = -1 WHERE b = -00012 AND c IN (-3, -4)", true },
	{ "SELECT -(1)", false },
	{ "SELECT - -1, -(-2)", true },
	{ "SELECT -(-0)", false },
	{ "SELECT -/* a */1", false },
	{ "FETCH BACKWARD 7 FROM c", true },
	{ "FETCH c; MOVE ALL IN c; FETCH RELATIVE -2 c", true },
	{ "SELECT a::text[], $1::int[][3][ ], b[1:2], ARRAY[1], c::int ARRAY",
	    true },
	{ "SELECT a[1]::int[], b[0]", false },
	{ "SELECT a::int[0]", false },
	{ "CREATE AGGREGATE a (int[]) (sfunc = f, stype = int[], x = -1)",
	    false },
	{ "SELECT a::int[ 0 ], b::int[]", false },
	{ "SELECT a::int ARRAY[\n00]", false },
	{ "SELECT a::int[/* b */0]", false },
	{ "SET a TO -1", true },
	{ "SET a TO -1.5, b", true },
	{ "CREATE SEQUENCE s INCREMENT -1", false },
	{ "CREATE SEQUENCE s INCREMENT 1", true },
	{ "CREATE AGGREGATE a (int) (sfunc = f, stype = int)", false },
	{ "ALTER TABLE t ALTER a SET STATISTICS -1", false },
	{ "CREATE FOREIGN TABLE t (a int) SERVER s", true },
	{ "SELECT DISTINCT a FROM f(1), ROWS FROM (g(2) AS (b int)) WITH "
	  "ORDINALITY",
	    true },
	{ "GRANT SELECT (a), UPDATE ON t TO PUBLIC, CURRENT_USER", true },
	{ "CREATE TABLE t (a int PRIMARY KEY REFERENCES u MATCH FULL ON DELETE "
	  "CASCADE, b text GENERATED ALWAYS AS IDENTITY) PARTITION BY LIST (a)",
	    true },
	{ "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED AND -1 < 0 THEN "
	  "UPDATE SET b = 1 WHEN NOT MATCHED THEN INSERT VALUES (0)",
	    true },
	{ "SELECT x FROM t WHERE a IS NOT NULL AND b BETWEEN -1 AND 1 OR NOT c "
	  "ORDER BY 1 USING > LIMIT ALL FOR NO KEY UPDATE OF t SKIP LOCKED",
	    true },
	{ "CREATE TRIGGER g BEFORE UPDATE OF a ON t FOR EACH ROW EXECUTE "
	  "FUNCTION f('x')",
	    true },
	{ "COPY t (a) FROM STDIN WITH (FORMAT csv, HEADER)", true },
	{ "SELECT count(*) FILTER (WHERE a) OVER (PARTITION BY b ROWS BETWEEN "
	  "1 PRECEDING AND UNBOUNDED FOLLOWING) FROM t GROUP BY CUBE (a, b)",
	    true },
};

static void
printed_is_packed(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct parse p = parsed(texts[i].sql);
		PgQueryProtobufParseResult r =
		    pg_query_parse_protobuf(texts[i].sql);
		size_t n = pg_query__parse_result__get_packed_size(p.tree);
		uint8_t *packed = mem_array(n + 1, 1);

		pg_query__parse_result__pack(p.tree, packed);
		if (n != r.parse_tree.len ||
		    memcmp(packed, r.parse_tree.data, n) != 0)
			fail_msg("%s", texts[i].sql);
		free(packed);
		pg_query_free_protobuf_parse_result(r);
		parse_release(&p);
	}
}

/* The quick way, and not the other, is what most statements go. */
static void
most_are_read_as_printed(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct err e = ERR_INIT;
		struct parse p = { 0 };
		bool whole;

		p.sql = mem_strdup(texts[i].sql);
		p.len = strlen(p.sql);
		p.printed = pg_query_parse(p.sql);
		assert_int_equal(unprint(&p, &whole, &e), 0);
		/* What is printed wrong is right in later versions. */
		if (!whole && texts[i].whole)
			fail_msg("%s", texts[i].sql);
		if (whole && !texts[i].whole && PG_VERSION_NUM < 160000)
			fail_msg("%s", texts[i].sql);
		parse_release(&p);
	}
}

static void
what_is_not_a_tree_is_not_whole(void **state UNUSED)
{
	static const char *const cases[] = {
		"",
		"{",
		"[]",
		"{}x",
		"{\"version\"}",
		"{\"version\":}",
		"{\"version\":1",
		"{\"version\":\"1\"}",
		"{\"version\":99999999999}",
		"{\"version\":1,}",
		"{\"stmts\":{}}",
		"{\"stmts\":[}",
		"{\"stmts\":[null]}",
		"{\"stmts\":[{},]}",
		"{\"more\":1}",
		"{\"stmts\":[{\"stmt\":{\"NoSuchStmt\":{}}}]}",
		"{\"stmts\":[{\"stmt\":{\"SelectStmt\":{\"op\":\"NEW\"}}}]}",
		"{\"stmts\":[{\"stmt\":{\"SelectStmt\":{\"all\":1}}}]}",
		"{\"stmts\":[{\"stmt\":{\"String\":{\"sval\":\"\\u0000\"}}}]}",
		"{\"stmts\":[{\"stmt\":{\"String\":{\"sval\":\"\\u00e9\"}}}]}",
		"{\"stmts\":[{\"stmt\":{\"String\":{\"sval\":\"\\q\"}}}]}",
		"{\"stmts\":[{\"stmt\":{\"String\":{\"sval\":\"\\",
		"{\"stmts\":[{\"stmt\":{\"Integer\":{}}}]}",
		"{\"stmts\":[{\"stmt\":{\"A_Const\":{\"ival\":{},\"location\":"
		"-1}}}]}",
		"{\"stmts\":[{\"stmt\":{\"A_Const\":{\"ival\":{},\"location\":"
		"9}}}]}",
	};
	struct err e = ERR_INIT;
	bool whole;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct parse p = { 0 };

		p.sql = mem_strdup("SELECT 1");
		p.len = strlen(p.sql);
		p.printed.parse_tree = mem_strdup(cases[i]);
		assert_int_equal(unprint(&p, &whole, &e), 0);
		if (whole)
			fail_msg("%s", cases[i]);
		parse_release(&p);
	}
}

/* One difference each, of every kind of field there is. */
static const char *const differ[][2] = {
	{ "SELECT 1", "SELECT 2" },
	{ "SELECT -1", "SELECT -2" },
	{ "SELECT -1", "SELECT 0" },
	{ "SELECT 1", "SELECT '1'" },
	{ "SELECT 1", "SELECT 1.0" },
	{ "SELECT true", "SELECT false" },
	{ "SELECT NULL", "SELECT ''" },
	{ "SELECT 'a'", "SELECT 'b'" },
	{ "SELECT a", "SELECT \"A\"" },
	{ "SELECT a", "SELECT a, a" },
	{ "SELECT a, b", "SELECT b, a" },
	{ "SELECT a WHERE b AND c", "SELECT a WHERE b OR c" },
	{ "SELECT a WHERE b", "SELECT a" },
	{ "SELECT $1", "SELECT $2" },
	{ "UPDATE t SET a = 1", "UPDATE ONLY t SET a = 1" },
	{ "DELETE FROM t", "DELETE FROM s.t" },
	{ "DELETE FROM t WHERE a = 1", "DELETE FROM t WHERE a <> 1" },
	{ "SELECT a UNION SELECT b", "SELECT a UNION ALL SELECT b" },
	{ "FETCH 1 c", "FETCH 2 c" },
	{ "SELECT 1", "SELECT 1; SELECT 1" },
	{ "INSERT INTO t VALUES (1)", "DELETE FROM t" },
};

static void
different_trees_differ(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(differ) / sizeof(differ[0]); i++) {
		struct parse a = parsed(differ[i][0]);
		struct parse b = parsed(differ[i][1]);

		if (tree_equal(&a.tree->base, &b.tree->base) ||
		    tree_equal(&b.tree->base, &a.tree->base))
			fail_msg("%s", differ[i][0]);
		assert_true(tree_equal(&a.tree->base, &a.tree->base));
		parse_release(&a);
		parse_release(&b);
	}
}

static void
places_do_not_matter(void **state UNUSED)
{
	struct parse a = parsed("SELECT f(a), -1 FROM t WHERE b IN (1, 2)");
	struct parse b = parsed("\n SELECT  f (a) , - 1  FROM  t\n WHERE b IN "
				"(1,2)  ;");

	assert_true(tree_equal(&a.tree->base, &b.tree->base));
	/* What is unknown is like nothing. */
	a.tree->base.n_unknown_fields = 1;
	assert_false(tree_equal(&a.tree->base, &b.tree->base));
	assert_false(tree_equal(&b.tree->base, &a.tree->base));
	parse_release(&a);
	parse_release(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printed_is_packed),
		cmocka_unit_test(most_are_read_as_printed),
		cmocka_unit_test(what_is_not_a_tree_is_not_whole),
		cmocka_unit_test(different_trees_differ),
		cmocka_unit_test(places_do_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
