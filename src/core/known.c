/* known: what the parser said of statements that came before */
#include "core/known.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/mem.h"

#define SHARE 16 /* one statement may take so much of all: bytes / SHARE */

struct entry {
	TAILQ_ENTRY(entry) next;
	struct text key;
	uint64_t hash; /* of the key, to pass the others by */
	struct facts facts;
	struct rewrite_result rewrite;
	size_t size;
};

struct known {
	TAILQ_HEAD(entries_head, entry) entries; /* most recently used first */
	size_t bytes, used;
};

static void
add_part(struct text *key, const char *s)
{
	text_addc(key, s != NULL ? '+' : '-');
	text_addn(key, s != NULL ? s : "", s != NULL ? strlen(s) + 1 : 0);
}

/* No text holds a NUL, so that the parts cannot run into each other. */
void
known_key(struct text *key, const char *sql, const struct rewrite_edit *edit)
{
	add_part(key, sql);
	if (edit == NULL)
		return;
	add_part(key, edit->from);
	add_part(key, edit->where);
	add_part(key, edit->returning);
}

/* FNV-1a: a collision costs a comparison, no more. */
static uint64_t
hash(const struct text *t)
{
	uint64_t h = 14695981039346656037U;

	for (size_t i = 0; i < t->len; i++)
		h = (h ^ (unsigned char)t->s[i]) * 1099511628211U;
	return h;
}

static struct entry *
find(struct known *k, const struct text *key, uint64_t h)
{
	struct entry *n;

	TAILQ_FOREACH (n, &k->entries, next)
		if (n->hash == h && n->key.len == key->len &&
		    memcmp(n->key.s, key->s, key->len) == 0)
			return n;
	return NULL;
}

static void
drop(struct known *k, struct entry *n)
{
	TAILQ_REMOVE(&k->entries, n, next);
	k->used -= n->size;
	text_release(&n->key);
	facts_release(&n->facts);
	rewrite_result_release(&n->rewrite);
	free(n);
}

bool
known_find(struct known *k, const struct text *key, struct facts *f,
    struct rewrite_result *r)
{
	struct entry *n = find(k, key, hash(key));

	if (n == NULL)
		return false;
	TAILQ_REMOVE(&k->entries, n, next);
	TAILQ_INSERT_HEAD(&k->entries, n, next);
	facts_copy(f, &n->facts);
	rewrite_result_copy(r, &n->rewrite);
	return true;
}

void
known_add(struct known *k, struct text *key, const struct facts *f,
    const struct rewrite_result *r, size_t size)
{
	struct entry *n = mem_new(sizeof(*n));

	n->key = *key;
	memset(key, 0, sizeof(*key));
	n->hash = hash(&n->key);
	n->size = size + sizeof(*n) + n->key.len;
	if (f != NULL)
		facts_copy(&n->facts, f);
	if (r != NULL)
		rewrite_result_copy(&n->rewrite, r);
	TAILQ_INSERT_HEAD(&k->entries, n, next);
	k->used += n->size;
	if (n->size > k->bytes / SHARE)
		drop(k, n);
	while (k->used > k->bytes)
		drop(k, TAILQ_LAST(&k->entries, entries_head));
}

struct known *
known_new(size_t bytes)
{
	struct known *k = mem_new(sizeof(*k));

	k->bytes = bytes;
	TAILQ_INIT(&k->entries);
	return k;
}

void
known_free(struct known *k)
{
	struct entry *n;

	if (k == NULL)
		return;
	while ((n = TAILQ_FIRST(&k->entries)) != NULL)
		drop(k, n);
	free(k);
}
