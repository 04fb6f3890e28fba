/* effects: what a rollback or an undo does not take back, as far as it shows */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/run.h"
#include "pg/causes.h"
#include "pg/effects.h"
#include "rule/functions.h"

#define EFFECTS_MAX 50
#define READ_ROWS_MAX 1e6

void
effect_add(struct change *c, const char *code, const char *text)
{
	json_t *shown = shown_json(text), *one;
	size_t i;

	json_array_foreach (c->effects, i, one)
		if (json_equal(json_object_get(one, "text"), shown)) {
			json_decref(shown);
			return;
		}
	json_array_append_new(c->effects,
	    json_pack("{s:s, s:o}", "code", code, "text", shown));
}

/* An audit trail keeps the statement as current_query() has it, and the agent's
 * is to be there, not what we made of it.  Where a search may cost too much it
 * is said instead. */
bool
run_is_read(const struct run *r)
{
	for (size_t i = 0; i < r->facts.functions.n; i++)
		if (strcmp(r->facts.functions.v[i].name, "current_query") == 0)
			return true;
	return r->relation != NULL && r->relation->reads_statement &&
	       r->relation->estimate <= READ_ROWS_MAX;
}

/* --- the question --- */

enum { OIDS, EVENTS, FUNCTIONS, EXTENSIONS, NPARAMS };

#define TRUNCATED 32 /* in pg_trigger.tgtype, beside the bits of CAUSE_ANY */

/* What was locked for a write though no row was: its statement's triggers. */
static int
events_of(const struct count_row *row)
{
	int events = counts_events(row) | (row->exclusive ? TRUNCATED : 0);

	return events != 0 ? events : CAUSE_ANY;
}

static void
add_written(const struct change *c, struct text *p)
{
	for (size_t i = 0; i < c->counts.n; i++) {
		const struct count_row *row = &c->counts.v[i];

		if (row->catalog)
			continue;
		text_add_number(&p[OIDS], row->oid);
		text_add_number(&p[EVENTS], events_of(row));
	}
}

/* Whether anything but PostgreSQL's own code may have run: most writes are not
 * asked about.  A trigger may be younger than the snapshot that a statement is
 * added under. */
static bool
may_have_effects(const struct run *r)
{
	const struct counts *n = &r->change->counts;

	if (r->adding || r->relation == NULL || r->relation->added_code ||
	    r->reach == NULL || !r->reach->own_code)
		return true;
	for (size_t i = 0; i < n->n; i++)
		if (!n->v[i].catalog && n->v[i].triggers)
			return true;
	return false;
}

/* --- the answer --- */

static void
take(struct run *r, const struct batch *b, int row)
{
	const char *kind = batch_cell(b, 0, row, EFFECT_KIND);
	const char *function = batch_cell(b, 0, row, EFFECT_FUNCTION);
	const char *via = batch_cell(b, 0, row, EFFECT_VIA);
	const char *how = batch_cell(b, 0, row, EFFECT_HOW);
	struct text t = { 0 };

	if (kind == NULL || function == NULL)
		return;
	text_addf(&t, "%s", function);
	if (via != NULL)
		text_addf(&t, " (%s)", via);
	if (strcmp(kind, "NOTIFICATION") == 0) {
		text_add(&t, " may send notifications, which go out at COMMIT; "
			     "an undo does not take them back");
	} else if (strcmp(kind, "STATEMENT_TEXT") == 0) {
		text_add(&t, " reads the text of the statement, which is the "
			     "agent's with Airlock's parts in it");
		if (r->plan.path == CAPTURE_PLAIN)
			goto out; /* it was the agent's own */
	} else if (strcmp(kind, "TRIGGERS_OFF") == 0) {
		text_add(&t, " may turn triggers and foreign keys off and on "
			     "again (session_replication_role)");
		verdict_add(&r->change->asked, REASON_TRIGGERS_OFF, -1,
		    "%.350s", text_str(&t));
	} else if (strcmp(kind, "COUNTERS_OFF") == 0) {
		text_add(&t, " may turn off the server's counters and on again "
			     "(track_counts), so that what it writes is not "
			     "shown");
		r->change->uncounted = true;
	} else {
		text_addf(&t, " may act outside the transaction%s%s",
		    how != NULL ? ": " : "", how != NULL ? how : "");
		verdict_add(&r->change->asked, REASON_OUTSIDE_EFFECT, -1,
		    "%.350s", text_str(&t));
	}
	effect_add(r->change, kind, text_str(&t));
out:
	text_release(&t);
}

static void
answered(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct run *r = arg;
	int n = batch_is_lost(b) ? 0 : batch_ntuples(b, 0);
	const char *sets;

	r->in_batch = false;
	if (r->cancelled) {
		(void)run_refuse(r, REASON_UNAVAILABLE,
		    "the call was cancelled");
		return;
	}
	if (batch_is_lost(b) || !batch_is_ok(b)) {
		log_warnx("%s: what its functions do cannot be asked: %s",
		    r->change->id,
		    batch_is_lost(b)
			? batch_err(b)->text
			: result_message(batch_result(b, batch_failed(b))));
		r->change->uncounted = true; /* for all that is known */
		effect_add(r->change, "OUTSIDE_EFFECT",
		    "what its functions and triggers do beside writing rows "
		    "could not be asked");
	}
	sets = batch_cell(b, 1, 0, 0);
	if (sets == NULL || sets[0] == 't')
		r->change->leaves_setting = true;
	for (int i = 0; i < n && i < EFFECTS_MAX; i++)
		take(r, b, i);
	run_go(r);
}

enum run_next
run_effects(struct run *r)
{
	struct text p[NPARAMS] = { 0 };
	const char *values[NPARAMS];
	struct batch *b;

	if (!may_have_effects(r))
		return RUN_GO;
	add_written(r->change, p);
	for (int i = 0; i < NPARAMS; i++) {
		text_end_items(&p[i]);
		values[i] = text_str(&p[i]);
	}
	if (r->reach != NULL)
		values[FUNCTIONS] = reach_functions(r->reach);
	values[EXTENSIONS] = functions_extensions;
	b = batch_new();
	batch_add_kept(b, effects_sql, NPARAMS, values);
	batch_add_kept(b, effects_setting_sql, 1, values);
	for (int i = 0; i < NPARAMS; i++)
		text_release(&p[i]);
	r->in_batch = true;
	pool_ask(r->change->login->pool, b, answered, r);
	return RUN_WAIT;
}
