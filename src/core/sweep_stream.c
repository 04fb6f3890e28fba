/* sweep_stream: old rows of a leaf that is read whole, from the observer while
 * the writer is asked what became of those before */
#include "base/mem.h"
#include "core/sweep.h"

static sweep_answer all_read, heirs_told;

static bool
is_asking(const struct sweep *s)
{
	return s->asked[true] != NULL;
}

static bool
is_reading(const struct sweep *s)
{
	return s->asked[false] != NULL;
}

static void
swap(struct piece *a, struct piece *b)
{
	struct piece was = *a;

	*a = *b;
	*b = was;
}

/* The writer is asked about the rows that have come; others may. */
static void
ask(struct sweep *s)
{
	piece_end(&s->coming, s->leaf->ncolumns);
	swap(&s->coming, &s->before.piece);
	sweep_ask_heirs(s, heirs_told);
}

/*
 * All of it has been read and told.  Where the bound on multixacts did not
 * hold, rows may be missing, and it is read once more without; those that were
 * met are passed over then.
 */
static void
end(struct sweep *s)
{
	if (s->given_up != NULL) {
		sweep_give_up(s, s->given_up);
	} else if (!s->span_held) {
		sweep_set_span(s, SPAN_ANY);
		met_sort(&s->heirs);
		met_sort(&s->gone);
		sweep_read_before(s);
	} else {
		sweep_before_done(s);
	}
}

static void
old_row(void *arg, const PGresult *res)
{
	struct sweep *s = arg;
	size_t n = s->leaf->ncolumns;
	struct rowid id = { .leaf = s->leaf->oid };

	if (s->row_err.code != ERR_NONE || s->given_up != NULL || s->failed)
		return;
	if (rowid_parse_ctid(PQgetvalue(res, 0, 0), &id, &s->row_err) == -1) {
		pool_stop(s->run->gate->observer->pool, s->observer);
		return;
	}
	for (size_t i = 0; i < n; i++)
		sweep_value(res, 0, 1 + (int)i, &s->cells[i]);
	piece_add(&s->coming, &id, s->cells, n);
	if (!piece_is_full(&s->coming, n))
		return;
	if (is_asking(s))
		link_hold(s->observer);
	else
		ask(s);
}

static void
heirs_told(struct sweep *s, struct batch *b)
{
	size_t n = s->leaf->ncolumns;
	struct piece *told = &s->before.piece;
	bool next =
	    s->coming.n > 0 && (!is_reading(s) || piece_is_full(&s->coming, n));

	if (!sweep_heirs_told(s, b))
		return;
	/* The writer first, so that it works meanwhile. */
	if (next) {
		ask(s);
		told = &s->coming;
	}
	if (!sweep_take_before(s, told, b))
		return;
	piece_reset(told);
	if (is_reading(s))
		link_go_on(s->observer);
	else if (!is_asking(s))
		end(s);
}

static void
all_read(struct sweep *s, struct batch *b)
{
	if (sweep_row_failed(s))
		return;
	if (batch_state(b, 0) != BATCH_OK) {
		(void)sweep_fail(s, REASON_UNAVAILABLE,
		    "the observer could not search a table");
		return;
	}
	s->span_held = sweep_span_holds(s, b, 1);
	if (is_asking(s))
		return;
	if (s->coming.n > 0 && s->given_up == NULL)
		ask(s);
	else
		end(s);
}

void
sweep_read_before(struct sweep *s)
{
	const struct change *c = s->run->change;
	struct batch *b = batch_new();
	struct text sql = { 0 };
	const char *values[] = { c->xid, c->multixact, s->span_text };

	sweep_add_scan(s, SWEEP_OLD, &sql);
	batch_add(b, text_str(&sql), 3, values);
	batch_rows(b, old_row, s);
	sweep_add_span(s, b);
	sweep_ask(s, false, b, all_read);
	text_release(&sql);
}
