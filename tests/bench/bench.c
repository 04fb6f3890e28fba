/* bench: airlockd's latency and memory beside raw libpq, in one run */
/*
 *	bench CONNINFO STATE_DIR AIRLOCK_MCP DAEMON_PID FILE [PART ...]
 *
 * Prints "name n median p99" a line, in microseconds, and "name kB" for memory.
 * Whatever is compared takes turns, round by round, so that a machine that is
 * busy for a while is busy for all of it.  FILE is on the disk of the state
 * directory.  PARTs are those of the table below, all without one.  bench.mjs
 * prepares the database, and makes a table of this.
 */
#include <err.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "talk.h"

#define READ_ROUNDS 40
#define READS 25 /* of each kind, a round */
#define WRITE_ROUNDS 150
#define TABLE_ROUNDS 40
#define BULK_ROUNDS 5
#define HELD 50
#define WARM 5 /* rounds of each part that do not count */
#define BIG_ROWS 1000000

enum series {
	WAKE,
	RAW_ONE,
	SOCKET_ONE,
	BRIDGE_ONE,
	RAW_POINT,
	SOCKET_POINT,
	BRIDGE_POINT,
	RAW_WRITE,
	SYNC,
	HELD_WRITE,
	RAW_TRIGGER,
	HELD_TRIGGER,
	RAW_COMMIT,
	BEACON,
	COMMIT,
	RAW_100,
	HELD_100,
	HELD_100_SMALL,
	RAW_100K,
	HELD_100K,
	NSERIES
};
static const char *const series_name[NSERIES] = {
	"wake",
	"raw.one",
	"socket.one",
	"bridge.one",
	"raw.point",
	"socket.point",
	"bridge.point",
	"raw.write",
	"sync",
	"held.write",
	"raw.trigger",
	"held.trigger",
	"raw.commit",
	"beacon",
	"commit",
	"raw.100",
	"held.100",
	"held.100.small",
	"raw.100k",
	"held.100k",
};
static struct {
	double *v;
	size_t n;
} samples[NSERIES];

static PGconn *raw;
static struct talk *agent, *bridge, *operator;
static bool warm; /* what is measured now counts */

static void
note(enum series s, double us)
{
	if (!warm)
		return;
	samples[s].v =
	    realloc(samples[s].v, (samples[s].n + 1) * sizeof(*samples[s].v));
	if (samples[s].v == NULL)
		err(1, "no memory");
	samples[s].v[samples[s].n++] = us;
}

static int
by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void
print_series(enum series s)
{
	size_t n = samples[s].n;
	double *v = samples[s].v;

	if (n == 0)
		return;
	qsort(v, n, sizeof(*v), by_size);
	printf("%s %zu %.1f %.1f\n", series_name[s], n, v[n / 2],
	    v[n * 99 / 100]);
}

/* --- raw libpq ------------------------------------------------------------ */

static void
query(const char *sql, const char *const *params)
{
	int n = 0;
	PGresult *r;

	while (params != NULL && params[n] != NULL)
		n++;
	r = PQexecParams(raw, sql, n, NULL, params, NULL, NULL, 0);
	if (PQresultStatus(r) != PGRES_TUPLES_OK &&
	    PQresultStatus(r) != PGRES_COMMAND_OK)
		errx(1, "%s: %s", sql, PQerrorMessage(raw));
	PQclear(r);
}

static void
raw_read(enum series s, const char *sql, const char *const *params)
{
	double from = now_us();

	query(sql, params);
	note(s, now_us() - from);
}

/* Begun and not ended, as a held change is. */
static void
raw_write(enum series s, const char *sql, const char *const *params)
{
	double from = now_us();

	query("BEGIN ISOLATION LEVEL REPEATABLE READ", NULL);
	query(sql, params);
	note(s, now_us() - from);
}

static void
raw_end(enum series s, const char *how)
{
	double from = now_us();

	query(how, NULL);
	if (s != NSERIES)
		note(s, now_us() - from);
}

/* What airlockd asks of the server between the decision and COMMIT. */
static void
raw_beacon(void)
{
	double from = now_us();

	PQclear(PQexec(raw,
	    "BEGIN; SET LOCAL synchronous_commit = local; "
	    "SELECT pg_logical_emit_message(true, 'airlock', 'x'); COMMIT"));
	note(BEACON, now_us() - from);
}

static void
sync_file(int fd)
{
	static const char record[600];
	double from = now_us();

	if (write(fd, record, sizeof(record)) != (ssize_t)sizeof(record) ||
	    fdatasync(fd) == -1)
		err(1, "cannot write and sync");
	note(SYNC, now_us() - from);
}

/* --- another process ------------------------------------------------------ */

static int echo = -1; /* sends back what it is sent, on another processor */

/* The first or the last processor that may be used. */
static void
stay_on(const cpu_set_t *allowed, bool last)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, allowed) && (last || CPU_COUNT(&one) == 0)) {
			CPU_ZERO(&one);
			CPU_SET(i, &one);
		}
	if (sched_setaffinity(0, sizeof(one), &one) == -1)
		err(1, "cannot stay on a processor");
}

static void
echo_start(void)
{
	cpu_set_t allowed;
	int fd[2];
	char c;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) == -1)
		err(1, "cannot tell the processors");

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == -1)
		err(1, "no pair of sockets");
	switch (fork()) {
	case -1:
		err(1, "cannot fork");
	case 0:
		stay_on(&allowed, true);
		close(fd[0]);
		while (read(fd[1], &c, 1) == 1 && write(fd[1], &c, 1) == 1)
			continue;
		_exit(0);
	}
	close(fd[1]);
	echo = fd[0];
}

/* What each of the processes on the way of a read costs before it does anything
 * at all: two wakings, each of another processor where there is one. */
static void
wake(void)
{
	cpu_set_t allowed;
	char c = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) == -1)
		err(1, "cannot tell the processors");
	stay_on(&allowed, false);
	for (int i = 0; i < READS; i++) {
		double from = now_us();

		if (write(echo, &c, 1) != 1 || read(echo, &c, 1) != 1)
			err(1, "no echo");
		note(WAKE, now_us() - from);
	}
	if (sched_setaffinity(0, sizeof(allowed), &allowed) == -1)
		err(1, "cannot go back to all processors");
}

/* --- through airlockd ----------------------------------------------------- */

static void
read_through(enum series s, struct talk *t, const char *sql,
    const char *const *params)
{
	char *line = agent_line(t, "db_query", sql, params);
	double us;

	json_decref(agent_call(t, line, &us));
	note(s, us);
	free(line);
}

/* Gives the id. */
static char *
hold(enum series s, const char *sql, const char *const *params)
{
	char *line = agent_line(agent, "db_execute", sql, params), *id;
	double us;
	json_t *j = agent_call(agent, line, &us);

	if (s != NSERIES)
		note(s, us);
	id = strdup(json_string_value(json_object_get(j, "change_id")));
	free(line);
	json_decref(j);
	return id;
}

static void
commit(char *id_taken)
{
	double us;
	json_t *head = operator_ask(operator, "show",
	    json_pack("{s:s, s:i}", "change", id_taken, "limit", 1), &us);
	const char *digest = json_string_value(json_object_get(head, "digest"));

	json_decref(operator_ask(operator, "commit",
	    json_pack("{s:s, s:s}", "change", id_taken, "digest", digest),
	    &us));
	note(COMMIT, us);
	json_decref(head);
	free(id_taken);
}

static void
roll_back(char *id_taken)
{
	double us;

	json_decref(operator_ask(operator, "rollback",
	    json_pack("{s:s}", "change", id_taken), &us));
	free(id_taken);
}

static long
memory(pid_t pid, const char *what)
{
	char path[64], line[256];
	size_t n = strlen(what);
	long kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	while (f != NULL && kb == -1 && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, what, n) == 0)
			kb = strtol(line + n, NULL, 10);
	if (f != NULL)
		fclose(f);
	return kb;
}

/* --- what is measured ----------------------------------------------------- */

struct place {
	pid_t pid; /* the daemon's */
	int fd;    /* of a file on its disk */
};

/* A row somewhere in the table of a million, as text. */
static const char *
somewhere(long rows)
{
	static char id[24];

	snprintf(id, sizeof(id), "%ld", 1 + random() % (BIG_ROWS - rows));
	return id;
}

static void
reads(const struct place *p UNUSED)
{
	static const char one[] = "SELECT 1",
			  point[] = "SELECT * FROM big WHERE id = $1";

	for (int round = 0; round < WARM + READ_ROUNDS; round++) {
		warm = round >= WARM;
		wake();
		for (int i = 0; i < READS; i++)
			raw_read(RAW_ONE, one, NULL);
		for (int i = 0; i < READS; i++)
			read_through(SOCKET_ONE, agent, one, NULL);
		for (int i = 0; i < READS; i++)
			read_through(BRIDGE_ONE, bridge, one, NULL);
		for (int i = 0; i < READS; i++) {
			const char *id[] = { somewhere(1), NULL };

			raw_read(RAW_POINT, point, id);
			read_through(SOCKET_POINT, agent, point, id);
			read_through(BRIDGE_POINT, bridge, point, id);
		}
	}
}

#define SET_ONE "UPDATE big SET n = n + 1 WHERE id = $1"
#define SET_MANY " SET n = n + 1 WHERE id >= $1 AND id < $1 + "

/* A table as they are: a foreign key, and a trigger that writes to another. */
static void
logged(void)
{
	static const char set[] = "UPDATE parts SET n = n + 1 WHERE id = $1";
	char id[24], returning[128];
	const char *params[] = { id, NULL };

	snprintf(id, sizeof(id), "%ld", 1 + random() % 1000);
	snprintf(returning, sizeof(returning), "%s RETURNING *", set);
	raw_write(RAW_TRIGGER, returning, params);
	raw_end(NSERIES, "ROLLBACK");
	roll_back(hold(HELD_TRIGGER, set, params));
}

static void
writes(const struct place *p)
{
	for (int round = 0; round < WARM + WRITE_ROUNDS; round++) {
		const char *id[] = { somewhere(1), NULL };

		warm = round >= WARM;
		raw_write(RAW_WRITE, SET_ONE " RETURNING *", id);
		raw_end(RAW_COMMIT, "COMMIT");
		sync_file(p->fd);
		raw_beacon();
		id[0] = somewhere(1);
		commit(hold(HELD_WRITE, SET_ONE, id));
		logged();
	}
}

/* The small table is vacuumed, or its dead rows would be what costs. */
static void
tables(const struct place *p UNUSED)
{
	static const char *const small[] = { "400", NULL };

	for (int round = 0; round < WARM + TABLE_ROUNDS; round++) {
		const char *id[] = { somewhere(100), NULL };

		warm = round >= WARM;
		raw_write(RAW_100, "UPDATE big" SET_MANY "100 RETURNING *", id);
		raw_end(NSERIES, "ROLLBACK");
		id[0] = somewhere(100);
		roll_back(hold(HELD_100, "UPDATE big" SET_MANY "100", id));
		query("VACUUM small", NULL);
		roll_back(
		    hold(HELD_100_SMALL, "UPDATE small" SET_MANY "100", small));
	}
}

static void
bulk(const struct place *p)
{
	long most = 0;

	for (int round = 0; round < 1 + BULK_ROUNDS; round++) {
		const char *id[] = { somewhere(100000), NULL };
		char *held;

		warm = round > 0;
		raw_write(RAW_100K, "UPDATE big" SET_MANY "100000 RETURNING *",
		    id);
		raw_end(NSERIES, "ROLLBACK");
		id[0] = somewhere(100000);
		held = hold(HELD_100K, "UPDATE big" SET_MANY "100000", id);
		if (memory(p->pid, "VmRSS:") > most)
			most = memory(p->pid, "VmRSS:");
		roll_back(held);
		query("VACUUM big", NULL);
	}
	printf("memory.100k %ld\nmemory.peak %ld\n", most,
	    memory(p->pid, "VmHWM:"));
}

static void
many(const struct place *p)
{
	char *held[HELD];

	for (int i = 0; i < HELD; i++) {
		char id[24];
		const char *params[] = { id, NULL };

		snprintf(id, sizeof(id), "%d", 1000 * (i + 1));
		held[i] = hold(NSERIES, SET_ONE, params);
	}
	printf("memory.many %ld\n", memory(p->pid, "VmRSS:"));
	for (int i = 0; i < HELD; i++)
		roll_back(held[i]);
}

static void
connect_all(char **argv)
{
	char path[4096];

	raw = PQconnectdb(argv[1]);
	if (PQstatus(raw) != CONNECTION_OK)
		errx(1, "%s", PQerrorMessage(raw));
	snprintf(path, sizeof(path), "%s/run/agent-agent.sock", argv[2]);
	agent = agent_connect(path);
	bridge = agent_bridge(argv[3], argv[2]);
	snprintf(path, sizeof(path), "%s/run/control.sock", argv[2]);
	operator= operator_connect(path);
}

static const struct {
	const char *name;
	void (*measure)(const struct place *p);
} parts[] = {
	{ "reads", reads },
	{ "writes", writes },
	{ "tables", tables },
	{ "many", many },
	{ "bulk", bulk },
};

static bool
is_wanted(const char *part, char *const *wanted)
{
	if (*wanted == NULL)
		return true;
	while (*wanted != NULL && strcmp(*wanted, part) != 0)
		wanted++;
	return *wanted != NULL;
}

int
main(int argc, char **argv)
{
	struct place p;

	if (argc < 6)
		errx(2,
		    "CONNINFO STATE_DIR AIRLOCK_MCP DAEMON_PID FILE [PART ...]");
	p.pid = (pid_t)strtol(argv[4], NULL, 10);
	p.fd = open(argv[5], O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (p.fd == -1)
		err(1, "%s", argv[5]);
	echo_start();
	connect_all(argv);
	read_through(SOCKET_ONE, agent, "SELECT 1", NULL);
	printf("memory.idle %ld\n", memory(p.pid, "VmRSS:"));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (is_wanted(parts[i].name, argv + 6))
			parts[i].measure(&p);
	for (int s = 0; s < NSERIES; s++)
		print_series((enum series)s);
	return 0;
}
