/* known: what is remembered is given back as it was, within bounds */
#include "core/known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../facts_of.h"
#include "base/mem.h"
#include "sql/parse.h"

static void
add(struct known *k, const char *sql, const struct facts *f, size_t size)
{
	struct text key = { 0 };

	known_key(&key, sql, NULL);
	known_add(k, &key, f, NULL, size);
	assert_null(key.s);
}

static bool
is_known(struct known *k, const char *sql, struct facts *f)
{
	struct rewrite_result r = { 0 };
	struct text key = { 0 };
	bool found;

	known_key(&key, sql, NULL);
	found = known_find(k, &key, f, &r);
	text_release(&key);
	assert_null(r.sql);
	return found;
}

static struct text
packed(const struct facts *f)
{
	struct text t = { 0 };

	assert_true(facts_pack(&t, f));
	return t;
}

/* Every member crosses: the form for the child's answers tells of them all. */
static void
facts_are_copied_whole(void **state UNUSED)
{
	static const char *const sqls[] = {
		"UPDATE a.t AS x SET b = f(1), c = now() FROM s WHERE x.i = $2 "
		"RETURNING *",
		"INSERT INTO t SELECT * FROM u ON CONFLICT (a) DO UPDATE SET d "
		"= 1",
		"WITH w AS (DELETE FROM t RETURNING 1) SELECT w.q::m, a ~~ b "
		"FROM w FOR UPDATE",
		"SELECT 1; SELECT 2",
	};
	struct known *k = known_new(1 << 20);

	for (size_t i = 0; i < sizeof(sqls) / sizeof(sqls[0]); i++) {
		struct facts f = facts_of(sqls[i]), got = { 0 };
		struct text was = packed(&f), is;

		add(k, sqls[i], &f, 100);
		facts_release(&f);
		for (int again = 0; again < 2; again++) {
			assert_true(is_known(k, sqls[i], &got));
			is = packed(&got);
			assert_string_equal(was.s, is.s);
			text_release(&is);
			facts_release(&got);
		}
		text_release(&was);
	}
	assert_false(is_known(k, "SELECT 1; SELECT 3", NULL));
	known_free(k);
}

static void
least_used_goes_first(void **state UNUSED)
{
	struct known *k = known_new(64 << 10);
	struct facts f = facts_of("SELECT 1"), got = { 0 };
	char sql[32];

	for (int i = 0; i < 100; i++) {
		snprintf(sql, sizeof(sql), "SELECT %d", i);
		add(k, sql, &f, 2 << 10);
		assert_true(is_known(k, "SELECT 0", &got));
		facts_release(&got);
	}
	assert_true(is_known(k, "SELECT 99", &got));
	facts_release(&got);
	assert_false(is_known(k, "SELECT 1", &got));
	assert_false(is_known(k, "SELECT 60", &got));
	add(k, "SELECT 'large'", &f, 8 << 10);
	assert_false(is_known(k, "SELECT 'large'", &got));
	assert_true(is_known(k, "SELECT 98", &got));
	facts_release(&got);
	facts_release(&f);
	known_free(k);
}

/* What one asks for is never what another asked. */
static void
keys_differ(void **state UNUSED)
{
	static const struct {
		const char *sql;
		bool edits;
		struct rewrite_edit edit;
	} asks[] = {
		{ "a", false, { NULL, NULL, NULL } },
		{ "a", true, { NULL, NULL, NULL } },
		{ "a", true, { "", NULL, NULL } },
		{ "a", true, { "b", NULL, NULL } },
		{ "a", true, { NULL, "b", NULL } },
		{ "a", true, { NULL, NULL, "b" } },
		{ "a+b", true, { NULL, NULL, NULL } },
		{ "a-", false, { NULL, NULL, NULL } },
	};
	enum { N = sizeof(asks) / sizeof(asks[0]) };
	struct text keys[N] = { 0 };

	for (int i = 0; i < N; i++) {
		known_key(&keys[i], asks[i].sql,
		    asks[i].edits ? &asks[i].edit : NULL);
		for (int j = 0; j < i; j++)
			assert_false(
			    keys[i].len == keys[j].len &&
			    memcmp(keys[i].s, keys[j].s, keys[i].len) == 0);
	}
	for (int i = 0; i < N; i++)
		text_release(&keys[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_are_copied_whole),
		cmocka_unit_test(least_used_goes_first),
		cmocka_unit_test(keys_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
