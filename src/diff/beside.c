/* beside: the hashes of the replay digest, made while rows are stored */
#include "diff/beside.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "diff/replay.h"

void
beside_release(struct beside *b)
{
	seal_free(b->seal);
	for (size_t i = 0; i < b->n; i++) {
		free(b->tables[i].name);
		json_decref(b->tables[i].filled);
	}
	free(b->tables);
	memset(b, 0, sizeof(*b));
}

void
beside_give_up(struct beside *b)
{
	beside_release(b);
	b->given_up = true;
}

static bool
same(const json_t *a, const json_t *b)
{
	return a == b || (json_array_size(a) == 0 && json_array_size(b) == 0) ||
	       json_equal(a, b);
}

/* False where something else was left out of the table before. */
static bool
note(struct beside *b, const struct image *im)
{
	struct beside_table *t;

	for (size_t i = b->n; i-- > 0;)
		if (b->tables[i].collateral == im->collateral &&
		    strcmp(b->tables[i].name, im->table) == 0)
			return same(b->tables[i].filled, im->filled);
	b->tables = mem_grow(b->tables, b->n + 1, sizeof(*b->tables));
	t = &b->tables[b->n++];
	t->name = mem_strdup(im->table);
	t->collateral = im->collateral;
	t->filled = json_incref((json_t *)(uintptr_t)im->filled);
	return true;
}

static void
add(struct beside *b, const struct image *im, uint64_t rows,
    const unsigned char hash[DIGEST_SIZE], struct form *f, struct digest *d,
    int dirfd)
{
	unsigned char other[DIGEST_SIZE];
	struct err ignored = ERR_INIT;

	if (b->seal == NULL && rows == 0)
		b->seal = seal_new(dirfd);
	if (b->seal == NULL || !note(b, im)) {
		beside_give_up(b);
		return;
	}
	if (im->filled != NULL)
		image_hash_replay(im, f, im->filled, d, other);
	if (seal_add(b->seal, im->filled != NULL ? other : hash, &ignored) ==
	    -1)
		beside_give_up(b);
}

/* Of most statements nothing is left out. */
void
beside_add(struct beside *b, const struct image *im, uint64_t rows,
    const unsigned char hash[DIGEST_SIZE], struct form *f, struct digest *d,
    int dirfd)
{
	if (!b->given_up && (b->seal != NULL || im->filled != NULL))
		add(b, im, rows, hash, f, d, dirfd);
}

struct seal *
beside_seal(const struct beside *b, const json_t *header)
{
	for (size_t i = 0; i < b->n; i++)
		if (!same(b->tables[i].filled,
			replay_filled(header, b->tables[i].name,
			    b->tables[i].collateral)))
			return NULL;
	return b->seal;
}
