/* batch: statements that travel to the server together, and what came back */
#include "pg/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct batch *
batch_new(void)
{
	return mem_new(sizeof(struct batch));
}

void
batch_free(struct batch *b)
{
	if (b == NULL)
		return;
	for (size_t i = 0; i < b->n; i++) {
		for (int k = 0; k < b->v[i].n; k++)
			free(b->v[i].values[k]);
		free(b->v[i].values);
		free(b->v[i].text);
		PQclear(b->v[i].result);
	}
	free(b->v);
	free(b);
}

static struct batch_step *
step(struct batch *b)
{
	if (b->n == b->size) {
		b->size = b->size != 0 ? b->size * 2 : 8;
		b->v = mem_grow(b->v, b->size, sizeof(*b->v));
	}
	memset(&b->v[b->n], 0, sizeof(b->v[0]));
	return &b->v[b->n++];
}

static size_t
add(struct batch *b, bool prepared, const char *text, int n,
    const char *const *values)
{
	struct batch_step *s = step(b);

	s->text = mem_strdup(text);
	s->prepared = prepared;
	s->n = n;
	s->values = mem_array((size_t)n, sizeof(*s->values));
	for (int i = 0; i < n; i++)
		s->values[i] = values[i] != NULL ? mem_strdup(values[i]) : NULL;
	return b->n - 1;
}

size_t
batch_add(struct batch *b, const char *sql, int n, const char *const *values)
{
	return add(b, false, sql, n, values);
}

size_t
batch_add_kept(struct batch *b, const char *sql, int n,
    const char *const *values)
{
	size_t i = add(b, false, sql, n, values);

	b->v[i].kept = sql;
	return i;
}

size_t
batch_add_prepared(struct batch *b, const char *name, int n,
    const char *const *values)
{
	return add(b, true, name, n, values);
}

void
batch_rows(struct batch *b, batch_row *row, void *arg)
{
	b->v[b->n - 1].row = row;
	b->v[b->n - 1].arg = arg;
}

void
batch_optional(struct batch *b)
{
	b->v[b->n - 1].optional = true;
}

void
batch_sync(struct batch *b)
{
	step(b);
}

void
batch_sync_tell(struct batch *b, batch_told *told, void *arg)
{
	struct batch_step *s = step(b);

	s->told = told;
	s->arg = arg;
}

enum batch_state
batch_state(const struct batch *b, size_t i)
{
	return b->v[i].state;
}

const PGresult *
batch_result(const struct batch *b, size_t i)
{
	return b->v[i].result;
}

size_t
batch_failed(const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->v[i].text != NULL && b->v[i].state == BATCH_FAILED &&
		    !b->v[i].optional)
			return i;
	return (size_t)-1;
}

bool
batch_is_ok(const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->v[i].text != NULL && b->v[i].state != BATCH_OK &&
		    !b->v[i].optional)
			return false;
	return !b->is_lost;
}

bool
batch_is_lost(const struct batch *b)
{
	return b->is_lost;
}

const struct err *
batch_err(const struct batch *b)
{
	return &b->lost;
}

const char *
batch_cell(const struct batch *b, size_t i, int row, int col)
{
	const PGresult *r = b->v[i].result;

	if (r == NULL || row >= PQntuples(r) || col >= PQnfields(r) ||
	    PQgetisnull(r, row, col))
		return NULL;
	return PQgetvalue(r, row, col);
}

int
batch_ntuples(const struct batch *b, size_t i)
{
	return b->v[i].result != NULL ? PQntuples(b->v[i].result) : 0;
}
