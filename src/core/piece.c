/* piece: some rows of a leaf in memory, and places that were met */
#include "core/piece.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define BYTES_KEPT ((size_t)1 << 20) /* more is given back */

static size_t
rows_max(size_t ncols)
{
	size_t n = ncols > 0 ? PIECE_VALUES / ncols : PIECE_ROWS;

	return n < PIECE_ROWS ? n : PIECE_ROWS; /* 1,600 columns at most */
}

void
piece_begin(struct piece *p, size_t ncols)
{
	p->ids = mem_array(rows_max(ncols), sizeof(*p->ids));
	p->values = mem_array(rows_max(ncols) * ncols, sizeof(*p->values));
}

void
piece_release(struct piece *p)
{
	free(p->ids);
	free(p->values);
	text_release(&p->bytes);
	memset(p, 0, sizeof(*p));
}

void
piece_reset(struct piece *p)
{
	if (p->bytes.size > BYTES_KEPT)
		text_release(&p->bytes);
	text_reset(&p->bytes);
	p->n = 0;
	p->last = false;
}

bool
piece_is_full(const struct piece *p, size_t ncols)
{
	return p->n == rows_max(ncols) || p->bytes.len >= PIECE_BYTES;
}

void
piece_add(struct piece *p, const struct rowid *id, const struct value *v,
    size_t ncols)
{
	p->ids[p->n] = *id;
	for (size_t i = 0; i < ncols; i++) {
		p->values[p->n * ncols + i] = v[i];
		if (v[i].p != NULL)
			text_addn(&p->bytes, v[i].p, v[i].len);
	}
	p->n++;
}

/* The memory has stopped moving. */
void
piece_end(struct piece *p, size_t ncols)
{
	size_t at = 0;

	for (size_t i = 0; i < p->n * ncols; i++)
		if (p->values[i].p != NULL) {
			p->values[i].p = text_str(&p->bytes) + at;
			at += p->values[i].len;
		}
}

int
piece_fill(struct piece *p, struct spool *from, size_t ncols, struct err *e)
{
	struct value *v = mem_array(ncols, sizeof(*v));
	struct rowid id;
	int rc = 1;

	piece_reset(p);
	while (!piece_is_full(p, ncols) &&
	       (rc = spool_next(from, &id, v, ncols, e)) == 1)
		piece_add(p, &id, v, ncols);
	piece_end(p, ncols);
	p->last = rc == 0;
	free(v);
	return rc == -1 ? -1 : 0;
}

char *
piece_places(const struct piece *p)
{
	struct text t = { 0 };

	for (size_t i = 0; i < p->n; i++)
		rowid_add_ctid(&t, &p->ids[i]);
	text_end_items(&t);
	return text_take(&t);
}

/* --- places --- */

static int
by_place(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void
met_add(struct met *m, uint64_t place)
{
	if (m->n == m->size) {
		m->size += m->size / 8 + 1024;
		m->v = mem_grow(m->v, m->size, sizeof(*m->v));
	}
	m->v[m->n++] = place;
}

/* Most come in order, and sorting takes as much memory again. */
void
met_sort(struct met *m)
{
	size_t i = 1;

	while (i < m->n && m->v[i - 1] <= m->v[i])
		i++;
	if (i < m->n)
		qsort(m->v, m->n, sizeof(*m->v), by_place);
	m->known = m->n;
}

bool
met_has(const struct met *m, uint64_t place)
{
	return m->known > 0 &&
	       bsearch(&place, m->v, m->known, sizeof(place), by_place) != NULL;
}

void
met_release(struct met *m)
{
	free(m->v);
	memset(m, 0, sizeof(*m));
}
