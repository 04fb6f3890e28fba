/* sweep: what the two halves of the search for rows share */
#ifndef AIRLOCK_CORE_SWEEP_H
#define AIRLOCK_CORE_SWEEP_H

#include "core/run.h"

#define PIECE 500 /* rows to a question */

/* One side of one leaf: rows in a spool, then a piece of them in memory. */
struct side {
	struct spool *spool;
	size_t n;
	struct rowid ids[PIECE];
	struct value *values; /* PIECE * columns, owned bytes */
	bool last;
	uint64_t found;
};

/*
 * For each leaf of each table that is not proved, in turn:
 *   look up   its columns and key, what either login may see, its size
 *   after     rows whose xmin is ours, from the writer
 *   before    rows whose xmax is ours or a multixact newer than we, from the
 *             observer
 *   pair      a row that the other side still sees at the same place is not
 *             one; of the rest an old row is followed to the new one that took
 *             its place, else it was deleted, and a new one inserted
 * What is found is part of the truth, and the counters are an upper bound of
 * it, so equality proves it whole whatever was hidden; a scan of all that is
 * there proves it too.
 */
struct sweep {
	struct run *run;
	struct ticket *ticket;
	struct link *observer;
	size_t *leaves, n, at; /* of change->counts */
	struct relation *leaf;
	const char **names;
	bool *key, hidden; /* hidden: a login does not see every row */
	struct side after, before;
	uint64_t *heirs; /* places of new rows that took an old one's */
	size_t nheirs, heirs_size, heirs_met;
	struct err row_err;
};

/* An answer to a question of the sweep's; its batch is whole. */
typedef void sweep_answer(struct sweep *s, struct batch *b);
void sweep_ask(struct sweep *s, bool writer, struct batch *b,
    sweep_answer *then);
/* A batch for the writer, whose transaction must survive a question that
 * fails: the savepoint, then what is asked, then the way back. */
struct batch *sweep_guarded_batch(void);
void sweep_add_back(struct batch *b);
/* The count_row of the leaf in hand, and the table it is shown as. */
const struct count_row *sweep_row(const struct sweep *s);
struct change_table *sweep_table(const struct sweep *s);
void sweep_next_leaf(struct sweep *s);
/* Of a leaf that is done with, or cannot be had (and is shown by counts). */
void sweep_leaf_done(struct sweep *s);
void sweep_give_up(struct sweep *s, const char *why);
enum run_next sweep_fail(struct sweep *s, enum reason reason, const char *text);
void sweep_side_clear(struct side *d, size_t ncols);
/* core/sweep_pair.c: both spools are full and rewound. */
void sweep_pair(struct sweep *s);

#endif
