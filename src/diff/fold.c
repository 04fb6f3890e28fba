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

static json_t *
load(const struct rowline *l)
{
	return json_loadb(l->line, l->json_len, 0, NULL);
}

static void
grow(struct fold *f, size_t n)
{
	if (n <= f->size)
		return;
	f->names = mem_grow(f->names, n, sizeof(*f->names));
	f->key = mem_grow(f->key, n, sizeof(*f->key));
	f->before = mem_grow(f->before, n, sizeof(*f->before));
	f->after = mem_grow(f->after, n, sizeof(*f->after));
	f->size = n;
}

static void
take_names(struct fold *f, json_t *columns, const json_t *key)
{
	const char *name;
	json_t *v;

	grow(f, json_object_size(columns) + 1);
	f->im.ncols = 0;
	json_object_foreach(columns, name, v) {
		f->names[f->im.ncols] = name;
		f->key[f->im.ncols++] = json_object_get(key, name) != NULL;
	}
}

/* A leaf may have its columns in another order than the table it is part of,
 * so they are found by name. */
static int
take_values(struct fold *f, const json_t *columns, struct value *v,
    struct err *e)
{
	if (json_object_size(columns) != f->im.ncols)
		return unfit(e);
	for (size_t i = 0; i < f->im.ncols; i++) {
		const json_t *cell = json_object_get(columns, f->names[i]);

		if (cell == NULL)
			return unfit(e);
		v[i].p = json_string_value(cell);
		v[i].len = json_string_length(cell);
	}
	return 0;
}

static enum image_op
op_of(const json_t *row)
{
	if (json_is_null(json_object_get(row, "before")))
		return IMAGE_INSERT;
	return json_is_null(json_object_get(row, "after")) ? IMAGE_DELETE :
							     IMAGE_UPDATE;
}

static int
build(struct fold *f, const struct rowline *then, const struct rowline *now,
    struct err *e)
{
	json_t *before = json_object_get(f->was, "before");
	json_t *after = json_object_get(f->is, "after");
	struct image *im = &f->im;

	take_names(f, json_is_object(before) ? before : after,
	    json_object_get(f->was, "key"));
	im->names = f->names;
	im->key = f->key;
	im->before = im->after = NULL;
	if (json_is_object(before)) {
		if (take_values(f, before, f->before, e) == -1)
			return -1;
		im->before = f->before;
	}
	if (json_is_object(after)) {
		if (take_values(f, after, f->after, e) == -1)
			return -1;
		im->after = f->after;
	}
	im->was = then->was;
	im->is = now->is;
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
	};
	/* clang-format on */
	enum image_op was, is;

	json_decref(f->was);
	json_decref(f->is);
	f->was = load(then);
	f->is = load(now);
	if (f->was == NULL || f->is == NULL)
		return unfit(e);
	was = op_of(f->was);
	is = op_of(f->is);
	if (!net[was][is].fits)
		return unfit(e);
	f->im.table = json_string_value(json_object_get(f->was, "table"));
	/* Once collateral, always so: it is a warning. */
	f->im.collateral =
	    json_is_true(json_object_get(f->was, "collateral")) ||
	    json_is_true(json_object_get(f->is, "collateral"));
	f->im.op = net[was][is].op;
	*out = FOLD_NOTHING;
	if (!net[was][is].stays)
		return 0;
	if (f->im.table == NULL || build(f, then, now, e) == -1)
		return unfit(e);
	*out = image_is_unchanged(&f->im) ? FOLD_UNCHANGED : FOLD_ROW;
	return 0;
}

void
fold_release(struct fold *f)
{
	json_decref(f->was);
	json_decref(f->is);
	free(f->names);
	free(f->key);
	free(f->before);
	free(f->after);
	memset(f, 0, sizeof(*f));
}
