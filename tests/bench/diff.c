/* diff: what it costs to hold many rows, beside RETURNING read by raw libpq */
/*
 *	diff CONNINFO STATE_DIR DAEMON_PID ROUNDS [CASE ...]
 *
 * Prints "case rows raw_ms held_ms raw_cpu server_cpu airlockd_cpu kB" a line,
 * medians over the rounds.  The three are processors' time in ms: of the server
 * and the client of raw libpq together, of the server's processes for the held
 * one, and of airlockd.  kB is the most that airlockd's memory has been above
 * what it was idle, so far.
 */
#include <err.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "talk.h"

#define ROUNDS_MAX 99

/* raw: the statement whose rows raw libpq reads; held: the agent's; first: what
 * is done before both. */
static const struct {
	const char *name;
	long rows;
	const char *raw, *held, *first;
} cases[] = {
#define UPDATE(n) "UPDATE big SET n = n + 1 WHERE id <= " n
#define ONE(name, rows, sql) name, rows, sql " RETURNING *", sql, NULL
	{ ONE("update.1", 1, UPDATE("1")) },
	{ ONE("update.1000", 1000, UPDATE("1000")) },
	{ ONE("update.100000", 100000, UPDATE("100000")) },
	{ ONE("update.1000000", 1000000, UPDATE("1000000")) },
	{ ONE("delete.1000000", 1000000, "DELETE FROM big WHERE id > 0") },
	{ ONE("insert.1000000", 1000000,
	    "INSERT INTO other SELECT * FROM big WHERE id > 0") },
	{ "swept.keyless.1000000", 1000000,
	    "UPDATE other SET n = n + 1 WHERE id > 0 RETURNING *",
	    "UPDATE through SET n = n + 1 WHERE id > 0", NULL },
	{ "sweep.of.10000", 1,
	    "UPDATE small SET n = 0 WHERE id = 1 RETURNING *",
	    "UPDATE touch SET n = 1 WHERE n = 10000", NULL },
	{ "sweep.of.1000000", 1,
	    "UPDATE big SET n = 0 WHERE id = 1 RETURNING *",
	    "UPDATE touch SET n = 1 WHERE n = 1000000", NULL },
	/* by the visibility map, which is there from here on */
	{ "mapped.of.1000000", 1,
	    "UPDATE big SET n = 0 WHERE id = 1 RETURNING *",
	    "UPDATE touch SET n = 1 WHERE n = 1000000",
	    "CREATE EXTENSION pg_visibility; "
	    "GRANT pg_stat_scan_tables TO app" },
};

static PGconn *raw;
static struct talk *agent;
static char control[4096];

static void
command(const char *sql)
{
	PGresult *r = PQexec(raw, sql);

	if (PQresultStatus(r) != PGRES_COMMAND_OK)
		errx(1, "%s: %s", sql, PQerrorMessage(raw));
	PQclear(r);
}

/* Of a process, ms; of one that is gone, 0. */
static double
cpu_of(const char *pid)
{
	unsigned long long ns = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/schedstat", pid);
	f = fopen(path, "r");
	if (f != NULL && fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	if (f != NULL)
		fclose(f);
	return (double)ns / 1e6;
}

/* Of all server processes with a client: a session that is new counts from its
 * start, and none ends while it is measured. */
static double
cpu_of_server(void)
{
	PGresult *r = PQexec(raw, "SELECT pid FROM pg_stat_activity "
				  "WHERE backend_type = 'client backend'");
	double ms = 0;

	for (int i = 0; i < PQntuples(r); i++)
		ms += cpu_of(PQgetvalue(r, i, 0));
	PQclear(r);
	return ms;
}

struct figures {
	double ms, server, client; /* processors' time */
};

/* Row by row, so that its memory is as flat as what it is compared with. */
static struct figures
run_raw(const char *sql)
{
	struct figures f = { .server = -cpu_of_server(),
		.client = -cpu_of("self") };
	double from = now_us();
	PGresult *r;

	command("BEGIN ISOLATION LEVEL REPEATABLE READ");
	if (!PQsendQueryParams(raw, sql, 0, NULL, NULL, NULL, NULL, 0) ||
	    !PQsetSingleRowMode(raw))
		errx(1, "%s: %s", sql, PQerrorMessage(raw));
	while ((r = PQgetResult(raw)) != NULL) {
		if (PQresultStatus(r) != PGRES_SINGLE_TUPLE &&
		    PQresultStatus(r) != PGRES_TUPLES_OK)
			errx(1, "%s: %s", sql, PQerrorMessage(raw));
		PQclear(r);
	}
	f.ms = (now_us() - from) / 1000;
	f.client += cpu_of("self");
	f.server += cpu_of_server();
	command("ROLLBACK");
	return f;
}

static long
memory(const char *pid, const char *what)
{
	char path[64], line[256];
	long kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	f = fopen(path, "r");
	while (f != NULL && kb == -1 && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, what, strlen(what)) == 0)
			kb = strtol(line + strlen(what), NULL, 10);
	if (f != NULL)
		fclose(f);
	return kb;
}

static struct figures
run_held(const char *sql, const char *pid)
{
	char *line = agent_line(agent, "db_execute", sql, NULL);
	struct figures f = { .server = -cpu_of_server(),
		.client = -cpu_of(pid) };
	json_t *j, *id;
	double us, end;

	j = agent_call(agent, line, &us);
	f.client += cpu_of(pid);
	f.server += cpu_of_server();
	f.ms = us / 1000;
	id = json_object_get(j, "change_id");
	if (!json_is_true(json_object_get(j, "complete")))
		errx(1, "%s: the diff is not complete", sql);
	/* One that is idle for long is closed. */
	json_decref(operator_ask(operator_connect(control), "rollback",
	    json_pack("{s:O}", "change", id), &end));
	json_decref(j);
	free(line);
	return f;
}

static int
by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double
median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_size);
	return v[n / 2];
}

static void
measure(size_t i, int rounds, const char *pid, long idle)
{
	enum { RAW, HELD, RAW_CPU, SERVER_CPU, AIRLOCKD_CPU, N };
	double v[N][ROUNDS_MAX];

	if (cases[i].first != NULL)
		command(cases[i].first);
	/* What the one has rolled back must not be in the other's way: twice
	 * the pages, and an index of dead rows. */
	for (int k = 0; k < rounds; k++) {
		struct figures f;

		command("VACUUM big, other, small, touch");
		f = run_raw(cases[i].raw);
		v[RAW][k] = f.ms;
		v[RAW_CPU][k] = f.server + f.client;
		command("VACUUM big, other, small, touch");
		f = run_held(cases[i].held, pid);
		v[HELD][k] = f.ms;
		v[SERVER_CPU][k] = f.server;
		v[AIRLOCKD_CPU][k] = f.client;
	}
	printf("%s %ld", cases[i].name, cases[i].rows);
	for (int k = 0; k < N; k++)
		printf(" %.1f", median(v[k], rounds));
	printf(" %ld\n", memory(pid, "VmHWM:") - idle);
	fflush(stdout);
}

static bool
is_wanted(const char *name, char *const *wanted)
{
	if (*wanted == NULL)
		return true;
	while (*wanted != NULL && strcmp(*wanted, name) != 0)
		wanted++;
	return *wanted != NULL;
}

int
main(int argc, char **argv)
{
	char path[4096];
	int rounds;
	long idle;
	double us;
	char *line;

	if (argc < 5)
		errx(2, "CONNINFO STATE_DIR DAEMON_PID ROUNDS [CASE ...]");
	rounds = (int)strtol(argv[4], NULL, 10);
	if (rounds < 1 || rounds > ROUNDS_MAX)
		errx(2, "1 to %d rounds", ROUNDS_MAX);
	raw = PQconnectdb(argv[1]);
	if (PQstatus(raw) != CONNECTION_OK)
		errx(1, "%s", PQerrorMessage(raw));
	snprintf(path, sizeof(path), "%s/run/agent-agent.sock", argv[2]);
	agent = agent_connect(path);
	snprintf(control, sizeof(control), "%s/run/control.sock", argv[2]);
	line = agent_line(agent, "db_query", "SELECT 1", NULL);
	json_decref(agent_call(agent, line, &us));
	free(line);
	idle = memory(argv[3], "VmRSS:");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (is_wanted(cases[i].name, argv + 5))
			measure(i, rounds, argv[3], idle);
	return 0;
}
