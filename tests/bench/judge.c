/* judge: what it costs to judge a statement, beside libpg_query's bare parse */
/*
 *	judge AIRLOCKD CONNINFO
 *
 * Prints "name n median p99" a line, in microseconds.  Judged is from the text
 * to the refusal or the leave: known with what the child said remembered, warm
 * through the child with what the catalog said remembered, cold with the
 *catalog asked too, new with a child that has just been started.  The kinds
 *take turns, round by round.  judge.mjs makes the tables and shows the figures.
 */
#include <err.h>
#include <event2/event.h>
#include <pg_query.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/judge.h"
#include "core/parser.h"
#include "rule/verdict.h"

#define ROUNDS 25
#define BLOCK 20 /* of one kind in a row; one only of those just started */
#define WARM 3   /* rounds that do not count */
#define INSERT_ROWS 1000
#define NEW_BITS 16

enum way {
	RAW,
	TREE,
	JUDGED_KNOWN,
	JUDGED_WARM,
	JUDGED_COLD,
	JUDGED_NEW,
	NWAYS
};
static const char *const way_name[NWAYS] = { "raw", "tree", "known", "warm",
	"cold", "new" };

static struct statement {
	const char *name;
	enum verdict_tool tool;
	char *sql;
	double v[NWAYS][ROUNDS * BLOCK];
	size_t n[NWAYS];
} statements[] = {
	{ .name = "update", .tool = TOOL_EXECUTE },
	{ .name = "select", .tool = TOOL_QUERY },
	{ .name = "insert", .tool = TOOL_EXECUTE },
};
enum { NSTATEMENTS = sizeof(statements) / sizeof(statements[0]) };

static const char point_update[] =
    "UPDATE parcel SET state = 'found', weight_g = 12 WHERE parcel_id = 4711";

static const char long_select[] =
    "WITH recent AS (\n"
    "    SELECT p.parcel_id, p.depot_id, p.weight_g, p.state, p.sent_at\n"
    "    FROM parcel AS p\n"
    "    WHERE p.sent_at > now() - interval '14 days'\n"
    "      AND p.state <> 'lost'\n"
    "), per_depot AS (\n"
    "    SELECT r.depot_id,\n"
    "           count(*) AS parcels,\n"
    "           sum(r.weight_g) AS grams,\n"
    "           avg(r.weight_g)::numeric(10, 2) AS mean,\n"
    "           max(r.sent_at) AS last_sent\n"
    "    FROM recent r\n"
    "    GROUP BY r.depot_id\n"
    "    HAVING count(*) > 3\n"
    ")\n"
    "SELECT d.depot_id,\n"
    "       d.label,\n"
    "       upper(d.region) AS region,\n"
    "       coalesce(pd.parcels, 0) AS parcels,\n"
    "       round(coalesce(pd.grams, 0) / 1000.0, 3) AS kilos,\n"
    "       pd.mean,\n"
    "       to_char(pd.last_sent, 'YYYY-MM-DD HH24:MI') AS last_sent,\n"
    "       rank() OVER (PARTITION BY d.region ORDER BY pd.grams DESC)\n"
    "         AS place,\n"
    "       CASE\n"
    "           WHEN pd.parcels IS NULL THEN 'idle'\n"
    "           WHEN pd.parcels > 100 THEN 'busy'\n"
    "           ELSE 'usual'\n"
    "       END AS load,\n"
    "       (SELECT count(*) FROM courier c\n"
    "        WHERE c.depot_id = d.depot_id) AS couriers\n"
    "FROM depot d\n"
    "LEFT JOIN per_depot pd ON pd.depot_id = d.depot_id\n"
    "WHERE d.region IN ('r0', 'r1', 'r2')\n"
    "  AND d.label LIKE 'depot%'\n"
    "  AND (pd.mean IS NULL OR pd.mean BETWEEN 10 AND 100000)\n"
    "ORDER BY region, place NULLS LAST, d.depot_id\n"
    "LIMIT 50";

static struct event_base *base;
static struct parser *parser;
static struct pool *pool;
static struct reach_list *reached;
static const char *program;

static double
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int
by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* --- one judgement --- */

struct judging {
	const struct statement *s;
	bool cold, done;
};

static void
learned(void *arg, const struct reach *r, const struct err *e)
{
	struct judging *j = arg;
	struct verdict v = { 0 };
	struct facts none = { 0 };

	if (r == NULL)
		errx(1, "%s: %s", j->s->name, e->text);
	judge_reached(r, &none, &v);
	if (verdict_refusal(&v) != NULL)
		errx(1, "%s: %s", j->s->name, verdict_refusal(&v)->text);
	reach_release(reached, r);
	j->done = true;
}

static void
parsed(void *arg, const struct parser_answer *a)
{
	struct judging *j = arg;
	bool write = j->s->tool == TOOL_EXECUTE;
	const struct reach *r;
	struct verdict v = { 0 };

	if (a->status != PARSER_OK)
		errx(1, "%s: %s", j->s->name, a->text);
	verdict_ask(j->s->tool, a->facts, &v);
	if (verdict_refusal(&v) != NULL)
		errx(1, "%s: %s", j->s->name, verdict_refusal(&v)->text);
	if (reach_is_empty(a->facts)) {
		j->done = true;
		return;
	}
	r = reach_cached(reached, a->facts, write);
	if (r != NULL)
		learned(j, r, NULL);
	else
		reach_learn(reached, a->facts, write, learned, j);
}

/* White space at the end makes a text of its own, which says the same. */
static void
make_new(char *sql)
{
	static unsigned times;
	size_t n = strlen(sql);

	times++;
	for (unsigned bit = 0; bit < NEW_BITS; bit++)
		sql[n - 1 - bit] = times >> bit & 1 ? '\n' : ' ';
}

static void
judge(const struct statement *s)
{
	struct judging j = { .s = s };

	if (parser_facts(parser, "agent", s->sql, strlen(s->sql), parsed, &j) ==
	    NULL)
		errx(1, "the parser takes no statement");
	while (!j.done)
		event_base_loop(base, EVLOOP_ONCE);
}

/* --- what is measured --- */

static void
forget_all(void)
{
	reach_list_free(reached);
	reached = reach_list_new(pool, judge_rules());
}

static void
start_parser(void)
{
	const struct parser_options o = { .program = program,
		.statement_bytes_max = 65536,
		.operator_run_max = 256,
		.comment_depth_max = 64,
		.deadline_ms = 60000,
		.queue_max = 64 };

	parser = parser_new(base, &o);
}

static void
run(const struct statement *s, enum way way)
{
	PgQueryProtobufParseResult tree;
	PgQuerySplitResult split;

	switch (way) {
	case RAW:
		split = pg_query_split_with_parser(s->sql);
		if (split.error != NULL)
			errx(1, "%s: %s", s->name, split.error->message);
		pg_query_free_split_result(split);
		return;
	case TREE:
		tree = pg_query_parse_protobuf(s->sql);
		if (tree.error != NULL)
			errx(1, "%s: %s", s->name, tree.error->message);
		pg_query_free_protobuf_parse_result(tree);
		return;
	default:
		judge(s);
		return;
	}
}

static void
measure(struct statement *s, enum way way, bool counts)
{
	double began;

	if (way > JUDGED_KNOWN)
		make_new(s->sql);
	if (way == JUDGED_COLD)
		forget_all();
	if (way == JUDGED_NEW) {
		parser_free(parser);
		start_parser();
	}
	began = now_us();
	run(s, way);
	if (counts)
		s->v[way][s->n[way]++] = now_us() - began;
}

/* What stands before a block leaves its traces in the first of it. */
static void
block(struct statement *s, enum way way, bool counts)
{
	int n = way == JUDGED_NEW ? 1 : BLOCK;

	for (int i = 0; i < n; i++)
		measure(s, way, counts && (i > 0 || n == 1));
}

static void
up(void *arg, struct pool *p UNUSED, const struct err *e)
{
	if (e != NULL)
		errx(1, "%s", e->text);
	*(bool *)arg = true;
}

static void
start(const char *conninfo)
{
	static bool is_up;
	const struct pool_options o = { .conninfo = conninfo,
		.search_path = "\"$user\", public",
		.links_max = 2,
		.connect_timeout_ms = 10000,
		.lock_timeout_ms = 2000,
		.statement_timeout_ms = 10000,
		.row_bytes_max = (size_t)1 << 20 };

	base = event_base_new();
	pool = pool_new(base, &o, up, &is_up);
	while (!is_up)
		event_base_loop(base, EVLOOP_ONCE);
	reached = reach_list_new(pool, judge_rules());
	start_parser();
}

static char *
big_insert(void)
{
	struct text t = { 0 };

	text_add(&t,
	    "INSERT INTO invoice (invoice_id, parcel_id, cents, paid) VALUES ");
	for (int i = 0; i < INSERT_ROWS; i++)
		text_addf(&t, "%s(%d, %d, %d, %s)", i > 0 ? ", " : "",
		    100000 + i, i, i * 7, i % 2 ? "true" : "false");
	return text_take(&t);
}

static char *
padded(const char *sql)
{
	return mem_printf("%s%*s", sql, NEW_BITS, "");
}

int
main(int argc, char **argv)
{
	char *insert;

	if (argc != 3)
		errx(2, "usage: judge AIRLOCKD CONNINFO");
	program = argv[1];
	statements[0].sql = padded(point_update);
	statements[1].sql = padded(long_select);
	insert = big_insert();
	statements[2].sql = padded(insert);
	free(insert);
	start(argv[2]);
	for (int round = 0; round < WARM + ROUNDS; round++)
		for (size_t i = 0; i < NSTATEMENTS; i++)
			for (enum way w = RAW; w < NWAYS; w++)
				block(&statements[i], w, round >= WARM);
	for (size_t i = 0; i < NSTATEMENTS; i++)
		for (enum way w = RAW; w < NWAYS; w++) {
			struct statement *s = &statements[i];
			size_t n = s->n[w];

			qsort(s->v[w], n, sizeof(double), by_size);
			printf("%s.%s %zu %.1f %.1f\n", s->name, way_name[w], n,
			    s->v[w][n / 2], s->v[w][n * 99 / 100]);
		}
	parser_free(parser);
	reach_list_free(reached);
	pool_free(pool);
	event_base_free(base);
	for (size_t i = 0; i < NSTATEMENTS; i++)
		free(statements[i].sql);
	return 0;
}
