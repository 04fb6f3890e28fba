/* test_grants: the SQL that gives the three logins their least privileges */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "rule/grants.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static void
each_table_is_named_as_the_catalog_has_it(void **state UNUSED)
{
	static const struct {
		const char *table, *has;
	} cases[] = {
		{ "orders",
		    "GRANT SELECT ON \"public\".\"orders\" TO airlock_reader;" },
		{ "shop.orders", "GRANT SELECT, INSERT, UPDATE, DELETE ON "
				 "\"shop\".\"orders\" TO airlock_writer;" },
		{ "shop.orders", "'\"shop\".\"orders\"'::regclass" },
		{ "O'Hara.a\"b", "'\"O''Hara\".\"a\"\"b\"'::regclass" },
		{ "O'Hara.a\"b",
		    "GRANT USAGE ON SCHEMA \"O'Hara\" TO airlock_writer" },
		{ "shop.*", "GRANT SELECT ON ALL TABLES IN SCHEMA \"shop\" TO "
			    "airlock_reader;" },
		{ "shop.*",
		    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA \"shop\" "
		    "TO airlock_writer;" },
	};

	for (size_t i = 0; i < N(cases); i++) {
		struct text t = { 0 };
		struct err e = ERR_INIT;

		assert_int_equal(grants_add_table(&t, cases[i].table, &e), 0);
		if (strstr(text_str(&t), cases[i].has) == NULL)
			fail_msg("no %s in %s", cases[i].has, text_str(&t));
		text_release(&t);
	}
}

static void
what_is_no_table_is_refused(void **state UNUSED)
{
	static const char *const bad[] = { "", ".", "a.", ".a", "a.b.c",
		"a.$do$", "\xff.a" };

	for (size_t i = 0; i < N(bad); i++) {
		struct text t = { 0 };
		struct err e = ERR_INIT;

		assert_int_equal(grants_add_table(&t, bad[i], &e), -1);
		assert_int_equal(e.code, ERR_INPUT);
		text_release(&t);
	}
}

/* Nobody is made a superuser, an owner or a maker of roles, and the reader and
 * the observer write nothing. */
static void
nothing_more_is_granted(void **state UNUSED)
{
	static const char *const never[] = { "SUPERUSER", "CREATEROLE",
		"OWNER TO", "ALL PRIVILEGES", "TRUNCATE", "WITH GRANT OPTION",
		"pg_write_all_data" };
	static char t1[] = "a", t2[] = "s.*";
	static char *const tables[] = { t1, t2 };
	struct text t = { 0 };
	struct err e = ERR_INIT;
	size_t logins;

	grants_add_logins(&t);
	logins = t.len;
	grants_add_everything(&t);
	assert_int_equal(grants_add(&t, N(tables), tables, &e), 0);
	assert_int_equal(grants_add(&t, 0, NULL, &e), 0);
	assert_non_null(strstr(text_str(&t) + logins, "SCHEMA \"public\""));
	for (size_t i = 0; i < N(never); i++)
		assert_null(strstr(text_str(&t), never[i]));
	for (const char *p = t.s; (p = strstr(p, "INSERT")) != NULL; p++) {
		const char *to = strstr(p, "TO airlock_");

		assert_non_null(to);
		assert_memory_equal(to, "TO airlock_writer", 17);
	}
	text_release(&t);
}

/* Who may ask for the visibility map of a table sees where its rows change. */
static void
one_function_is_granted_to_the_observer_alone(void **state UNUSED)
{
	const char *execute;
	struct text t = { 0 };

	grants_add_logins(&t);
	execute = strstr(text_str(&t), "GRANT EXECUTE ON FUNCTION %s TO "
				       "airlock_observer'");
	assert_non_null(execute);
	assert_null(strstr(execute + 1, "GRANT EXECUTE"));
	text_release(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_table_is_named_as_the_catalog_has_it),
		cmocka_unit_test(what_is_no_table_is_refused),
		cmocka_unit_test(nothing_more_is_granted),
		cmocka_unit_test(one_function_is_granted_to_the_observer_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
