/* sweep_narrow: what the ways to find the rows of a leaf without a scan share
 */
#ifndef AIRLOCK_CORE_SWEEP_NARROW_H
#define AIRLOCK_CORE_SWEEP_NARROW_H

#include "core/sweep.h"
#include "core/sweep_probe.h"

/* Places of this many rows are kept, old and new ones together. */
#define ROWS_MAX 20000

/*
 * Old rows are read from the observer, then new ones from the writer, by keys
 * and indexes or, where first is not NULL, from pages first[i] to before
 * past[i].  The other side is asked how many of them it sees; where what
 * remains is what was counted, it is all, and the spools are paired.
 */
struct narrow {
	struct probes *probes;
	char *key, *type, *top; /* the key's one column, its largest value */
	uint64_t blocks;
	struct text old, new; /* places, array literals */
	uint64_t nold, nnew, seen;
	char *first, *past; /* array literals of tid */
	/* More than ROWS_MAX, where there is no scan to fall back to: that they
	 * are all is seen when they have been paired. */
	bool many;
};

/* By the counters, at most. */
uint64_t sweep_most_new(const struct sweep *s);
uint64_t sweep_most_old(const struct sweep *s);
/* A question that may fail, on either side: the savepoint, settings for plans
 * that go by index and by place, and from the third statement on what is asked;
 * sweep_add_back ends it. */
struct batch *sweep_narrow_batch(void);
/* Whether the way back that begins behind `step` statements was taken. */
bool sweep_is_back(const struct batch *b, size_t step);
/* Puts a batch of the old rows (step 2) and the look at the multixacts, or of
 * the new ones (step 2) and the number of the old that are still seen, which
 * sweep_add_count adds. */
void sweep_ask_old(struct sweep *s, struct batch *b);
void sweep_ask_new(struct sweep *s, struct batch *b);
void sweep_add_count(const struct sweep *s, const struct text *places,
    struct batch *b);
/* It has not led to all: the next way. */
void sweep_no_way(struct sweep *s);
/* core/sweep_visible.c: asks for the new rows, in the same pages. */
void sweep_visible_new(struct sweep *s);

#endif
