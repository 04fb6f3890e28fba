/* sweep_narrow: rows of a large leaf found without a scan of it, where the
 * server's counters prove that these are all */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/sweep_narrow.h"

#define TAIL_BLOCKS 64 /* and one for each eight rows */

static sweep_answer asked, old_read, new_read, new_seen;

/* --- small parts --- */

void
sweep_narrow_free(struct sweep *s)
{
	struct narrow *w = s->narrow;

	if (w == NULL)
		return;
	probes_free(w->probes);
	free(w->key);
	free(w->type);
	free(w->top);
	free(w->first);
	free(w->past);
	text_release(&w->old);
	text_release(&w->new);
	free(w);
	s->narrow = NULL;
}

uint64_t
sweep_most_new(const struct sweep *s)
{
	const uint64_t *n = sweep_row(s)->n;

	return n[IMAGE_INSERT] + n[IMAGE_UPDATE];
}

uint64_t
sweep_most_old(const struct sweep *s)
{
	const uint64_t *n = sweep_row(s)->n;

	return n[IMAGE_UPDATE] + n[IMAGE_DELETE];
}

void
sweep_no_way(struct sweep *s)
{
	sweep_narrow_free(s);
	sweep_leaf_whole(s);
}

/* The places of the rows in a spool, which is read from its start after. */
static int
read_places(struct sweep *s, struct side *d, struct text *out, uint64_t *n,
    struct err *e)
{
	size_t ncols = s->leaf->ncolumns;
	struct value *v = mem_array(ncols, sizeof(*v));
	struct rowid id;
	int rc = spool_rewind(d->spool, e);

	while (rc == 0 && (rc = spool_next(d->spool, &id, v, ncols, e)) == 1) {
		rowid_add_ctid(out, &id);
		++*n;
		rc = 0;
	}
	if (rc == 0)
		rc = spool_rewind(d->spool, e);
	text_end_items(out);
	free(v);
	return rc;
}

struct batch *
sweep_narrow_batch(void)
{
	struct batch *b = sweep_guarded_batch();

	batch_add(b,
	    "SELECT pg_catalog.set_config('enable_seqscan', 'off', true), "
	    "pg_catalog.set_config('enable_tidscan', 'on', true)",
	    0, NULL);
	return b;
}

bool
sweep_is_back(const struct batch *b, size_t step)
{
	return batch_state(b, step) == BATCH_OK &&
	       batch_state(b, step + 1) == BATCH_OK;
}

/* --- questions --- */

void
sweep_add_count(const struct sweep *s, const struct text *places,
    struct batch *b)
{
	const char *values[] = { text_str(places) };
	char *sql = mem_printf("SELECT pg_catalog.count(*) FROM ONLY %s AS "
			       "airlock_s WHERE airlock_s.ctid = ANY "
			       "($1::pg_catalog.tid[])",
	    s->leaf->name);

	batch_add(b, sql, 1, values);
	free(sql);
}

void
sweep_ask_old(struct sweep *s, struct batch *b)
{
	sweep_take_rows(s, false, b);
	sweep_add_span(s, b);
	sweep_add_back(b);
	sweep_ask(s, false, b, old_read);
}

void
sweep_ask_new(struct sweep *s, struct batch *b)
{
	sweep_take_rows(s, true, b);
	sweep_add_count(s, &s->narrow->old, b);
	sweep_add_back(b);
	sweep_ask(s, true, b, new_read);
}

static void
ask_old(struct sweep *s)
{
	const struct change *c = s->run->change;
	const char **values =
	    mem_array(probes_nvalues(s->narrow->probes) + 3, sizeof(*values));
	struct batch *b = sweep_narrow_batch();
	struct text sql = { 0 };
	int n = 3;

	values[0] = c->xid;
	values[1] = c->multixact;
	values[2] = s->span_text;
	text_add(&sql, "SELECT ");
	sweep_add_columns(s->leaf, &sql);
	text_addf(&sql,
	    " FROM ONLY %s AS airlock_s WHERE airlock_s.ctid = ANY (ARRAY("
	    "SELECT NULL::pg_catalog.tid WHERE false",
	    s->leaf->name);
	n = probes_add(s->narrow->probes, s->leaf->name, SWEEP_OLD, &sql,
	    values, n);
	text_add(&sql, ")) AND " SWEEP_OLD);
	batch_add(b, text_str(&sql), n, values);
	sweep_ask_old(s, b);
	text_release(&sql);
	free(values);
}

/* What took the place of the old ones; what stands behind the largest key that
 * was, or in the last blocks; what the other tables' rows lead to. */
static void
ask_new(struct sweep *s)
{
	struct narrow *w = s->narrow;
	const char **values =
	    mem_array(probes_nvalues(w->probes) + 4, sizeof(*values));
	uint64_t tail = TAIL_BLOCKS + sweep_most_new(s) / 8;
	struct batch *b = sweep_narrow_batch();
	char block[40];
	struct text sql = { 0 };
	int n = 3;

	values[0] = text_str(&w->old);
	values[1] = s->leaf->name;
	values[2] = block;
	snprintf(block, sizeof(block), "(%" PRIu64 ",0)",
	    w->blocks > tail ? w->blocks - tail : 0);
	text_add(&sql, "SELECT ");
	sweep_add_columns(s->leaf, &sql);
	text_addf(&sql,
	    " FROM ONLY %s AS airlock_s WHERE airlock_s.ctid = ANY (ARRAY("
	    "SELECT pg_catalog.currtid2($2::pg_catalog.text, airlock_u.was) "
	    "FROM pg_catalog.unnest($1::pg_catalog.tid[]) AS airlock_u(was)"
	    " UNION ALL SELECT airlock_s.ctid FROM ONLY %s AS airlock_s WHERE "
	    "airlock_s.ctid >= $3::pg_catalog.tid AND " SWEEP_NEW,
	    s->leaf->name, s->leaf->name);
	if (w->top != NULL) {
		values[n++] = w->top;
		text_addf(&sql,
		    " UNION ALL SELECT airlock_s.ctid FROM ONLY %s AS airlock_s"
		    " WHERE airlock_s.%s > $%d::pg_catalog.text::%s AND " SWEEP_NEW,
		    s->leaf->name, w->key, n, w->type);
	}
	n = probes_add(w->probes, s->leaf->name, SWEEP_NEW, &sql, values, n);
	text_add(&sql, ")) AND " SWEEP_NEW);
	batch_add(b, text_str(&sql), n, values);
	sweep_ask_new(s, b);
	text_release(&sql);
	free(values);
}

/* --- answers --- */

static void
asked(struct sweep *s, struct batch *b)
{
	struct narrow *w = s->narrow;
	size_t step = w->key != NULL ? 4 : 3;
	const char *blocks = batch_cell(b, 2, 0, 0), *there;

	if (!sweep_is_back(b, step + 2)) {
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the observer could not be asked about a table");
		return;
	}
	if (batch_state(b, step) == BATCH_OK)
		w->probes = probes_read(b, step, s->run->change->store);
	there = batch_cell(b, 2, 0, 1);
	s->no_map = s->no_map || there == NULL || there[0] != 't';
	if (blocks == NULL || w->probes == NULL) {
		sweep_no_way(s);
		return;
	}
	w->blocks = strtoull(blocks, NULL, 10);
	if (w->key != NULL && batch_cell(b, 3, 0, 0) != NULL)
		w->top = mem_strdup(batch_cell(b, 3, 0, 0));
	if (sweep_most_old(s) == 0) {
		text_add(&w->old, "{}");
		ask_new(s);
	} else if (probes_any(w->probes)) {
		ask_old(s);
	} else {
		sweep_no_way(s);
	}
}

static void
old_read(struct sweep *s, struct batch *b)
{
	struct narrow *w = s->narrow;
	struct err e = ERR_INIT;

	if (sweep_row_failed(s))
		return;
	if (!sweep_is_back(b, 5)) {
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the observer could not search a table");
		return;
	}
	if (batch_state(b, 2) != BATCH_OK || !sweep_span_holds(s, b, 3)) {
		sweep_no_way(s);
		return;
	}
	if (!w->many && read_places(s, &s->before, &w->old, &w->nold, &e) == -1)
		(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
	else if (!w->many && w->nold < sweep_most_old(s))
		sweep_no_way(s);
	else if (w->first != NULL)
		sweep_visible_new(s);
	else
		ask_new(s);
}

static void
pair(struct sweep *s, const char *doubt)
{
	log_debug("%s: %s was not scanned", s->run->change->id,
	    sweep_row(s)->name);
	sweep_narrow_free(s);
	s->doubt = doubt;
	sweep_pair(s);
}

static void
pair_many(struct sweep *s)
{
	struct err e = ERR_INIT;

	if (spool_rewind(s->after.spool, &e) == -1 ||
	    spool_rewind(s->before.spool, &e) == -1)
		(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
	else
		pair(s, "it is larger than sweep_limit");
}

static void
settle(struct sweep *s)
{
	struct narrow *w = s->narrow;

	if (w->nnew - w->seen != sweep_most_new(s)) {
		sweep_no_way(s);
		return;
	}
	pair(s, "its old rows and new ones do not fit together");
}

static void
new_read(struct sweep *s, struct batch *b)
{
	struct narrow *w = s->narrow;
	const char *seen = batch_cell(b, 3, 0, 0);
	struct err e = ERR_INIT;

	if (sweep_row_failed(s))
		return;
	if (!sweep_is_back(b, 5)) {
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the transaction could not be put back after a search");
		return;
	}
	if (batch_state(b, 2) != BATCH_OK || seen == NULL) {
		sweep_no_way(s);
		return;
	}
	if (w->many) {
		pair_many(s);
		return;
	}
	if (read_places(s, &s->after, &w->new, &w->nnew, &e) == -1) {
		(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
		return;
	}
	/* Old rows that the writer still sees were only locked. */
	if (w->nold - strtoull(seen, NULL, 10) != sweep_most_old(s) ||
	    w->nnew < sweep_most_new(s)) {
		sweep_no_way(s);
		return;
	}
	if (w->nnew == 0) {
		settle(s);
		return;
	}
	b = sweep_narrow_batch();
	sweep_add_count(s, &w->new, b);
	sweep_add_back(b);
	sweep_ask(s, false, b, new_seen);
}

static void
new_seen(struct sweep *s, struct batch *b)
{
	const char *seen = batch_cell(b, 2, 0, 0);

	if (!sweep_is_back(b, 4)) {
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the observer could not search a table");
	} else if (seen == NULL) {
		sweep_no_way(s);
	} else {
		s->narrow->seen = strtoull(seen, NULL, 10);
		settle(s);
	}
}

/* --- the beginning --- */

static void
note_key(struct sweep *s)
{
	const struct column *key = NULL;

	for (size_t i = 0; i < s->leaf->ncolumns; i++) {
		if (!s->leaf->columns[i].key)
			continue;
		if (key != NULL)
			return; /* of more than one column */
		key = &s->leaf->columns[i];
	}
	if (key == NULL || sweep_row(s)->n[IMAGE_INSERT] == 0)
		return;
	s->narrow->key = mem_strdup(key->quoted);
	s->narrow->type = mem_strdup(key->type);
}

bool
sweep_narrow(struct sweep *s)
{
	const struct change *c = s->run->change;
	struct text names = { 0 };
	char oid[16], *sql;
	const char *values[] = { oid, NULL };
	struct batch *b;

	if (s->size <= s->run->gate->o->limits.narrow_above ||
	    sweep_most_new(s) + sweep_most_old(s) > ROWS_MAX)
		return false;
	s->narrow = mem_new(sizeof(*s->narrow));
	note_key(s);
	snprintf(oid, sizeof(oid), "%u", s->leaf->oid);
	for (size_t i = 0; i < c->ntables; i++)
		text_add_string(&names, c->tables[i].name);
	text_end_items(&names);
	values[1] = text_str(&names);
	b = sweep_narrow_batch();
	batch_add(b,
	    "SELECT pg_catalog.pg_relation_size($1::pg_catalog.oid) / "
	    "pg_catalog.current_setting('block_size')::pg_catalog.int8, "
	    "EXISTS (SELECT FROM pg_catalog.pg_extension e "
	    "WHERE e.extname = 'pg_visibility')",
	    1, values);
	if (s->narrow->key != NULL) {
		sql = mem_printf("SELECT airlock_s.%s FROM ONLY %s AS airlock_s"
				 " ORDER BY 1 DESC LIMIT 1",
		    s->narrow->key, s->leaf->name);
		batch_add(b, sql, 0, NULL);
		free(sql);
	}
	batch_add(b, probes_sql, 2, values);
	sweep_add_back(b);
	sweep_ask(s, false, b, asked);
	text_release(&names);
	return true;
}
