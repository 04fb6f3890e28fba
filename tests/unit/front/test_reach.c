/* test_reach: what a statement would run, asked of a real server, and whether
 * it is noticed that the answer holds no more */
#include "pg/reach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "as_postgres.h"
#include "base/mem.h"
#include "core/judge.h"
#include "front/cluster.h"
#include "front/embedded.h"
#include "front/statedir.h"
#include "rule/grants.h"
#include "sql/parse.h"

static char dir[] = "/tmp/airlock-reach-XXXXXX";
static struct statedir state;
static struct embedded *server;
static struct event_base *base;
static struct pool *pool;
static struct reach_list *list;

static const char init_sql[] =
    "CREATE TABLE t(id int PRIMARY KEY, a text);\n"
    "CREATE FUNCTION vol() RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1';\n"
    "CREATE FUNCTION stab() RETURNS int LANGUAGE sql STABLE AS 'SELECT 1';\n"
    "CREATE VIEW v AS SELECT vol() AS x;\n"
    "CREATE VIEW v2 AS SELECT * FROM v;\n"
    "CREATE VIEW fine AS SELECT id FROM t;\n"
    "CREATE VIEW lock AS SELECT pg_try_advisory_lock(1);\n"
    "CREATE TABLE card(id int);\n"
    "CREATE FUNCTION card_text(card) RETURNS text LANGUAGE sql VOLATILE"
    " AS $$ SELECT 'x' $$;\n"
    "CREATE CAST (card AS text) WITH FUNCTION card_text(card);\n"
    "GRANT SELECT ON ALL TABLES IN SCHEMA public TO " GRANTS_READER ";\n";

/* --- asking and waiting --- */

struct told {
	const struct reach *r;
	struct err e;
	bool done;
};

static void
learned(void *arg, const struct reach *r, const struct err *e)
{
	struct told *t = arg;

	t->r = r;
	if (e != NULL)
		t->e = *e;
	t->done = true;
}

static void
verified(void *arg, const struct err *e)
{
	struct told *t = arg;

	t->e = *e;
	t->done = true;
}

static void
wait_for(struct told *t)
{
	while (!t->done)
		event_base_loop(base, EVLOOP_ONCE);
}

static struct facts
facts_of(const char *sql)
{
	struct err e = ERR_INIT;
	struct parse p;
	struct facts f = { 0 };
	long position;

	if (parse_text(sql, strlen(sql), &p, &position, &e) == -1 ||
	    facts_read(&p, &f, &e) == -1)
		fail_msg("%s: %s", sql, e.text);
	parse_release(&p);
	return f;
}

/* The caller's to release. */
static const struct reach *
learn(const char *sql, bool write)
{
	struct facts f = facts_of(sql);
	struct told t = { 0 };

	reach_learn(list, &f, write, learned, &t);
	wait_for(&t);
	facts_release(&f);
	if (t.r == NULL)
		fail_msg("%s: %s", sql, t.e.text);
	return t.r;
}

static enum err_code
verify(const struct reach *r)
{
	struct told t = { 0 };

	reach_verify(list, r, verified, &t);
	wait_for(&t);
	return t.e.code;
}

static void
change(const char *sql)
{
	char *dsn = embedded_dsn(server, CLUSTER_SUPERUSER);
	PGconn *c = PQconnectdb(dsn);
	PGresult *r;

	if (PQstatus(c) != CONNECTION_OK)
		fail_msg("%s", PQerrorMessage(c));
	r = PQexec(c, sql);
	if (PQresultStatus(r) != PGRES_COMMAND_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(c));
	PQclear(r);
	PQfinish(c);
	free(dsn);
}

/* --- the cases --- */

/* A read's function, and what leads to it; NULL where nothing does. */
static const struct {
	const char *sql, *function, *through;
	bool outside, write;
} cases[] = {
	{ "SELECT 1 + 1", NULL, NULL, false, false },
	{ "SELECT id FROM fine", NULL, NULL, false, false },
	{ "SELECT stab(), random(), now()", NULL, NULL, false, false },
	{ "SELECT id FROM t TABLESAMPLE bernoulli (5)", NULL, NULL, false,
	    false },
	{ "SELECT id FROM card", NULL, NULL, false, false },
	{ "SELECT c::text FROM card c", "public.card_text(public.card)",
	    "type public.card", false, false },
	{ "SELECT vol()", "public.vol()", NULL, false, false },
	{ "SELECT vol()", NULL, NULL, false, true },
	{ "SELECT x FROM v2", "public.vol()", "view public.v", false, false },
	{ "SELECT 1 FROM lock", "pg_catalog.pg_try_advisory_lock(bigint)",
	    "view public.lock", true, false },
	{ "SELECT 1 FROM lock", "pg_catalog.pg_try_advisory_lock(bigint)",
	    "view public.lock", true, true },
	{ "SELECT 1 FROM nowhere", NULL, NULL, false, false },
};

static void
same(const char *a, const char *b, const char *sql)
{
	if (a == NULL || b == NULL ? a != b : strcmp(a, b) != 0)
		fail_msg("%s: %s, not %s", sql, a != NULL ? a : "nothing",
		    b != NULL ? b : "nothing");
}

static void
test_found(void **arg UNUSED)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct reach *r = learn(cases[i].sql, cases[i].write);

		same(r->function, cases[i].function, cases[i].sql);
		same(r->through, cases[i].through, cases[i].sql);
		assert_int_equal(r->outside, cases[i].outside);
		reach_release(list, r);
	}
}

/* Only what is let through, for that very question. */
static void
test_remembered(void **arg UNUSED)
{
	struct facts fine = facts_of("SELECT id FROM fine"),
		     bad = facts_of("SELECT vol()");
	const struct reach *r;

	/* What is older than the control link is forgotten when asked for. */
	assert_null(reach_cached(list, &fine, false));
	reach_release(list, learn("SELECT id FROM fine", false));
	reach_release(list, learn("SELECT vol()", false));
	r = reach_cached(list, &fine, false);
	assert_non_null(r);
	assert_null(reach_cached(list, &fine, true));
	assert_null(reach_cached(list, &bad, false));
	reach_drop(list, r);
	assert_null(reach_cached(list, &fine, false));
	facts_release(&fine);
	facts_release(&bad);
}

/* Each is made and unmade: what changes back has changed too. */
static void
test_stale(void **arg UNUSED)
{
	static const struct {
		const char *sql, *change, *back;
	} stale[] = {
		{ "SELECT id FROM fine",
		    "CREATE OR REPLACE VIEW fine AS SELECT vol() AS id",
		    "CREATE OR REPLACE VIEW fine AS SELECT id FROM t" },
		{ "SELECT stab()", "ALTER FUNCTION stab() VOLATILE",
		    "ALTER FUNCTION stab() STABLE" },
		{ "SELECT stab()",
		    "CREATE FUNCTION stab(int) RETURNS int LANGUAGE sql "
		    "VOLATILE AS 'SELECT 1'",
		    "DROP FUNCTION stab(int)" },
		{ "SELECT 1 + 1",
		    "CREATE OPERATOR @@@ (leftarg = int, rightarg = int, "
		    "function = int4pl)",
		    "DROP OPERATOR @@@ (int, int)" },
		{ "SELECT id FROM nowhere", "CREATE TABLE nowhere(id int)",
		    "DROP TABLE nowhere" },
		{ "SELECT id FROM t", "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
		    "ALTER TABLE t DISABLE ROW LEVEL SECURITY" },
	};

	for (size_t i = 0; i < sizeof(stale) / sizeof(stale[0]); i++) {
		const char *changes[] = { stale[i].change, stale[i].back };

		for (int k = 0; k < 2; k++) {
			const struct reach *r = learn(stale[i].sql, false);

			assert_int_equal(verify(r), ERR_NONE);
			change(changes[k]);
			if (verify(r) != ERR_UNFIT)
				fail_msg("%s is not noticed", changes[k]);
			reach_drop(list, r);
		}
	}
}

/* --- the server --- */

static void
changed(void *arg UNUSED, struct pool *p UNUSED, const struct err *e UNUSED)
{
}

static int
set_up(void **arg UNUSED)
{
	char *path = mem_printf("%s/state", dir), *dsn;
	char *init = mem_printf("%s/init.sql", dir);
	FILE *f = fopen(init, "w");
	struct err e = ERR_INIT;
	struct pool_options o = { .search_path = "public",
		.links_max = 1,
		.connect_timeout_ms = 10000,
		.lock_timeout_ms = 2000,
		.statement_timeout_ms = 10000,
		.row_bytes_max = 1 << 20 };

	if (f == NULL || fputs(init_sql, f) == EOF || fclose(f) != 0 ||
	    statedir_open(path, &state, &e) == -1 ||
	    embedded_start(&state, init, &server, &e) == -1) {
		fprintf(stderr, "%s\n", e.text);
		return -1;
	}
	free(path);
	free(init);
	base = event_base_new();
	dsn = embedded_dsn(server, GRANTS_READER);
	o.conninfo = dsn;
	pool = pool_new(base, &o, changed, NULL);
	list = reach_list_new(pool, judge_rules());
	while (!pool_is_up(pool))
		event_base_loop(base, EVLOOP_ONCE);
	free(dsn);
	return 0;
}

static int
tear_down(void **arg UNUSED)
{
	reach_list_free(list);
	pool_free(pool);
	event_base_free(base);
	embedded_stop(server);
	statedir_close(&state);
	return 0;
}

static int
run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_remembered),
		cmocka_unit_test(test_stale),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

int
main(void)
{
	return as_postgres(dir, run);
}
