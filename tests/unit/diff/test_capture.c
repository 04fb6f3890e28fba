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

/* The columns whose old text an UPDATE is to give, as a string of 0 and 1. */
static const char *
asked_of(const char *sql, const struct relation *r)
{
	static char moves[8];
	struct facts f = facts_of(sql);
	struct capture c;

	capture_plan(&c, sql, &f, r);
	for (size_t i = 0; i < r->ncolumns; i++)
		moves[i] = c.moves[i] ? '1' : '0';
	moves[r->ncolumns] = '\0';
	assert_int_equal(strstr(c.from, "tableoid") != NULL, r->kind == 'p');
	capture_release(&c);
	facts_release(&f);
	return moves;
}

#define SIXTY "a23456789012345678901234567890123456789012345678901234567890"
static char set[] = "n", sum[] = "sum", acute[] = "\xc3\x89",
	    whole[] = SIXTY "12", cut[] = SIXTY "123";

static void
what_is_not_set_is_as_it_was(void **state UNUSED)
{
	struct column of[] = { { id, quoted_id, type, true, false, true,
				   false },
		{ set, set, type, false, false, false, false },
		{ sum, sum, type, false, false, false, false },
		{ acute, acute, type, false, false, false, false },
		{ whole, whole, type, false, false, false, false },
		{ cut, cut, type, false, false, false, false } };
	struct relation r = plain();

	r.columns = of;
	r.ncolumns = 6;
	assert_string_equal(asked_of("UPDATE t SET n = 1", &r), "010000");
	assert_string_equal(asked_of("UPDATE t AS x SET (id, n) = (n, id), "
				     "sum[1] = 3, sum[2] = 4",
				&r),
	    "111000");
	assert_string_equal(asked_of("UPDATE t SET n.f = DEFAULT", &r),
	    "010000");
	assert_string_equal(asked_of("UPDATE t SET " SIXTY "12 = 1", &r),
	    "000010");
	/* Which column the server takes these for is not certain. */
	assert_string_equal(asked_of("UPDATE t SET n = 1, gone = 2", &r),
	    "111111");
	assert_string_equal(asked_of("UPDATE t SET n = 1, \xc3\x89 = 2", &r),
	    "111111");
	assert_string_equal(asked_of("UPDATE t SET n = 1, " SIXTY "123 = 2",
				&r),
	    "111111");
	of[2].generated = true;
	assert_string_equal(asked_of("UPDATE t SET n = 1", &r), "011000");
	of[2].generated = false;
	r.before_update_trigger = true;
	assert_string_equal(asked_of("UPDATE t SET n = 1", &r), "111111");
	r.before_update_trigger = false;
	r.kind = 'p';
	assert_string_equal(asked_of("UPDATE t SET n = 1", &r), "111111");
}

/* A row as a server would give it; NULL is SQL NULL. */
static PGresult *
result(const char *const *cells, int n)
{
	PGresult *res = PQmakeEmptyPGresult(NULL, PGRES_SINGLE_TUPLE);
	PGresAttDesc *d = calloc((size_t)n, sizeof(*d));
	char *same = strdup("c");

	assert_non_null(d);
	for (int i = 0; i < n; i++)
		d[i].name = same;
	assert_int_equal(PQsetResultAttrs(res, n, d), 1);
	for (int i = 0; i < n; i++)
		assert_int_equal(PQsetvalue(res, 0, i,
				     (char *)(uintptr_t)cells[i],
				     cells[i] != NULL ? (int)strlen(cells[i])
						      : -1),
		    1);
	free(d);
	free(same);
	return res;
}

static void
assert_value(const struct value *v, const char *want)
{
	if (want == NULL)
		assert_null(v->p);
	else
		assert_string_equal(v->p, want);
	assert_int_equal(v->len, want != NULL ? strlen(want) : 0);
}

static void
both_sides_are_read(void **state UNUSED)
{
	static const struct {
		const char *cells[10];
		int n;
		char kind;
		const char *before[2], *after[2];
	} cases[] = {
		{ { "agent's", "(1,2)", "7", "", "(0,1)", NULL }, 6, 'r',
		    { "7", NULL }, { "7", "" } },
		{ { "agent's", "(1,2)", NULL, NULL, "(0,1)", "x" }, 6, 'r',
		    { NULL, "x" }, { NULL, NULL } },
		{ { "agent's", "9", "(1,2)", "7", "b", "8", "(0,1)", "6", "a" },
		    9, 'p', { "6", "a" }, { "7", "b" } },
	};
	static const char sql[] = "UPDATE t SET \"a\"\"b\" = '' RETURNING 1";

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		PGresult *res = result(cases[i].cells, cases[i].n);
		struct facts f = facts_of(sql);
		struct relation r = plain();
		struct err e = ERR_INIT;
		struct capture c;
		struct image im;
		bool one = cases[i].kind == 'r';

		r.kind = cases[i].kind;
		capture_plan(&c, sql, &f, &r);
		assert_int_equal(capture_lay_out(&c, res, &e), 0);
		assert_int_equal(c.nagent, 1);
		assert_int_equal(capture_image(&c, res, &im, &e), 0);
		assert_int_equal(im.is.leaf, one ? 5 : 9);
		assert_int_equal(im.was.leaf, one ? 5 : 8);
		assert_int_equal(im.is.block, 1);
		assert_int_equal(im.is.item, 2);
		assert_int_equal(im.was.item, 1);
		for (size_t k = 0; k < 2; k++) {
			assert_value(&im.before[k], cases[i].before[k]);
			assert_value(&im.after[k], cases[i].after[k]);
		}
		capture_release(&c);
		facts_release(&f);
		PQclear(res);
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
		cmocka_unit_test(what_is_not_set_is_as_it_was),
		cmocka_unit_test(both_sides_are_read),
		cmocka_unit_test(arrays_for_the_observer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
