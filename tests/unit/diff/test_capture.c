/* test_capture: which statements give their rows, and what is spliced in */
#include "diff/capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../facts_of.h"
#include "sql/parse.h"

static char id[] = "id", quoted_id[] = "id", a[] = "a\"b",
	    quoted_a[] = "\"a\"\"b\"", type[] = "integer", name[] = "public.t";
static struct column columns[] = {
	{ id, quoted_id, type, true, false, true, false },
	{ a, quoted_a, type, false, false, false, false },
};

static struct relation
plain(void)
{
	return (struct relation){ .oid = 5,
		.name = name,
		.table = name,
		.kind = 'r',
		.persistence = 'p',
		.heap = true,
		.readable = true,
		.has_primary_key = true,
		.ncolumns = 2,
		.columns = columns };
}

static enum capture_path
path_of(const char *sql, const struct relation *r)
{
	struct facts f = facts_of(sql);
	struct capture c;
	enum capture_path path;

	capture_plan(&c, sql, &f, r);
	path = c.path;
	assert_int_equal(path == CAPTURE_PLAIN, c.why != NULL);
	capture_release(&c);
	facts_release(&f);
	return path;
}

static const char upsert[] =
    "INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET ab = 1";

static void
plain_statements_give_their_rows(void **state UNUSED)
{
	struct relation r = plain();
	static const char *const yes[] = { "INSERT INTO t VALUES (1)",
		"UPDATE t SET x = 1", "DELETE FROM t",
		"INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
		"WITH c AS (SELECT 1) DELETE FROM t USING c" };

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		assert_int_equal(path_of(yes[i], &r), CAPTURE_RETURNING);
	assert_int_equal(path_of(upsert, &r), CAPTURE_CONFLICT);
	r.kind = 'p';
	r.subclass = true;
	assert_int_equal(path_of("UPDATE t SET x = 1", &r), CAPTURE_RETURNING);
}

/* Each alone is an obstacle. */
static void
obstacles(void **state UNUSED)
{
	static const char update[] = "UPDATE t SET x = 1";
	struct relation r;

	assert_int_equal(path_of(update, NULL), CAPTURE_PLAIN);
#define OBSTACLE(field, value)                                                 \
	r = plain();                                                           \
	assert_int_equal(path_of(update, &r), CAPTURE_RETURNING);              \
	r.field = value;                                                       \
	assert_int_equal(path_of(update, &r), CAPTURE_PLAIN)
	OBSTACLE(kind, 'v');
	OBSTACLE(kind, 'f');
	OBSTACLE(heap, false);
	OBSTACLE(persistence, 't');
	OBSTACLE(rules, true);
	OBSTACLE(row_security, true);
	OBSTACLE(subclass, true);
	OBSTACLE(readable, false);
	OBSTACLE(ncolumns, 799);
	r = plain();
	assert_int_equal(
	    path_of("WITH u AS (DELETE FROM t RETURNING 1) SELECT 1 FROM u",
		&r),
	    CAPTURE_PLAIN);
	assert_int_equal(path_of("WITH u AS (DELETE FROM s) UPDATE t SET x = 1",
			     &r),
	    CAPTURE_PLAIN);
	r.has_primary_key = false;
	assert_int_equal(path_of(upsert, &r), CAPTURE_PLAIN);
	r = plain();
	r.before_update_trigger = true;
	assert_int_equal(path_of(upsert, &r), CAPTURE_PLAIN);
	r = plain();
	assert_int_equal(path_of("INSERT INTO t VALUES (1) ON CONFLICT (id) "
				 "DO UPDATE SET id = 2",
			     &r),
	    CAPTURE_PLAIN);
}

/* What the fragments make of the statement, by the splicer's own proof. */
static void
fragments_are_proved(void **state UNUSED)
{
	static const char *const sqls[] = {
		"UPDATE ONLY t AS \"o d\" SET x = 1 WHERE a OR b RETURNING *",
		"DELETE FROM t USING s WHERE s.i = t.i;",
		"INSERT INTO public.t SELECT 1 -- end",
	};
	struct relation r = plain();

	for (size_t i = 0; i < sizeof(sqls) / sizeof(sqls[0]); i++) {
		struct facts f = facts_of(sqls[i]);
		struct capture c, d;
		struct rewrite_result out = { 0 };
		struct err e = ERR_INIT;

		capture_plan(&d, sqls[i], &f, &r);
		capture_plan(&c, sqls[i], &f, &r);
		assert_string_equal(c.nonce, d.nonce);
		capture_release(&d);
		capture_plan(&d, sqls[(i + 1) % 3], &f, &r);
		assert_string_not_equal(c.nonce, d.nonce);
		if (rewrite(sqls[i], &c.edit, &out, &e) == -1)
			fail_msg("%s: %s", sqls[i], e.text);
		assert_non_null(strstr(out.sql, ".\"a\"\"b\""));
		rewrite_result_release(&out);
		capture_release(&c);
		capture_release(&d);
		facts_release(&f);
	}
}

static void
arrays_for_the_observer(void **state UNUSED)
{
	struct relation r = plain();
	char *sql = capture_lookup_sql(&r);

	assert_string_equal(sql,
	    "SELECT airlock_s.tableoid, airlock_s.ctid, airlock_s.id, "
	    "airlock_s.\"a\"\"b\" FROM ONLY public.t AS airlock_s JOIN ROWS "
	    "FROM (pg_catalog.unnest($1::pg_catalog.text[])) AS "
	    "airlock_k(k1) ON airlock_s.id = airlock_k.k1::integer");
	free(sql);
	r.kind = 'p'; /* has no rows but its leaves' */
	sql = capture_lookup_sql(&r);
	assert_non_null(strstr(sql, " FROM public.t AS "));
	free(sql);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_statements_give_their_rows),
		cmocka_unit_test(obstacles),
		cmocka_unit_test(fragments_are_proved),
		cmocka_unit_test(arrays_for_the_observer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
