/* beside: the hashes of the replay digest, made while rows are stored */
#ifndef AIRLOCK_DIFF_BESIDE_H
#define AIRLOCK_DIFF_BESIDE_H

#include "diff/form.h"
#include "diff/image.h"
#include "diff/seal.h"

/*
 * Saves reading all rows once more (diff/replay.h) where it was known from the
 * first row on what is left out of each table, as of a large INSERT into a
 * table with a serial column.  It gives up where it was not.  A zeroed struct
 * is one of no rows.
 */
struct beside_table {
	char *name;
	bool collateral;
	json_t *filled; /* or NULL */
};
struct beside {
	struct seal *seal; /* NULL: no row of which something is left out */
	bool given_up;
	struct beside_table *tables;
	size_t n;
};

/* A row that is stored behind `rows` others of the file, with its hash. */
void beside_add(struct beside *b, const struct image *im, uint64_t rows,
    const unsigned char hash[DIGEST_SIZE], struct form *f, struct digest *d,
    int dirfd);
void beside_give_up(struct beside *b);
/* Of all rows, by what the header says is left out; NULL where it is not had.
 * Lends. */
struct seal *beside_seal(const struct beside *b, const json_t *header);
void beside_release(struct beside *b);

#endif
