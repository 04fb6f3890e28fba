/* sizes: how many rows the tables of a change have without it and with it */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/run.h"

/*
 * The rows before are counted once for each table, at the change's snapshot,
 * where they cannot move; the rows after are those and what the images say.
 * The observer counts, who sees every row, unless the writer's own batch has
 * counted the target already: it may be blind to rows (row security), and a
 * later statement may reach the table by another way.
 */
struct sizing {
	struct run *run;
	struct text names; /* an array literal of those asked about */
	size_t *at;        /* which table of the change each answer is of */
	size_t n;
};

static const char about_sql[] =
    "SELECT u.n, c.relkind, pg_catalog.has_table_privilege(c.oid, 'SELECT')"
    "  AND pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE')"
    "  AND NOT pg_catalog.row_security_active(c.oid)"
    "  AND c.relpersistence <> 't' AND c.relkind IN ('r', 'p', 'm')"
    "  AND NOT EXISTS (SELECT FROM pg_catalog.pg_partition_tree(c.oid) t"
    "   JOIN pg_catalog.pg_class l ON l.oid = t.relid::pg_catalog.oid"
    "   WHERE l.relkind = 'f'),"
    " CASE WHEN c.relkind = 'p' THEN"
    "  (SELECT CASE WHEN pg_catalog.min(l.reltuples) < '0' THEN -1"
    "    ELSE pg_catalog.sum(l.reltuples) END"
    "   FROM pg_catalog.pg_partition_tree(c.oid) t"
    "   JOIN pg_catalog.pg_class l ON l.oid = t.relid::pg_catalog.oid WHERE t.isleaf)"
    "  ELSE c.reltuples END "
    "FROM pg_catalog.unnest($1::pg_catalog.text[])"
    "  WITH ORDINALITY AS u(name, n) "
    "JOIN pg_catalog.pg_class c"
    " ON c.oid = pg_catalog.to_regclass(u.name)::pg_catalog.oid "
    "ORDER BY u.n";

static void
sizing_free(struct sizing *s)
{
	s->run->sizing = NULL;
	text_release(&s->names);
	free(s->at);
	free(s);
}

void
run_sizes_cancel(struct run *r)
{
	if (r->sizing == NULL)
		return;
	pool_forget(r->gate->observer->pool, r->sizing);
	sizing_free(r->sizing);
}

/* Not known: the change is held all the same. */
static void
over(struct sizing *s)
{
	struct run *r = s->run;

	sizing_free(s);
	r->in_batch = false;
	if (r->cancelled)
		(void)run_refuse(r, REASON_UNAVAILABLE,
		    "the call was cancelled");
	else
		run_go(r);
}

static void
counted(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct sizing *s = arg;
	struct run *r = s->run;
	const size_t first = 4; /* begin, snapshot, two timeouts */

	for (size_t i = 0; i < s->n && !batch_is_lost(b); i++) {
		struct change_table *t = &r->change->tables[s->at[i]];
		const char *cell = batch_cell(b, first + i, 0, 0);
		int64_t n = cell != NULL ? strtoll(cell, NULL, 10) : -1;

		if (n >= 0 && n <= r->gate->o->limits.count_rows_max) {
			t->rows_before = n;
			t->sized = true;
		} else if (n >= 0 && t->rows_before < n) {
			t->rows_before = -1; /* an estimate far too low */
		}
	}
	over(s);
}

/* Small tables are counted; a large one is not worth a scan. */
static void
count(struct sizing *s)
{
	struct run *r = s->run;
	const struct limits *l = &r->gate->o->limits;
	struct batch *b = batch_new();
	char *sql =
	    mem_printf("SET TRANSACTION SNAPSHOT '%s'", r->change->snapshot);

	batch_add(b, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", 0,
	    NULL);
	batch_add(b, sql, 0, NULL);
	free(sql);
	batch_add(b, "SET LOCAL lock_timeout = '500ms'", 0, NULL);
	sql =
	    mem_printf("SET LOCAL statement_timeout = %d", l->write_timeout_ms);
	batch_add(b, sql, 0, NULL);
	free(sql);
	for (size_t i = 0; i < s->n; i++) {
		const struct change_table *t = &r->change->tables[s->at[i]];

		sql = mem_printf("SELECT pg_catalog.count(*) FROM (SELECT 1 "
				 "FROM %s%s LIMIT %lld) AS airlock_s",
		    t->parent ? "" : "ONLY ", t->name,
		    (long long)l->count_rows_max + 1);
		batch_add(b, sql, 0, NULL);
		free(sql);
	}
	batch_sync(b);
	batch_add(b, "ROLLBACK", 0, NULL);
	pool_ask(r->gate->observer->pool, b, counted, s);
}

static void
told(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct sizing *s = arg;
	struct run *r = s->run;
	size_t n = 0;

	if (batch_is_lost(b) || !batch_is_ok(b))
		log_warnx("%s: the sizes of tables cannot be asked for",
		    r->change->id);
	for (int i = 0; !batch_is_lost(b) && i < batch_ntuples(b, 0); i++) {
		const char *which = batch_cell(b, 0, i, 0);
		const char *kind = batch_cell(b, 0, i, 1);
		const char *may = batch_cell(b, 0, i, 2);
		const char *rows = batch_cell(b, 0, i, 3);
		double estimate = rows != NULL ? strtod(rows, NULL) : -1;
		size_t k = which != NULL ? strtoul(which, NULL, 10) - 1 : s->n;
		struct change_table *t;

		if (k >= s->n || kind == NULL || may == NULL)
			continue;
		t = &r->change->tables[s->at[k]];
		t->parent = kind[0] == 'p';
		t->rows_before = estimate >= 0 ? (int64_t)estimate : -1;
		if (may[0] == 't' &&
		    estimate <= 2.0 * (double)r->gate->o->limits.count_rows_max)
			s->at[n++] = s->at[k]; /* n <= k: in order */
	}
	s->n = n;
	if (n > 0 && !r->cancelled)
		count(s);
	else
		over(s);
}

/* The server forgets what was counted before a TRUNCATE, and nobody else can
 * read such a table meanwhile. */
static bool
was_emptied(const struct change *c, const struct change_table *t)
{
	for (size_t i = 0; i < c->counts.n; i++) {
		const struct count_row *row = &c->counts.v[i];

		if (row->exclusive &&
		    strcmp(counts_shown_as(row), t->name) == 0)
			return true;
	}
	return false;
}

/* The target of a statement that is proved has been counted in its batch, or
 * is known to be too large for that. */
static bool
is_known(const struct run *r, const struct change_table *t)
{
	if (t->sized || t->asked || was_emptied(r->change, t))
		return true;
	if (r->relation == NULL || strcmp(r->relation->name, t->name) != 0 ||
	    !t->exact || r->plan.path == CAPTURE_PLAIN)
		return false;
	return r->rows_now >= 0 ||
	       r->relation->estimate >
	           2.0 * (double)r->gate->o->limits.count_rows_max;
}

enum run_next
run_sizes(struct run *r)
{
	struct change *c = r->change;
	struct sizing *s = mem_new(sizeof(*s));
	struct batch *b;
	const char *values[1];

	s->run = r;
	s->at = mem_array(c->ntables, sizeof(*s->at));
	for (size_t i = 0; i < c->ntables; i++) {
		if (is_known(r, &c->tables[i]))
			continue;
		c->tables[i].asked = true;
		text_add_string(&s->names, c->tables[i].name);
		s->at[s->n++] = i;
	}
	r->sizing = s;
	if (s->n == 0) {
		sizing_free(s);
		return RUN_GO;
	}
	text_end_items(&s->names);
	values[0] = text_str(&s->names);
	b = batch_new();
	batch_add_kept(b, about_sql, 1, values);
	r->in_batch = true;
	pool_ask(r->gate->observer->pool, b, told, s);
	return RUN_WAIT;
}

/* --- what it comes to --- */

static void
size_target(const struct run *r, struct change_table *t, int64_t net)
{
	if (r->relation == NULL || strcmp(r->relation->name, t->name) != 0 ||
	    (r->relation->kind != 'r' && r->relation->kind != 'p'))
		return;
	if (r->rows_now >= 0 && t->exact && t->complete && r->rows_now >= net) {
		t->rows_before = r->rows_now - net;
		t->sized = true;
	} else if (t->rows_before == -1 &&
		   r->relation->estimate >
		       2.0 * (double)r->gate->o->limits.count_rows_max) {
		t->rows_before = (int64_t)r->relation->estimate;
	}
}

void
sizes_settle(struct run *r)
{
	struct change *c = r->change;

	for (size_t i = 0; i < c->ntables; i++) {
		struct change_table *t = &c->tables[i];
		int64_t net =
		    (int64_t)(t->n[IMAGE_INSERT] - t->n[IMAGE_DELETE]);

		if (!t->sized)
			size_target(r, t, net);
		t->rows_after = -1;
		if (t->rows_before >= 0 && !was_emptied(c, t))
			t->rows_after =
			    t->rows_before + net > 0 ? t->rows_before + net : 0;
		t->estimated =
		    t->rows_before >= 0 && (!t->sized || !t->complete);
	}
}
