/* counts: the server's own counters of a transaction, the proof of a diff */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/internal.h"
#include "pg/session.h"

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
	out->catalog = catalog != NULL && catalog[0] == 't';
	return 0;
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

bool
counts_equal(const struct counts *a, const struct counts *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct count_row *other = counts_find(b, a->v[i].oid);

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
