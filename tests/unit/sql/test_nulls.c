/* nulls: which columns, never NULL, make a condition hold for every row */
#include "sql/nulls.h"

#include <string.h>

#include "../facts_of.h"
#include "base/text.h"
#include "sql/parse.h"

/* The condition of an UPDATE of "t AS x"; columns that do it alone, and all
 * that do it together. */
static const struct {
	const char *where, *any, *all;
} cases[] = {
	{ "id IS NOT NULL", "id", "id" },
	{ "x.id IS NOT NULL", "id", "id" },
	{ "x.\"Id\" IS NOT NULL", "Id", "Id" },
	{ "NOT id IS NULL", "id", "id" },
	{ "(id IS NULL) = false", "id", "id" },
	{ "id::text IS NOT NULL", "id", "id" },
	{ "id IS DISTINCT FROM NULL", "id", "id" },
	{ "NULL IS DISTINCT FROM id", "id", "id" },
	{ "NOT (id IS NOT DISTINCT FROM NULL)", "id", "id" },
	{ "id IS NOT NULL AND a IS NOT NULL", "", "id,a" },
	{ "id IS NOT NULL OR a IS NOT NULL", "id,a", "id,a" },
	{ "id IS NOT NULL OR a = 1", "id", "id" },
	{ "id IS NOT NULL AND 1 = 1", "id", "id" },
	{ "id IS NOT NULL AND (a IS NOT NULL OR true)", "id", "id,a" },
	{ "CASE WHEN id IS NULL THEN false ELSE true END", "id", "id" },
	/* what chooses */
	{ "id IS NULL", "", "" },
	{ "id IS NOT DISTINCT FROM NULL", "", "" },
	{ "id IS NOT NULL AND a = 1", "", "" },
	{ "id IS NULL OR a = 1", "", "" },
	{ "id IS NOT NULL AND a IS NULL", "", "" },
	/* what is not the target's, or not a column */
	{ "t.id IS NOT NULL", "", "" },
	{ "s.id IS NOT NULL", "", "" },
	{ "f(id) IS NOT NULL", "", "" },
	{ "x.* IS NOT NULL", "", "" },
	{ "(SELECT 1 WHERE id IS NOT NULL) = 1", "", "" },
	{ "$1 IS NOT NULL", "", "" },
	/* true by its form alone */
	{ "true OR id IS NOT NULL", "", "" },
};

static void
knows_the_columns(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text sql = { 0 };
		struct err e = ERR_INIT;
		struct facts f;
		struct parse p;
		long position;

		text_addf(&sql, "UPDATE t AS x SET a = 1 WHERE %s",
		    cases[i].where);
		if (parse_text(sql.s, sql.len, &p, &position, &e) == -1 ||
		    facts_read(&p, &f, &e) == -1)
			fail_msg("%s: %s", sql.s, e.text);
		same_texts(&f.not_null_any, cases[i].any, cases[i].where);
		same_texts(&f.not_null_all, cases[i].all, cases[i].where);
		assert_int_equal(f.where_vacuous,
		    strncmp(cases[i].where, "true", 4) == 0);
		facts_release(&f);
		parse_release(&p);
		text_release(&sql);
	}
}

/* More tests than are looked at: nothing is told, and nothing is lost. */
static void
is_bounded(void **state UNUSED)
{
	struct text sql = { 0 };
	struct err e = ERR_INIT;
	struct facts f;
	struct parse p;
	long position;

	text_add(&sql, "DELETE FROM t WHERE true = true");
	for (int i = 0; i < 33; i++)
		text_addf(&sql, " AND c%d IS NOT NULL", i);
	assert_int_equal(parse_text(sql.s, sql.len, &p, &position, &e), 0);
	assert_int_equal(facts_read(&p, &f, &e), 0);
	assert_int_equal(f.not_null_all.n, 0);
	facts_release(&f);
	parse_release(&p);
	text_release(&sql);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_the_columns),
		cmocka_unit_test(is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
