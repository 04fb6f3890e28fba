/* counts: the server's own counters of a transaction, the proof of a diff */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/run.h"
#include "pg/causes.h"
#include "pg/session.h"

#define TELL_MAX 12 /* counts of as many kinds and tables */

void
counts_release(struct counts *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->v[i].name);
		free(c->v[i].root);
	}
	free(c->v);
	memset(c, 0, sizeof(*c));
}

static int
number(const char *s, uint64_t *out, struct err *e)
{
	char *end;

	errno = 0;
	*out = s != NULL ? strtoull(s, &end, 10) : 0;
	if (s == NULL || errno != 0 || end == s || *end != '\0')
		return err_set(e, ERR_DATABASE,
		    "a counter of the server is not a number");
	return 0;
}

/* What TRUNCATE and most DDL take: readers would wait, and counters start
 * anew. */
static bool
is_exclusive(const char *modes)
{
	return strstr(modes, "AccessExclusiveLock") != NULL;
}

static int
read_row(const struct batch *b, size_t i, int row, struct count_row *out,
    struct err *e)
{
	const char *name = batch_cell(b, i, row, COUNT_NAME);
	const char *kind = batch_cell(b, i, row, COUNT_KIND);
	const char *persistence = batch_cell(b, i, row, COUNT_PERSISTENCE);
	const char *modes = batch_cell(b, i, row, COUNT_LOCKS);
	const char *catalog = batch_cell(b, i, row, COUNT_CATALOG);
	const char *root = batch_cell(b, i, row, COUNT_ROOT);
	const char *triggers = batch_cell(b, i, row, COUNT_TRIGGERS);
	const char *defers = batch_cell(b, i, row, COUNT_DEFERS);
	uint64_t oid;

	if (name == NULL || kind == NULL || persistence == NULL)
		return err_set(e, ERR_DATABASE,
		    "the server's counters came without a name");
	if (number(batch_cell(b, i, row, COUNT_OID), &oid, e) == -1 ||
	    number(batch_cell(b, i, row, COUNT_INSERTED), &out->n[IMAGE_INSERT],
		e) == -1 ||
	    number(batch_cell(b, i, row, COUNT_UPDATED), &out->n[IMAGE_UPDATE],
		e) == -1 ||
	    number(batch_cell(b, i, row, COUNT_DELETED), &out->n[IMAGE_DELETE],
		e) == -1)
		return -1;
	out->oid = (uint32_t)oid;
	out->name = mem_strdup(name);
	out->root = root != NULL ? mem_strdup(root) : NULL;
	out->kind = kind[0];
	out->persistence = persistence[0];
	out->exclusive = modes != NULL && is_exclusive(modes);
	out->triggers = triggers != NULL && triggers[0] == 't';
	out->defers = defers == NULL || defers[0] == 't';
	out->catalog = catalog != NULL && catalog[0] == 't';
	return 0;
}

size_t
counts_ask(struct batch *b, const struct change *c)
{
	const char *oids[] = { catalog_oids(c->login->catalog) };

	return batch_add_prepared(b, SESSION_COUNTS, 1, oids);
}

int
counts_read(const struct batch *b, size_t i, struct counts *out, struct err *e)
{
	struct counts c = { 0 };

	if (batch_state(b, i) != BATCH_OK)
		return err_set(e, ERR_DATABASE,
		    "the server's counters could not be read");
	c.v = mem_array((size_t)batch_ntuples(b, i), sizeof(*c.v));
	for (int row = 0; row < batch_ntuples(b, i); row++) {
		if (read_row(b, i, row, &c.v[c.n], e) == -1) {
			counts_release(&c);
			return -1;
		}
		c.n++;
	}
	*out = c;
	return 0;
}

const struct count_row *
counts_find(const struct counts *c, uint32_t oid)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].oid == oid)
			return &c->v[i];
	return NULL;
}

/* A sequence is only locked, also by what is undone; its definition's counters
 * are a catalog's. */
static size_t
count_tables(const struct counts *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += c->v[i].kind != 'S';
	return n;
}

bool
counts_equal(const struct counts *a, const struct counts *b)
{
	if (count_tables(a) != count_tables(b))
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct count_row *other = counts_find(b, a->v[i].oid);

		if (a->v[i].kind == 'S')
			continue;
		if (other == NULL || other->exclusive != a->v[i].exclusive)
			return false;
		/* A savepoint sets the counters of an emptied table back; its
		 * rows are shown by none of them. */
		if (!other->exclusive &&
		    memcmp(other->n, a->v[i].n, sizeof(other->n)) != 0)
			return false;
	}
	return true;
}

const char *
counts_shown_as(const struct count_row *row)
{
	return row->root != NULL ? row->root : row->name;
}

int
counts_events(const struct count_row *row)
{
	static const int event_of[IMAGE_NOPS] = {
		[IMAGE_INSERT] = CAUSE_INSERT,
		[IMAGE_UPDATE] = CAUSE_UPDATE,
		[IMAGE_DELETE] = CAUSE_DELETE,
	};
	int events = 0;

	for (int i = 0; i < IMAGE_NOPS; i++)
		events |= row->n[i] > 0 ? event_of[i] : 0;
	return events;
}

static const struct count_row *
find_strayed(const struct count_row *row, const struct counts *was)
{
	const struct count_row *old = counts_find(was, row->oid);

	return old != NULL && !row->catalog &&
	               (row->kind == 'r' || row->kind == 'm') &&
	               strcmp(counts_shown_as(old), counts_shown_as(row)) != 0
	           ? old
	           : NULL;
}

const struct count_row *
counts_strayed(const struct counts *now, const struct counts *was)
{
	const struct count_row *old = NULL;

	for (size_t i = 0; i < now->n && old == NULL; i++)
		old = find_strayed(&now->v[i], was);
	return old;
}

void
counts_put_back(struct change *c, struct counts *now)
{
	for (size_t i = 0; i < now->n; i++) {
		struct count_row *row = &now->v[i];
		const struct count_row *old = find_strayed(row, &c->counts);

		if (old == NULL)
			continue;
		free(row->name);
		free(row->root);
		row->name = mem_strdup(old->name);
		row->root = old->root != NULL ? mem_strdup(old->root) : NULL;
	}
	counts_release(&c->counts);
	c->counts = *now;
	memset(now, 0, sizeof(*now));
}

/* --- for people --- */

static bool
is_first(const struct counts *c, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(counts_shown_as(&c->v[k]),
			counts_shown_as(&c->v[i])) == 0)
			return false;
	return true;
}

static uint64_t
moved(const struct counts *now, const struct counts *was, const char *table,
    enum image_op op)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < now->n; i++) {
		const struct count_row *row = &now->v[i], *old;

		if ((row->kind != 'r' && row->kind != 'm') ||
		    strcmp(counts_shown_as(row), table) != 0)
			continue;
		old = counts_find(was, row->oid);
		sum += row->n[op] - (old != NULL ? old->n[op] : 0);
	}
	return sum;
}

void
counts_tell(const struct counts *now, const struct counts *was, struct text *t)
{
	static const char *const done[IMAGE_NOPS] = {
		[IMAGE_INSERT] = "inserted",
		[IMAGE_UPDATE] = "updated",
		[IMAGE_DELETE] = "deleted",
	};
	size_t told = 0;

	for (size_t i = 0; i < now->n && told < TELL_MAX; i++) {
		const struct count_row *row = &now->v[i];
		const char *sep = "; ";

		if (row->catalog || !is_first(now, i))
			continue; /* its other parts are in the sum */
		for (int op = 0; op < IMAGE_NOPS; op++) {
			uint64_t n = moved(now, was, counts_shown_as(row),
			    (enum image_op)op);

			if (n == 0)
				continue;
			if (*sep == ';')
				text_addf(t, "; %s: ", counts_shown_as(row));
			else
				text_add(t, sep);
			text_addf(t, "%llu %s", (unsigned long long)n,
			    done[op]);
			sep = ", ";
			told++;
		}
	}
}

enum run_next
run_too_large(struct run *r, const char *why)
{
	/* Behind the proof the counters are the change's, before it the run's.
	 */
	static const struct counts none;
	struct text t = { 0 };
	enum run_next next;

	if (r->proved)
		counts_tell(&r->change->counts, &none, &t);
	else
		counts_tell(&r->counts, &r->change->counts, &t);
	next = run_refuse(r, REASON_DIFF_TOO_LARGE, "%s%s", why, text_str(&t));
	text_release(&t);
	return next;
}
