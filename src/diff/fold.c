/* fold: two changes of one row as the one change that they come to */
#include "diff/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct place {
	struct rowid id; /* leaf 0: free */
	uint64_t value;
};

/* Open addressing, at most half full. */
struct placemap {
	struct place *places;
	size_t mask;
};

struct placemap *
placemap_new(uint64_t n)
{
	struct placemap *m = mem_new(sizeof(*m));
	size_t size = 16;

	while (size / 2 < n)
		size *= 2;
	m->places = mem_array(size, sizeof(*m->places));
	m->mask = size - 1;
	return m;
}

void
placemap_free(struct placemap *m)
{
	if (m == NULL)
		return;
	free(m->places);
	free(m);
}

static size_t
slot(const struct placemap *m, const struct rowid *r)
{
	uint64_t h = (uint64_t)r->leaf << 32 | r->block;

	h = (h ^ h >> 31) * 0x9e3779b97f4a7c15u + r->item;
	h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u;
	return (size_t)(h ^ h >> 32) & m->mask;
}

uint64_t *
placemap_at(struct placemap *m, const struct rowid *r, bool add)
{
	for (size_t i = slot(m, r);; i = (i + 1) & m->mask) {
		struct place *p = &m->places[i];

		if (p->id.leaf == 0 && !add)
			return NULL;
		if (p->id.leaf == 0)
			p->id = *r;
		if (p->id.leaf == r->leaf && p->id.block == r->block &&
		    p->id.item == r->item)
			return &p->value;
	}
}

static int
unfit(struct err *e)
{
	return err_set(e, ERR_BUG, "two images of one row do not fit");
}

/* A leaf may have its columns in another order than the table it is part of,
 * so they are found by name; mostly they stand at the same place. */
static const struct value *
find(const struct columns *c, const char *name, size_t guess)
{
	if (guess < c->n && strcmp(c->names[guess], name) == 0)
		return &c->values[guess];
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->names[i], name) == 0)
			return &c->values[i];
	return NULL;
}

static void
grow(struct fold *f, size_t n)
{
	if (n < f->size)
		return;
	f->size = n + 1;
	f->key = mem_grow(f->key, f->size, sizeof(*f->key));
	f->after = mem_grow(f->after, f->size, sizeof(*f->after));
}

/* The columns are those of the row that came first. */
static int
build(struct fold *f, const struct columns *after, struct err *e)
{
	const struct columns *shape =
	    f->then.before.there ? &f->then.before : &f->then.after;
	struct image *im = &f->im;

	if (after->there && after->n != shape->n)
		return unfit(e);
	grow(f, shape->n);
	for (size_t i = 0; i < shape->n; i++) {
		const struct value *v = find(after, shape->names[i], i);

		if (after->there && v == NULL)
			return unfit(e);
		if (v != NULL)
			f->after[i] = *v;
		f->key[i] = find(&f->then.key, shape->names[i], i) != NULL;
	}
	im->ncols = shape->n;
	im->names = shape->names;
	im->key = f->key;
	im->before = f->then.before.there ? f->then.before.values : NULL;
	im->after = after->there ? f->after : NULL;
	return 0;
}

int
fold_rows(struct fold *f, const struct rowline *then, const struct rowline *now,
    enum fold_result *out, struct err *e)
{
	/* clang-format off */
	static const struct { bool fits, stays; enum image_op op; }
	net[IMAGE_NOPS][IMAGE_NOPS] = {
		[IMAGE_INSERT][IMAGE_UPDATE] = { true, true, IMAGE_INSERT },
		[IMAGE_INSERT][IMAGE_DELETE] = { true, false, IMAGE_DELETE },
		[IMAGE_UPDATE][IMAGE_UPDATE] = { true, true, IMAGE_UPDATE },
		[IMAGE_UPDATE][IMAGE_DELETE] = { true, true, IMAGE_DELETE },
		[IMAGE_DELETE][IMAGE_INSERT] = { true, true, IMAGE_UPDATE },
	};
	/* clang-format on */

	if (unpack(&f->then, then, e) == -1 || unpack(&f->now, now, e) == -1)
		return -1;
	if (!net[f->then.op][f->now.op].fits)
		return unfit(e);
	f->im.table = f->then.table;
	f->im.collateral = f->then.collateral && f->now.collateral;
	f->im.op = net[f->then.op][f->now.op].op;
	f->im.was = then->was;
	f->im.is = now->is;
	*out = FOLD_NOTHING;
	if (!net[f->then.op][f->now.op].stays)
		return 0;
	if (build(f, &f->now.after, e) == -1)
		return -1;
	*out = image_is_unchanged(&f->im) ? FOLD_UNCHANGED : FOLD_ROW;
	return 0;
}

int
fold_none(struct fold *f, const struct rowline *l, struct err *e)
{
	if (unpack(&f->then, l, e) == -1)
		return -1;
	f->im.table = f->then.table;
	f->im.collateral = f->then.collateral;
	f->im.op = f->then.op;
	f->im.was = l->was;
	f->im.is = l->is;
	return build(f, &f->then.after, e);
}

void
fold_release(struct fold *f)
{
	unpack_release(&f->then);
	unpack_release(&f->now);
	free(f->key);
	free(f->after);
	memset(f, 0, sizeof(*f));
}
