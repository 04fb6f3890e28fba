/* proof: the server's counters against the images; what the change amounts to
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/run.h"

/* --- tables --- */

static struct change_table *
table_of(struct change *c, const char *name)
{
	struct change_table *t = change_find_table(c, name);

	if (t != NULL)
		return t;
	c->tables = mem_grow(c->tables, c->ntables + 1, sizeof(*c->tables));
	t = &c->tables[c->ntables++];
	memset(t, 0, sizeof(*t));
	t->name = mem_strdup(name);
	t->complete = t->exact = true;
	t->collateral = true;
	t->rows_before = t->rows_after = -1;
	return t;
}

static bool
is_target(const struct run *r, const struct count_row *row)
{
	return r->relation != NULL &&
	       (row->oid == r->relation->oid ||
		   (row->root != NULL &&
		       strcmp(row->root, r->relation->table) == 0));
}

/* "schema.name" as quote_ident writes it, against a name from the tree. */
static bool
name_is(const char *display, const struct facts_name *n)
{
	struct text plain = { 0 }, want = { 0 };
	bool quoted = false, same;
	const char *dot = "\001"; /* stands for the dot between the parts */

	for (const char *p = display; *p != '\0'; p++) {
		if (*p == '"' && quoted && p[1] == '"')
			text_addc(&plain, *p++);
		else if (*p == '"')
			quoted = !quoted;
		else
			text_addc(&plain, *p == '.' && !quoted ? *dot : *p);
	}
	text_addf(&want, "%s%s%s", n->schema != NULL ? n->schema : "", dot,
	    n->name);
	same = n->schema != NULL
	           ? strcmp(text_str(&plain), text_str(&want)) == 0
	           : plain.len >= want.len &&
	                 strcmp(text_str(&plain) + plain.len - want.len,
			     text_str(&want)) == 0;
	text_release(&plain);
	text_release(&want);
	return same;
}

static bool
is_named(const struct run *r, const struct count_row *row)
{
	if (is_target(r, row))
		return true;
	for (size_t i = 0; i < r->facts.writes.n; i++)
		if (name_is(row->name, &r->facts.writes.v[i]) ||
		    (row->root != NULL &&
			name_is(row->root, &r->facts.writes.v[i])))
			return true;
	return false;
}

static struct change_table *
table_for(struct run *r, const struct count_row *row)
{
	struct change_table *t = table_of(r->change, counts_shown_as(row));

	if (is_named(r, row)) {
		t->collateral = false;
		t->named = true;
	}
	/* What an inheritance parent's columns get, its children's do. */
	t->named = t->named || (r->relation != NULL && r->relation->subclass &&
				   r->relation->kind == 'r');
	return t;
}

/* --- one counter row --- */

static const struct leaf *
leaf_find(const struct run *r, uint32_t oid)
{
	for (size_t i = 0; i < r->nleaves; i++)
		if (r->leaves[i].oid == oid)
			return &r->leaves[i];
	return NULL;
}

/* What this statement added to the counters of a relation. */
static bool
delta_of(const struct run *r, const struct count_row *row,
    uint64_t delta[IMAGE_NOPS])
{
	const struct count_row *was = counts_find(&r->change->counts, row->oid);
	bool any = false;

	/* TRUNCATE lets them begin anew. */
	for (int i = 0; was != NULL && i < IMAGE_NOPS; i++)
		if (row->n[i] < was->n[i])
			was = NULL;
	for (int i = 0; i < IMAGE_NOPS; i++) {
		delta[i] = row->n[i] - (was != NULL ? was->n[i] : 0);
		any = any || delta[i] != 0;
	}
	return any;
}

/* Both name a relation. */
static void
add_effect(struct change *c, const char *code, const char *fmt,
    const char *name)
{
	char *text = mem_printf("%s %s", name, fmt);

	effect_add(c, code, text);
	free(text);
}

static void
spoil(struct change_table *t)
{
	t->complete = t->exact = false;
}

/* No search can help. */
static void
spoil_for_good(struct change_table *t, const char *why)
{
	spoil(t);
	t->opaque = true;
	t->why = why;
}

/* A partition that no statement has met before may have been attached since its
 * table was counted. */
static void
size_anew(struct change_table *t)
{
	t->asked = t->sized = false;
	t->rows_before = -1;
}

static void
prove_table(struct run *r, const struct count_row *row)
{
	const struct leaf *leaf = leaf_find(r, row->oid);
	uint64_t delta[IMAGE_NOPS];
	bool moved = delta_of(r, row, delta), agrees;
	struct change_table *t;

	/* A counter that a TRUNCATE set back would read as agreeing. */
	if (!moved && leaf == NULL && !row->exclusive)
		return;
	t = table_for(r, row);
	if (row->root != NULL &&
	    counts_find(&r->change->counts, row->oid) == NULL)
		size_anew(t);
	for (int i = 0; i < IMAGE_NOPS; i++)
		t->counted[i] += delta[i];
	agrees = leaf != NULL && memcmp(leaf->n, delta, sizeof(delta)) == 0;
	if (row->exclusive)
		spoil_for_good(t, "it was emptied, altered or locked whole");
	else if (row->persistence == 't')
		spoil_for_good(t, "it is a temporary table");
	else if (!agrees || r->plan.path == CAPTURE_PLAIN)
		spoil(t);
}

static void
prove_row(struct run *r, const struct count_row *row)
{
	struct change *c = r->change;
	uint64_t delta[IMAGE_NOPS];

	if (row->catalog) {
		if (delta_of(r, row, delta))
			c->hidden_ddl = true;
		return;
	}
	switch (row->kind) {
	case 'r':
	case 'm':
		prove_table(r, row);
		break;
	case 'S':
		add_effect(c, "SEQUENCE",
		    "moves; a rollback does not move it back", row->name);
		break;
	case 'f':
		add_effect(c, "FOREIGN_TABLE",
		    "is written on another server; no row of it can be shown",
		    row->name);
		spoil_for_good(table_for(r, row), "it is a foreign table");
		verdict_add(&c->asked, REASON_OUTSIDE_EFFECT, -1,
		    "%.128s is a foreign table", row->name);
		break;
	default:
		break; /* views, partitioned parents: their leaves count */
	}
}

/* A leaf that the images name and the server does not count. */
static void
prove_leaves(struct run *r)
{
	for (size_t i = 0; r->relation != NULL && i < r->nleaves; i++)
		if (counts_find(&r->counts, r->leaves[i].oid) == NULL)
			spoil(table_of(r->change, r->relation->table));
}

/* --- counts --- */

static void
count_up(struct change *c)
{
	const struct store_count *v = NULL;
	size_t n = store_counts(c->store, &v);

	for (size_t i = 0; i < c->ntables; i++) {
		struct change_table *t = &c->tables[i];

		memcpy(t->n, t->counted, sizeof(t->n));
		t->unchanged = 0;
		if (t->exact)
			memset(t->n, 0, sizeof(t->n));
		for (size_t k = 0; t->exact && k < n; k++)
			if (strcmp(v[k].table, t->name) == 0) {
				memcpy(t->n, v[k].n, sizeof(t->n));
				t->unchanged = v[k].unchanged;
			}
	}
}

static bool
is_collateral(const void *arg, const char *table)
{
	const struct change *c = arg;

	const struct change_table *t = change_find_table(c, table);

	return t == NULL || t->collateral;
}

/* --- the verdict --- */

/* By table, as long as it is so, whichever statement came last. */
static void
say_incomplete(struct change *c)
{
	struct text t = { 0 };

	if (c->why_incomplete != NULL)
		text_add(&t, c->why_incomplete);
	for (size_t i = 0; i < c->ntables; i++) {
		const struct change_table *k = &c->tables[i];

		if (!k->complete && k->why != NULL)
			text_addf(&t, "%s%.128s (%s)", t.len > 0 ? ", " : "",
			    k->name, k->why);
	}
	if (c->uncounted)
		text_addf(&t,
		    "%sa function may have turned off the counters "
		    "that prove a diff (track_counts)",
		    t.len > 0 ? ", " : "");
	if (!c->complete && t.len > 0)
		verdict_add(&c->verdict, REASON_INCOMPLETE, -1,
		    "rows that changed are not all shown: %.280s; the counts "
		    "are the server's own",
		    text_str(&t));
	text_release(&t);
}

static void
judge(struct run *r)
{
	struct change *c = r->change;
	struct effect_table *v = mem_array(c->ntables, sizeof(*v));
	struct effect x = { v, c->ntables, c->complete, c->hidden_ddl };

	for (size_t i = 0; i < c->ntables; i++) {
		const struct change_table *t = &c->tables[i];

		v[i] = (struct effect_table){ t->name, t->n[IMAGE_INSERT],
			t->n[IMAGE_UPDATE], t->n[IMAGE_DELETE], t->unchanged,
			t->collateral, t->complete, t->rows_before };
	}
	for (size_t i = 0; i < r->asked.n; i++)
		verdict_add(&c->asked, r->asked.v[i].reason,
		    r->asked.v[i].position, "%s", r->asked.v[i].text);
	c->verdict = c->asked;
	if (*r->deferred != '\0')
		verdict_add(&c->verdict, REASON_DEFERRED_FAILURE, -1,
		    "COMMIT would be refused: %s", r->deferred);
	say_incomplete(c);
	verdict_effect(&r->facts, &x, &c->verdict);
	c->risk = verdict_risk(&c->verdict);
	free(v);
}

/* What RETURNING said of a table that does not agree with the counters may be
 * stale: an AFTER trigger can have written the same rows again. */
static int
forget_unproved(struct change *c, struct err *e)
{
	for (size_t i = 0; i < c->ntables; i++)
		if (!c->tables[i].exact &&
		    store_forget(c->store, c->tables[i].name, e) == -1)
			return -1;
	return 0;
}

/* An added statement's rows go into those that stand.  Others wait for each
 * piece of it. */
enum run_next
run_fold(struct run *r)
{
	const struct count_row *strayed =
	    counts_strayed(&r->counts, &r->change->counts);
	struct err e = ERR_INIT;
	int rc = 0;

	if (strayed != NULL)
		return run_refuse(r, REASON_DEFINITION_CHANGED,
		    "%.128s, which the change has written, goes by another "
		    "name by now or is a partition of another table: the "
		    "change is held as it was, and takes nothing more that "
		    "concerns it; withdraw it and begin anew",
		    counts_shown_as(strayed));
	if (r->adding && (rc = store_fold_step(r->change->store, &e)) == -1)
		return e.code == ERR_LIMIT
		           ? run_too_large(r, e.text)
		           : run_refuse(r, REASON_UNAVAILABLE, "%s", e.text);
	return run_piece(r, rc);
}

enum run_next
run_prove(struct run *r)
{
	struct change *c = r->change;
	struct err e = ERR_INIT;

	r->proved = true;
	c->why_incomplete = NULL;
	for (size_t i = 0; i < c->ntables; i++)
		c->tables[i].named = c->tables[i].viewed = false;
	if (r->relation != NULL && r->relation->kind != 'v')
		table_of(c, r->relation->table)->collateral = false;
	for (size_t i = 0; i < r->counts.n; i++)
		prove_row(r, &r->counts.v[i]);
	prove_leaves(r);
	if (forget_unproved(c, &e) == -1)
		return run_refuse(r, REASON_UNAVAILABLE, "%s", e.text);
	counts_release(&c->counts);
	c->counts = r->counts;
	memset(&r->counts, 0, sizeof(r->counts));
	return RUN_GO;
}

enum run_next
run_judge(struct run *r)
{
	struct change *c = r->change;
	struct err e = ERR_INIT;

	if (store_settle(c->store, is_collateral, c, &e) == -1)
		return e.code == ERR_LIMIT
		           ? run_too_large(r, e.text)
		           : run_refuse(r, REASON_UNAVAILABLE, "%s", e.text);
	count_up(c);
	c->complete = !c->hidden_ddl && !c->uncounted && !r->unsettled;
	for (size_t i = 0; i < c->ntables; i++)
		c->complete = c->complete && c->tables[i].complete;
	sizes_settle(r);
	memcpy(c->deferred, r->deferred, sizeof(c->deferred));
	memcpy(c->insert_lsn, r->insert_lsn, sizeof(c->insert_lsn));
	judge(r);
	return RUN_GO;
}
