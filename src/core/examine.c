/* examine: what a statement leaves in its transaction: settings, work that is
 * put off to COMMIT, cursors, and the server's counters */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/run.h"
#include "pg/session.h"

#define DEAD_MAN_MS 30000 /* beyond the time left; see session pins */
#define SETTLE_ROUNDS 8   /* of deferred work that puts off more */

static const char settle_sql[] = "SET CONSTRAINTS ALL IMMEDIATE";

/* --- what is asked --- */

/* What the server is to do when nobody tells it anything more: end the
 * transaction a little after its time to live. */
size_t
run_add_pins(struct run *r, struct batch *b)
{
	const struct limits *l = &r->gate->o->limits;
	const struct change *c = r->change;
	int64_t left = c->expires_boot != 0 ? c->expires_boot - clock_boot_ms()
	                                    : l->ttl_ms;
	char lock[16], statement[16], idle[24], name[64];
	const char *values[] = { lock, statement, idle, name,
		pool_search_path(c->login->pool) };

	snprintf(lock, sizeof(lock), "%d", l->lock_timeout_ms);
	snprintf(statement, sizeof(statement), "%d", l->write_timeout_ms);
	snprintf(idle, sizeof(idle), "%lld",
	    (long long)(left > 0 ? left : 0) + DEAD_MAN_MS);
	snprintf(name, sizeof(name), "airlock: %.32s %s", r->agent->o->name,
	    c->id);
	return batch_add_prepared(b, SESSION_PIN, 5, values);
}

/* Small tables are counted; a large one is not worth a scan. */
static bool
is_countable(const struct run *r)
{
	const struct relation *rel = r->relation;

	return rel != NULL && rel->readable && !rel->row_security &&
	       (rel->kind == 'r' || rel->kind == 'p') &&
	       rel->estimate <= 2.0 * (double)r->gate->o->limits.count_rows_max;
}

static void
add_examination(struct run *r, struct batch *b)
{
	char *count;

	/* A deferred trigger may have set what it liked, and COMMIT and the
	 * dead man go by it. */
	r->i_settled = run_add_pins(r, b);
	batch_add(b, "SET LOCAL plan_cache_mode = force_generic_plan", 0, NULL);
	r->i_counts = counts_ask(b, r->change);
	r->i_lsn = batch_add(b,
	    "SELECT pg_catalog.pg_current_wal_insert_lsn(), " SESSION_HOLDS, 0,
	    NULL);
	r->i_rows = 0;
	if (!is_countable(r))
		return;
	count =
	    mem_printf("SELECT pg_catalog.count(*) FROM (SELECT 1 FROM %s%s "
		       "LIMIT %lld) AS airlock_s",
		r->relation->kind == 'p' ? "" : "ONLY ", r->relation->name,
		(long long)r->gate->o->limits.count_rows_max + 1);
	r->i_rows = batch_add(b, count, 0, NULL);
	free(count);
}

/* The savepoint is behind the statement, so that the statement's rows carry the
 * top transaction id. */
void
run_add_examination(struct run *r, struct batch *b)
{
	batch_add(b, "SAVEPOINT airlock_c", 0, NULL);
	r->i_constraints = r->i_last = batch_add(b, settle_sql, 0, NULL);
	r->i_settling = 0;
	batch_add(b, "RELEASE SAVEPOINT airlock_c", 0, NULL);
	add_examination(r, b);
}

/* --- what is answered --- */

enum run_next
run_look_at_settings(struct run *r, const struct batch *b, size_t is)
{
	const char *path = pool_search_path(r->change->login->pool), *name;

	if (batch_state(b, is) != BATCH_OK)
		return RUN_GO; /* deferred work failed, and is taken back */
	switch (session_moved(b, r->i_pinned, is, path, &name)) {
	case SESSION_RULES:
		return run_refuse(r, REASON_SETTING_CHANGED,
		    "a function or trigger left %s changed", name);
	case SESSION_IMAGES:
		r->misprinted = r->misprinted || is == r->i_left;
		return RUN_GO;
	default:
		return RUN_GO;
	}
}

/* A held cursor's query is run by COMMIT itself. */
static enum run_next
look_at_cursors(struct run *r, const struct batch *b)
{
	const char *holds = batch_cell(b, r->i_lsn, 0, 1);

	if (batch_state(b, r->i_lsn) != BATCH_OK ||
	    (holds != NULL && holds[0] == 'f'))
		return RUN_GO; /* or it is not read at all */
	return run_refuse(r, REASON_HOLDABLE_CURSOR,
	    "a function or trigger left a cursor WITH HOLD open");
}

int
run_read_counts(struct run *r, const struct batch *b, struct err *e)
{
	const char *lsn = batch_cell(b, r->i_lsn, 0, 0);
	const char *rows =
	    r->i_rows != 0 ? batch_cell(b, r->i_rows, 0, 0) : NULL;

	if (lsn == NULL ||
	    text_copy(r->insert_lsn, sizeof(r->insert_lsn), lsn, e) == -1)
		return err_set(e, ERR_DATABASE,
		    "the server did not tell its WAL position");
	r->rows_now = rows != NULL ? strtoll(rows, NULL, 10) : -1;
	if (r->rows_now > r->gate->o->limits.count_rows_max)
		r->rows_now = -2;
	counts_release(&r->counts);
	return counts_read(b, r->i_counts, &r->counts, e);
}

/* Deferred work fails: COMMIT would be refused.  The change is held all the
 * same, so that the missing statement can be added. */
static void
recovered(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct run *r = arg;
	struct err e = ERR_INIT;

	r->in_batch = false;
	if (batch_is_lost(b))
		(void)run_link_failed(r, batch_err(b), true);
	else if (look_at_cursors(r, b) != RUN_GO)
		return;
	else if (!batch_is_ok(b) || run_read_counts(r, b, &e) == -1)
		(void)run_refuse(r, REASON_UNAVAILABLE,
		    "the transaction could not be examined: %s",
		    e.code != ERR_NONE
			? e.text
			: result_message(batch_result(b, batch_failed(b))));
	else
		run_go(r);
}

static enum run_next
recover_constraints(struct run *r, const struct batch *failed)
{
	const PGresult *res = batch_result(failed, batch_failed(failed));
	const char *name = PQresultErrorField(res, PG_DIAG_CONSTRAINT_NAME);
	struct batch *b = batch_new();

	snprintf(r->deferred, sizeof(r->deferred), "%s%s%.63s: %.180s",
	    result_sqlstate(res), name != NULL ? " " : "",
	    name != NULL ? name : "", result_message(res));
	batch_add(b, "ROLLBACK TO SAVEPOINT airlock_c", 0, NULL);
	batch_add(b, "RELEASE SAVEPOINT airlock_c", 0, NULL);
	add_examination(r, b);
	r->in_batch = true;
	link_run(r->change->link, b, recovered, r);
	return RUN_WAIT;
}

enum run_next
run_examine(struct run *r, const struct batch *b)
{
	struct err e = ERR_INIT;
	size_t failed = batch_failed(b);

	if (run_look_at_settings(r, b, r->i_settled) != RUN_GO)
		return RUN_OVER;
	if (failed >= r->i_constraints && failed <= r->i_last &&
	    failed != r->i_settling)
		return recover_constraints(r, b);
	if (failed != (size_t)-1)
		return run_refuse(r, REASON_UNAVAILABLE,
		    "the transaction could not be opened or examined: %s",
		    result_message(batch_result(b, failed)));
	if (look_at_cursors(r, b) != RUN_GO)
		return RUN_OVER;
	if (run_read_counts(r, b, &e) == -1)
		return run_refuse(r, REASON_UNAVAILABLE, "%s", e.text);
	return RUN_GO;
}

/* --- work that is put off again and again --- */

/* Nothing waits but for rows, and the counters show the tables of all. */
static bool
may_put_off(const struct counts *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].defers)
			return true;
	return false;
}

/* The last round did something: more may wait, and be run by COMMIT. */
static int
read_settling(struct run *r, const struct batch *b, struct err *e)
{
	struct counts before = { 0 };

	if (counts_read(b, r->i_settling, &before, e) == -1)
		return -1;
	r->unsettled = !counts_equal(&before, &r->counts);
	if (r->unsettled)
		snprintf(r->deferred, sizeof(r->deferred),
		    "deferred triggers put off more work each time they run, "
		    "%d times and on",
		    SETTLE_ROUNDS);
	counts_release(&before);
	return 0;
}

static void
settled(void *arg, struct link *l, struct batch *b)
{
	struct run *r = arg;
	struct err e = ERR_INIT;

	r->in_batch = false;
	if (!run_is_whole(r, l, b) || run_examine(r, b) != RUN_GO)
		return;
	if (read_settling(r, b, &e) == -1)
		(void)run_refuse(r, REASON_UNAVAILABLE, "%s", e.text);
	else
		run_go(r);
}

/* Each time all that waits is run; what it puts off in turn waits for the
 * next. */
enum run_next
run_settle(struct run *r)
{
	struct batch *b;

	if (r->deferred[0] != '\0' || !may_put_off(&r->counts))
		return RUN_GO;
	b = batch_new();
	r->i_pinned = run_add_pins(r, b);
	batch_add(b, "SAVEPOINT airlock_c", 0, NULL);
	r->i_constraints = batch_add(b, settle_sql, 0, NULL);
	for (int i = 3; i < SETTLE_ROUNDS; i++)
		batch_add(b, settle_sql, 0, NULL);
	r->i_settling = counts_ask(b, r->change);
	r->i_last = batch_add(b, settle_sql, 0, NULL);
	batch_add(b, "RELEASE SAVEPOINT airlock_c", 0, NULL);
	add_examination(r, b);
	r->in_batch = true;
	link_run(r->change->link, b, settled, r);
	return RUN_WAIT;
}
