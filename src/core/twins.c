/* twins: rows of a table without a key that are the same before and after */
#include "core/twins.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define HASH 16 /* bytes of SHA-256 */

struct twin {
	unsigned char hash[HASH];
	uint32_t left, taken;
};

struct twins {
	struct twin *v;
	size_t n, size;
	bool sorted;
	struct digest *d;
};

struct twins *
twins_new(void)
{
	struct twins *t = mem_new(sizeof(*t));

	t->d = digest_new();
	return t;
}

void
twins_free(struct twins *t)
{
	if (t == NULL)
		return;
	digest_free(t->d);
	free(t->v);
	free(t);
}

static void
hash(struct twins *t, const struct value *v, size_t n,
    unsigned char out[DIGEST_SIZE])
{
	digest_reset(t->d);
	for (size_t i = 0; i < n; i++)
		if (v[i].p != NULL)
			digest_field(t->d, v[i].p, v[i].len);
		else
			digest_null(t->d);
	digest_end(t->d, out);
}

void
twins_add(struct twins *t, const struct value *v, size_t n)
{
	unsigned char sum[DIGEST_SIZE];

	if (t->n == t->size) {
		t->size = t->size != 0 ? t->size * 2 : 64;
		t->v = mem_grow(t->v, t->size, sizeof(*t->v));
	}
	hash(t, v, n, sum);
	memcpy(t->v[t->n].hash, sum, HASH);
	t->v[t->n].left = 1;
	t->v[t->n++].taken = 0;
}

static int
by_hash(const void *a, const void *b)
{
	return memcmp(a, b, HASH); /* the first member */
}

/* Equal ones become one that counts them. */
static void
sort(struct twins *t)
{
	size_t to = 0;

	if (t->n > 0)
		qsort(t->v, t->n, sizeof(*t->v), by_hash);
	for (size_t i = 0; i < t->n; i++) {
		if (to > 0 && by_hash(&t->v[to - 1], &t->v[i]) == 0)
			t->v[to - 1].left++;
		else
			t->v[to++] = t->v[i];
	}
	t->n = to;
	t->sorted = true;
}

static struct twin *
find(struct twins *t, const struct value *v, size_t n)
{
	unsigned char sum[DIGEST_SIZE];

	if (!t->sorted)
		sort(t);
	hash(t, v, n, sum);
	return t->n > 0 ? bsearch(sum, t->v, t->n, sizeof(*t->v), by_hash)
	                : NULL;
}

bool
twins_take(struct twins *t, const struct value *v, size_t n)
{
	struct twin *w = find(t, v, n);

	if (w == NULL || w->left == 0)
		return false;
	w->left--;
	w->taken++;
	return true;
}

bool
twins_was_taken(struct twins *t, const struct value *v, size_t n)
{
	struct twin *w = find(t, v, n);

	if (w == NULL || w->taken == 0)
		return false;
	w->taken--;
	return true;
}
