/* folding: the rows that stand and those of a new statement become one file */
#ifndef AIRLOCK_DIFF_FOLDING_H
#define AIRLOCK_DIFF_FOLDING_H

#include "diff/fold.h"
#include "diff/rowfile.h"

/*
 * What store.h says of folding, in pieces of a few megabytes: rows may be
 * gigabytes, and all that the daemon does waits while a piece is made.
 * `places` knows where each row of `now` ended up.  Borrows all; they must stay
 * as they are until it is freed.
 */
struct folding;
struct folding *folding_new(struct rowfile *now, struct rowfile *next,
    struct placemap *places, struct rowfile *to);
void folding_free(struct folding *f);
/* 1 while there is more to do, 0 when `to` is whole, but for a flush. */
int folding_step(struct folding *f, struct err *e) MUST_CHECK;

#endif
