/* causes: by what a change wrote the tables that its statements do not name */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/run.h"
#include "pg/causes.h"

static int
events_of(const struct facts *f)
{
	if (f->writes.n > 1)
		return CAUSE_ANY;
	switch (f->kind) {
	case STMT_INSERT:
		return f->conflict == CONFLICT_UPDATE
		           ? CAUSE_INSERT | CAUSE_UPDATE
		           : CAUSE_INSERT;
	case STMT_UPDATE:
		return CAUSE_UPDATE;
	case STMT_DELETE:
		return CAUSE_DELETE;
	default:
		return CAUSE_ANY;
	}
}

/* --- the question --- */

enum { OIDS, EVENTS, NAMED, NAMED_EVENTS, TABLES, SCHEMAS, FUNCTIONS, NPARAMS };

static void
add_written(const struct change *c, struct text *p)
{
	for (size_t i = 0; i < c->counts.n; i++) {
		const struct count_row *row = &c->counts.v[i];

		if (row->catalog)
			continue;
		text_add_number(&p[OIDS], row->oid);
		text_add_number(&p[EVENTS], counts_events(row));
	}
}

static void
add_facts(const struct facts *f, struct text *p)
{
	facts_add_relations(&p[NAMED], &f->writes);
	text_addf(&p[NAMED_EVENTS], "%d", events_of(f));
	for (size_t i = 0; i < f->functions.n; i++) {
		const struct facts_name *fn = &f->functions.v[i];

		if (fn->op != 'f')
			continue;
		text_add_string(&p[SCHEMAS],
		    fn->schema != NULL ? fn->schema : "");
		text_add_string(&p[FUNCTIONS], fn->name);
	}
}

/* --- the answer --- */

static void
add_cause(struct change_table *t, json_t *cause)
{
	json_t *one;
	size_t i;

	if (t->by == NULL)
		t->by = json_array();
	json_array_foreach (t->by, i, one)
		if (json_equal(one, cause)) {
			json_decref(cause);
			return;
		}
	json_array_append_new(t->by, cause);
}

static void
take(struct change *c, const struct batch *b, int row)
{
	const char *table = batch_cell(b, 0, row, CAUSE_TABLE);
	struct change_table *t =
	    table != NULL ? change_find_table(c, table) : NULL;
	const char *kind = batch_cell(b, 0, row, CAUSE_KIND);
	const char *name = batch_cell(b, 0, row, CAUSE_NAME);
	const char *on = batch_cell(b, 0, row, CAUSE_ON);
	const char *function = batch_cell(b, 0, row, CAUSE_FUNCTION);
	json_t *cause;

	if (t == NULL || kind == NULL || name == NULL)
		return;
	if (strcmp(kind, "view") == 0) {
		t->collateral = false;
		t->named = t->viewed = true;
		return;
	}
	cause = json_pack("{s:s, s:o}", "kind", kind, "name", shown_json(name));
	if (on != NULL)
		json_object_set_new(cause, "on", shown_json(on));
	if (function != NULL)
		json_object_set_new(cause, "function", shown_json(function));
	add_cause(t, cause);
}

static void
answered(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct run *r = arg;

	r->in_batch = false;
	if (r->cancelled) {
		(void)run_refuse(r, REASON_UNAVAILABLE,
		    "the call was cancelled");
		return;
	}
	if (batch_is_lost(b) || !batch_is_ok(b))
		log_warnx("%s: what wrote its tables cannot be asked: %s",
		    r->change->id,
		    batch_is_lost(b)
			? batch_err(b)->text
			: result_message(batch_result(b, batch_failed(b))));
	for (int i = 0; r->i_filled != 0 && i < batch_ntuples(b, 0); i++)
		take(r->change, b, i);
	filled_take(r, b, r->i_filled);
	run_go(r);
}

static bool
ask(const struct run *r, struct batch *b)
{
	const struct change *c = r->change;
	struct text p[NPARAMS] = { 0 };
	const char *values[NPARAMS];

	for (size_t i = 0; i < c->ntables; i++)
		if (c->tables[i].collateral)
			text_add_string(&p[TABLES], c->tables[i].name);
	if (p[TABLES].len == 0)
		return false;
	add_written(c, p);
	add_facts(&r->facts, p);
	for (int i = 0; i < NPARAMS; i++) {
		if (i != NAMED_EVENTS)
			text_end_items(&p[i]);
		values[i] = text_str(&p[i]);
	}
	batch_add_kept(b, causes_sql, NPARAMS, values);
	for (int i = 0; i < NPARAMS; i++)
		text_release(&p[i]);
	return true;
}

enum run_next
run_causes(struct run *r)
{
	struct batch *b = batch_new();
	bool any = ask(r, b);

	r->i_filled = filled_ask(r, b);
	if (!any && r->i_filled == (size_t)-1) {
		filled_take(r, b, (size_t)-1);
		batch_free(b);
		return RUN_GO;
	}
	r->in_batch = true;
	pool_ask(r->change->login->pool, b, answered, r);
	return RUN_WAIT;
}
