/* net: rows deleted and inserted that are one row */
#include "diff/net.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "diff/fold.h"
#include "diff/form.h"
#include "diff/rowcursor.h"

#define HASH 12 /* bytes of SHA-256 */

/*
 * A row deleted, by what an inserted one would have to have in common with it.
 * Sorted by hash, then place; of equal ones the first `used` (kept in the first
 * of them) are taken, in the order of the inserts that took them.
 */
struct gone {
	unsigned char hash[HASH];
	uint32_t used;
	uint64_t at, by; /* offsets: its own, and behind the insert's */
};

struct net {
	struct rowfile *f;
	store_flag *collateral;
	const void *arg;
	struct gone *gone;
	size_t n, size;
	struct digest *d;
	struct form form;
	struct unpacked row;
	struct fold fold;
};

/* --- what a row is known by ---------------------------------------------- */

static const struct store_count *
count_of(const struct net *n, const char *table)
{
	const struct store_count *c;
	size_t i = 0, size = rowfile_counts(n->f, &c);

	while (i < size && strcmp(c[i].table, table) != 0)
		i++;
	return i < size ? &c[i] : NULL;
}

static bool
has_both(const struct store_count *c)
{
	return c != NULL && c->n[IMAGE_INSERT] > 0 && c->n[IMAGE_DELETE] > 0;
}

/* The table and the key, or all columns where there is none. */
static void
hash_row(struct net *n, unsigned char hash[HASH])
{
	const struct columns *c = n->row.key.there     ? &n->row.key
	                          : n->row.after.there ? &n->row.after
	                                               : &n->row.before;
	unsigned char sum[DIGEST_SIZE];
	struct image im = { .table = n->row.table,
		.op = IMAGE_INSERT,
		.ncols = c->n,
		.names = c->names,
		.after = c->values };

	image_hash(&im, &n->form, n->d, sum);
	memcpy(hash, sum, HASH);
}

/* 1: it is an insert or delete (op) that may have its counterpart, and hash is
 * what they have in common; 0: it is none. */
static int
look(struct net *n, const struct rowline *l, enum image_op op,
    unsigned char hash[HASH], struct err *e)
{
	if (unpack_head(&n->row, l, e) == -1)
		return -1;
	if (n->row.op != op || !has_both(count_of(n, n->row.table)))
		return 0;
	if (unpack(&n->row, l, e) == -1)
		return -1;
	hash_row(n, hash);
	return 1;
}

/* --- the rows deleted ----------------------------------------------------- */

static int
compare(const struct gone *g, const unsigned char hash[HASH], uint64_t at)
{
	int c = memcmp(g->hash, hash, HASH);

	return c != 0 ? c : (g->at > at) - (g->at < at);
}

static int
by_hash(const void *a, const void *b)
{
	const struct gone *g = b;

	return compare(a, g->hash, g->at);
}

/* The first that is not before hash and place. */
static size_t
find(const struct net *n, const unsigned char hash[HASH], uint64_t at)
{
	size_t lo = 0, hi = n->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (compare(&n->gone[mid], hash, at) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool
is_of(const struct net *n, size_t i, const unsigned char hash[HASH])
{
	return i < n->n && memcmp(n->gone[i].hash, hash, HASH) == 0;
}

static void
take(struct net *n, const unsigned char hash[HASH], uint64_t at, bool *any)
{
	size_t first = find(n, hash, 0), i = first;

	if (!is_of(n, first, hash))
		return;
	i += n->gone[first].used;
	if (!is_of(n, i, hash))
		return;
	n->gone[first].used++;
	n->gone[i].by = at + 1;
	*any = true;
}

static bool
is_taken(const struct net *n, const unsigned char hash[HASH], uint64_t at)
{
	size_t first = find(n, hash, 0), lo = first, hi;

	if (!is_of(n, first, hash))
		return false;
	hi = first + n->gone[first].used;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (n->gone[mid].by == at + 1)
			return true;
		if (n->gone[mid].by < at + 1)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

/* One way through the rows; op says which of them count. */
static int
gather(struct net *n, enum image_op op, bool *any, struct err *e)
{
	unsigned char hash[HASH];
	struct rowcursor c;
	struct rowline l;
	int r;

	rowcursor_init(&c, n->f);
	while ((r = rowcursor_next(&c, &l, e)) == 1) {
		if ((r = look(n, &l, op, hash, e)) == -1)
			break;
		if (r == 0)
			continue;
		if (op == IMAGE_INSERT) {
			take(n, hash, l.at, any);
			continue;
		}
		if (n->n == n->size) {
			n->size = n->size != 0 ? 2 * n->size : 64;
			n->gone = mem_grow(n->gone, n->size, sizeof(*n->gone));
		}
		memcpy(n->gone[n->n].hash, hash, HASH);
		n->gone[n->n].used = 0;
		n->gone[n->n].by = 0;
		n->gone[n->n++].at = l.at;
	}
	rowcursor_release(&c);
	return r;
}

static bool
flags_differ(const struct net *n)
{
	const struct store_count *c;
	size_t size = rowfile_counts(n->f, &c);

	for (size_t i = 0; i < size; i++) {
		uint64_t all = c[i].n[IMAGE_INSERT] + c[i].n[IMAGE_UPDATE] +
		               c[i].n[IMAGE_DELETE];

		if (c[i].collateral !=
		    (n->collateral(n->arg, c[i].table) ? all : 0))
			return true;
	}
	return false;
}

int
net_find(struct rowfile *f, store_flag *collateral, const void *arg,
    struct net **out, struct err *e)
{
	const struct store_count *c;
	size_t size = rowfile_counts(f, &c), both = 0;
	struct net *n = mem_new(sizeof(*n));
	bool any = false;

	*out = NULL;
	n->f = f;
	n->collateral = collateral;
	n->arg = arg;
	n->d = digest_new();
	for (size_t i = 0; i < size; i++)
		both += has_both(&c[i]);
	if (both > 0) {
		if (gather(n, IMAGE_DELETE, NULL, e) == -1)
			goto fail;
		qsort(n->gone, n->n, sizeof(*n->gone), by_hash);
		if (gather(n, IMAGE_INSERT, &any, e) == -1)
			goto fail;
	}
	if (!any && !flags_differ(n)) {
		net_free(n);
		return 0;
	}
	*out = n;
	return 1;
fail:
	net_free(n);
	return -1;
}

/* --- writing --- */

static int
write_pair(struct net *n, const struct rowline *then, uint64_t at,
    struct rowfile *to, struct err *e)
{
	enum fold_result result = FOLD_NOTHING;
	struct rowcursor c;
	struct rowline now;
	int r = -1;

	rowcursor_init(&c, n->f);
	if (rowcursor_seek(&c, at, e) == -1 ||
	    (r = rowcursor_next(&c, &now, e)) != 1) {
		if (r == 0)
			err_set(e, ERR_BUG, "a row inserted is gone");
		r = -1;
	} else {
		r = fold_rows(&n->fold, then, &now, &result, e);
	}
	rowcursor_release(&c);
	if (r == -1)
		return -1;
	n->fold.im.collateral = n->collateral(n->arg, n->fold.im.table);
	if (result == FOLD_ROW)
		return rowfile_add(to, &n->fold.im, UINT64_MAX, e);
	rowfile_note_unchanged(to, n->fold.im.table, &n->fold.im.was,
	    &n->fold.im.is);
	return 0;
}

static int
write_row(struct net *n, const struct rowline *l, struct rowfile *to,
    struct err *e)
{
	bool collateral;

	if (unpack_head(&n->row, l, e) == -1)
		return -1;
	collateral = n->collateral(n->arg, n->row.table);
	if (n->row.collateral == collateral)
		return rowfile_copy(to, l, e);
	if (fold_none(&n->fold, l, e) == -1)
		return -1;
	n->fold.im.collateral = collateral;
	return rowfile_add(to, &n->fold.im, UINT64_MAX, e);
}

static int
write_one(struct net *n, const struct rowline *l, struct rowfile *to,
    struct err *e)
{
	unsigned char hash[HASH];
	int r;

	if ((r = look(n, l, IMAGE_INSERT, hash, e)) == -1)
		return -1;
	if (r == 1 && is_taken(n, hash, l->at))
		return 0; /* written where its old row stands */
	if ((r = look(n, l, IMAGE_DELETE, hash, e)) == -1)
		return -1;
	if (r == 1) {
		const struct gone *g = &n->gone[find(n, hash, l->at)];

		if (g->by != 0)
			return write_pair(n, l, g->by - 1, to, e);
	}
	return write_row(n, l, to, e);
}

int
net_write(struct net *n, struct rowfile *to, struct err *e)
{
	struct rowcursor c;
	struct rowline l;
	int r;

	rowcursor_init(&c, n->f);
	while ((r = rowcursor_next(&c, &l, e)) == 1)
		if (write_one(n, &l, to, e) == -1) {
			r = -1;
			break;
		}
	rowcursor_release(&c);
	return r;
}

void
net_free(struct net *n)
{
	if (n == NULL)
		return;
	free(n->gone);
	digest_free(n->d);
	form_release(&n->form);
	unpack_release(&n->row);
	fold_release(&n->fold);
	free(n);
}
