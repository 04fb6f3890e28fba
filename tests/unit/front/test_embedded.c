/* test_embedded: a private cluster made, left behind, and found again */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "as_postgres.h"
#include "base/mem.h"
#include "front/cluster.h"
#include "front/embedded.h"
#include "front/statedir.h"
#include "rule/grants.h"

static char dir[] = "/tmp/airlock-embedded-XXXXXX";
static struct statedir state;

static char *
file_with(const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", dir, name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	return path;
}

/* The first value, or the SQLSTATE of what went wrong. */
static void
ask(struct embedded *d, const char *login, const char *sql, const char *want)
{
	char *dsn = embedded_dsn(d, login);
	PGconn *c = PQconnectdb(dsn);
	PGresult *r;
	const char *got;

	if (PQstatus(c) != CONNECTION_OK)
		fail_msg("%s", PQerrorMessage(c));
	r = PQexec(c, sql);
	got = PQresultErrorField(r, PG_DIAG_SQLSTATE);
	if (got == NULL)
		got = PQgetvalue(r, 0, 0);
	assert_string_equal(got, want);
	PQclear(r);
	PQfinish(c);
	free(dsn);
}

static struct embedded *
up(const char *init)
{
	struct embedded *d = NULL;
	struct err e = ERR_INIT;

	if (embedded_start(&state, init, &d, &e) != 0)
		fail_msg("%s", e.text);
	return d;
}

/* What fails is no cluster: the next start begins anew. */
static void
test_bad_init(void **state_arg UNUSED)
{
	char *bad = file_with("bad.sql", "CREATE TABLE half (n int);\nBANG;\n");
	struct embedded *d = NULL;
	struct err e = ERR_INIT;

	assert_int_equal(embedded_start(&state, bad, &d, &e), -1);
	assert_non_null(strstr(e.text, "init file '"));
	assert_non_null(strstr(e.text, "exit code 3"));
	free(bad);
}

static void
test_new(void **state_arg UNUSED)
{
	char *init = file_with("init.sql",
	    "CREATE TABLE t (id serial PRIMARY KEY, n int);\n"
	    "INSERT INTO t (n) VALUES (1), (2);\n"
	    "CREATE SCHEMA app;\n"
	    "CREATE TABLE app.u (n int);\n");
	struct embedded *d = up(init);

	ask(d, GRANTS_WRITER, "SELECT to_regclass('half') IS NULL", "t");
	ask(d, GRANTS_WRITER, "INSERT INTO t (n) VALUES (3) RETURNING id", "3");
	ask(d, GRANTS_WRITER, "INSERT INTO app.u VALUES (1) RETURNING n", "1");
	ask(d, GRANTS_WRITER, "CREATE TABLE x ()", "42501");
	ask(d, GRANTS_WRITER, "CREATE TEMP TABLE x ()", "42501");
	ask(d, GRANTS_READER, "SELECT count(*) FROM t", "3");
	ask(d, GRANTS_READER, "DELETE FROM t", "42501");
	ask(d, GRANTS_OBSERVER, "SELECT count(*) FROM app.u", "1");
	ask(d, GRANTS_OBSERVER, "DELETE FROM t", "42501");
	ask(d, GRANTS_WRITER,
	    "SELECT rolsuper FROM pg_roles WHERE rolname = current_user", "f");
	ask(d, CLUSTER_SUPERUSER, "SHOW listen_addresses", "");
	embedded_stop(d);
	/* what it begins with is not run again */
	d = up(init);
	ask(d, GRANTS_READER, "SELECT count(*) FROM t", "3");
	embedded_stop(d);
	free(init);
}

/* A daemon that was killed may leave its server running. */
static void
test_left_running(void **state_arg UNUSED)
{
	struct cluster c;
	struct child server;
	struct err e = ERR_INIT;
	struct embedded *d;
	int status = -1;

	assert_int_equal(cluster_open(&state, &c, &e), 0);
	assert_false(c.is_new);
	assert_int_equal(cluster_serve(&c, &server, &e), 0);
	while (!cluster_is_ready(&c, server.pid))
		assert_int_equal(kill(server.pid, 0), 0);
	d = up(NULL);
	assert_int_equal(child_wait(&server, 0, &status, &e), 0);
	assert_int_equal(status, 0);
	ask(d, GRANTS_READER, "SELECT count(*) FROM t", "3");
	embedded_stop(d);
	cluster_close(&c);
}

/* The pid of a server that was killed may be a stranger's by now. */
static void
test_stranger(void **state_arg UNUSED)
{
	char *path = mem_printf("%s/state/embedded/data/postmaster.pid", dir);
	pid_t stranger = fork();
	struct embedded *d;
	FILE *f;

	if (stranger == 0) {
		/* not to be left behind where a check below fails */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%d\n%s/state/embedded/data\n1\n5432\n\n\n", (int)stranger,
	    dir);
	assert_int_equal(fclose(f), 0);
	d = up(NULL);
	assert_int_equal(waitpid(stranger, NULL, WNOHANG), 0); /* unharmed */
	ask(d, GRANTS_READER, "SELECT count(*) FROM t", "3");
	embedded_stop(d);
	kill(stranger, SIGKILL);
	assert_int_equal(waitpid(stranger, NULL, 0), stranger);
	free(path);
}

static int
set_up(void **state_arg UNUSED)
{
	char *path = mem_printf("%s/state", dir);
	struct err e = ERR_INIT;
	int r = statedir_open(path, &state, &e);

	free(path);
	return r;
}

static int
tear_down(void **state_arg UNUSED)
{
	statedir_close(&state);
	return 0;
}

static int
run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_init),
		cmocka_unit_test(test_new),
		cmocka_unit_test(test_left_running),
		cmocka_unit_test(test_stranger),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

int
main(void)
{
	return as_postgres(dir, run);
}
