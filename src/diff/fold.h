/* fold: two changes of one row as the one change that they come to */
#ifndef AIRLOCK_DIFF_FOLD_H
#define AIRLOCK_DIFF_FOLD_H

#include "diff/image.h"
#include "diff/rowcursor.h"
#include "diff/unpack.h"

/* Where rows ended up, and for each a number that the caller gives. */
struct placemap;

struct placemap *placemap_new(uint64_t n); /* at most n rows will come */
void placemap_free(struct placemap *m);
/* The number kept for r, 0 when it is new; NULL where r is not there and is
 * not to be added.  Lent until the map is freed. */
uint64_t *placemap_at(struct placemap *m, const struct rowid *r, bool add);

enum fold_result { FOLD_ROW, FOLD_NOTHING, FOLD_UNCHANGED };

/* A folded row and what it is made of; a zeroed struct is empty. */
struct fold {
	struct image im;
	struct unpacked then, now;
	bool *key;
	struct value *after;
	size_t size;
};

/*
 * `now` is what happened to the row that `then` left, or the insert of the row
 * that `then` deleted.  f->im is the net effect with FOLD_ROW, its table also
 * with FOLD_UNCHANGED; lent until the next call.  It is collateral where both
 * are.  ERR_BUG where the two do not fit.
 */
int fold_rows(struct fold *f, const struct rowline *then,
    const struct rowline *now, enum fold_result *out, struct err *e) MUST_CHECK;
/* f->im is the row as it stands. */
int fold_none(struct fold *f, const struct rowline *l,
    struct err *e) MUST_CHECK;
void fold_release(struct fold *f);

#endif
