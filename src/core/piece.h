/* piece: some rows of a leaf in memory, and places that were met */
#ifndef AIRLOCK_CORE_PIECE_H
#define AIRLOCK_CORE_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "core/spool.h"
#include "diff/image.h"

/* A piece is full with so many rows, or values, or bytes of them and no more
 * than a row above: it is in memory as a whole. */
#define PIECE_ROWS 1000
#define PIECE_VALUES 16384
#define PIECE_BYTES ((size_t)256 << 10)

struct piece {
	size_t n;
	struct rowid *ids;
	struct value *values; /* n * columns; they lie in bytes */
	struct text bytes;
	bool last; /* by piece_fill: the spool has no more */
};

void piece_begin(struct piece *p, size_t ncols);
void piece_release(struct piece *p);
void piece_reset(struct piece *p);
bool piece_is_full(const struct piece *p, size_t ncols);
/* Copies a row.  The values can be read when piece_end was called. */
void piece_add(struct piece *p, const struct rowid *id, const struct value *v,
    size_t ncols);
void piece_end(struct piece *p, size_t ncols);
/* The next ones of a spool, in place of those there. */
int piece_fill(struct piece *p, struct spool *from, size_t ncols,
    struct err *e) MUST_CHECK;
/* As an array of tid.  Gives. */
char *piece_places(const struct piece *p);

/* Places; met_has finds those that were there when they were last sorted. */
struct met {
	uint64_t *v;
	size_t n, size, known;
};
void met_add(struct met *m, uint64_t place);
void met_sort(struct met *m);
bool met_has(const struct met *m, uint64_t place);
void met_release(struct met *m);

#endif
