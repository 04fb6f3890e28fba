/* sweep_read: new rows of a leaf from the writer, old ones from the observer,
 * into spools */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/sweep.h"

static sweep_answer after_read;

void
sweep_value(const PGresult *res, int row, int col, struct value *v)
{
	v->len = (size_t)PQgetlength(res, row, col);
	v->p = v->len == 0 && PQgetisnull(res, row, col)
	           ? NULL
	           : PQgetvalue(res, row, col);
}

static int
keep(struct sweep *s, struct side *d, const PGresult *res, struct err *e)
{
	size_t n = s->leaf->ncolumns;
	struct rowid id = { .leaf = s->leaf->oid };

	if (rowid_parse_ctid(PQgetvalue(res, 0, 0), &id, e) == -1)
		return -1;
	for (size_t i = 0; i < n; i++)
		sweep_value(res, 0, 1 + (int)i, &s->cells[i]);
	return spool_add(d->spool, &id, s->cells, n, e);
}

static void
after_row(void *arg, const PGresult *res)
{
	struct sweep *s = arg;

	if (s->row_err.code == ERR_NONE &&
	    keep(s, &s->after, res, &s->row_err) == -1)
		pool_stop(s->run->change->login->pool, s->run->change->link);
}

static void
before_row(void *arg, const PGresult *res)
{
	struct sweep *s = arg;

	if (s->row_err.code == ERR_NONE &&
	    keep(s, &s->before, res, &s->row_err) == -1)
		pool_stop(s->run->gate->observer->pool, s->observer);
}

void
sweep_take_rows(struct sweep *s, bool writer, struct batch *b)
{
	batch_rows(b, writer ? after_row : before_row, s);
}

void
sweep_read_after(struct sweep *s)
{
	struct batch *b = sweep_guarded_batch();
	struct text sql = { 0 };

	sweep_add_scan(s, SWEEP_NEW, &sql);
	batch_add(b, text_str(&sql), 0, NULL);
	sweep_take_rows(s, true, b);
	sweep_add_back(b);
	sweep_ask(s, true, b, after_read);
	text_release(&sql);
}

static bool
open_spool(struct sweep *s, struct side *d)
{
	struct err e = ERR_INIT;

	spool_close(d->spool);
	d->spool = NULL;
	if (spool_open(s->run->gate->changes_fd, &d->spool, &e) == 0)
		return true;
	(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
	return false;
}

bool
sweep_open_spools(struct sweep *s)
{
	return open_spool(s, &s->after) && open_spool(s, &s->before);
}

void
sweep_set_span(struct sweep *s, uint64_t span)
{
	s->span = span < SPAN_ANY ? span : SPAN_ANY;
	snprintf(s->span_text, sizeof(s->span_text), "%llu",
	    (unsigned long long)s->span);
}

void
sweep_add_span(struct sweep *s, struct batch *b)
{
	const char *values[] = { s->run->change->multixact };

	batch_add(b, "SELECT " SWEEP_SPAN("$1"), 1, values);
}

bool
sweep_span_holds(const struct sweep *s, const struct batch *b, size_t i)
{
	const char *now = batch_cell(b, i, 0, 0);

	return s->span == SPAN_ANY ||
	       (now != NULL && strtoull(now, NULL, 10) < s->span);
}

bool
sweep_row_failed(struct sweep *s)
{
	if (s->row_err.code == ERR_NONE)
		return false;
	(void)sweep_fail(s, REASON_UNAVAILABLE, s->row_err.text);
	return true;
}

static void
after_read(struct sweep *s, struct batch *b)
{
	struct err e = ERR_INIT;

	if (sweep_row_failed(s))
		return;
	if (batch_state(b, 4) != BATCH_OK || batch_state(b, 3) != BATCH_OK) {
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the transaction could not be put back after a search");
		return;
	}
	if (batch_state(b, 1) != BATCH_OK) {
		sweep_give_up(s, "the writer could not read it");
		return;
	}
	if (!s->lazy)
		sweep_read_before(s);
	else if (spool_rewind(s->after.spool, &e) == -1)
		(void)sweep_fail(s, REASON_UNAVAILABLE, e.text);
	else
		sweep_pair_after(s);
}
