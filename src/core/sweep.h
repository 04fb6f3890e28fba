/* sweep: what the two halves of the search for rows share */
#ifndef AIRLOCK_CORE_SWEEP_H
#define AIRLOCK_CORE_SWEEP_H

#include "core/piece.h"
#include "core/run.h"

/* A row of the writer's that we wrote: age() is relative to our own top
 * transaction id, and those of our subtransactions are always larger. */
#define SWEEP_NEW "pg_catalog.age(airlock_s.xmin) <= 0"
/* A row of the observer's that we replaced, or that somebody locked: $1 our id,
 * $2 the next multixact at our beginning, $3 how many more at most can be there
 * now.  An id that was left in a row cannot be told from a multixact, so the
 * bound keeps most of them out (what is our very id needs no arithmetic);
 * others make new ones on our rows while we read (FOR KEY SHARE), so it must be
 * looked at again after the rows were read. */
#define SWEEP_SPAN(first)                                                         \
	"(pg_catalog.mxid_age('1'::pg_catalog.xid)::pg_catalog.int8 + 1 - " first \
	"::pg_catalog.int8) & 4294967295"
#define SPAN_ROOM 256
#define SPAN_ANY 2147483648u
#define SWEEP_OLD                                                              \
	"airlock_s.xmax <> '0' AND (airlock_s.xmax = "                         \
	"($1::pg_catalog.int8 & 4294967295)::pg_catalog.text::pg_catalog.xid " \
	"OR ((airlock_s.xmax::pg_catalog.text::pg_catalog.int8 - "             \
	"$1::pg_catalog.int8) & 4294967295) < 2147483648 OR "                  \
	"((airlock_s.xmax::pg_catalog.text::pg_catalog.int8 - "                \
	"$2::pg_catalog.int8) & 4294967295) < $3::pg_catalog.int8)"

/* One side of one leaf: rows in a spool, then a piece of them in memory. */
struct side {
	struct spool *spool;
	struct piece piece;
	uint64_t found;
};

/* The places in the first column of an answer, and where the last one that was
 * looked for stood: answers mostly come in the order in which was asked. */
struct places {
	uint64_t *v;
	int n, size, hint;
};

struct sweep;
/* An answer to a question of the sweep's; its batch is whole. */
typedef void sweep_answer(struct sweep *s, struct batch *b);

/*
 * For each leaf of each table that is not proved, in turn:
 *   look up   its columns and key, what either login may see, its size
 *   narrow    a large one (core/sweep_narrow.c): what keys, indexes and the
 *             last blocks lead to, if that is all; else what is in the pages
 *             that the visibility map does not call all-visible
 *             (core/sweep_visible.c), if that is all; else all of it is read,
 *             unless it is larger than sweep_limit
 *   after     rows whose xmin is ours, from the writer
 *   before    rows whose xmax is ours or a multixact newer than we, from the
 *             observer; while it is read, the writer is asked about
 *             those that have come (core/sweep_stream.c)
 *   pair      a row that the other side still sees at the same place is not
 *             one; of the rest an old row is followed to the new one that took
 *             its place, else it was deleted, and a new one inserted
 * What is found is part of the truth, and the counters are an upper bound of
 * it, so equality proves it whole whatever was hidden; a scan of all that is
 * there proves it too.  Where row security hides rows from the writer, one that
 * we only locked (for a foreign key) looks deleted: then an observer that is
 * another login must have read all of it and have nothing hidden from it, so
 * that more is found, never less.
 */
struct sweep {
	struct run *run;
	struct ticket *ticket;
	struct link *observer;
	size_t *leaves, n, at; /* of change->counts */
	size_t again; /* leaves that were put off until the others are done */
	struct relation *leaf;
	uint64_t size; /* of the leaf, bytes */
	uint64_t span; /* of multixacts, see SWEEP_OLD */
	char span_text[24];
	struct narrow *narrow;
	const char **names;
	uint64_t shape; /* of its images */
	bool *key;
	/* Why nothing but equality proves the leaf whole, NULL where what can
	 * be read of it is all: from the beginning, a login that does not see
	 * every row. */
	const char *doubt;
	bool mapped; /* the leaf's visibility map has been asked for */
	bool no_map; /* the database has nothing to read one with */
	bool moves;  /* policies may have written as we read */
	struct side after, before;
	struct value *cells; /* one row's */
	struct piece coming; /* old rows that the writer is asked about next */
	bool span_held;      /* by the reading of old rows that was last */
	struct met heirs;    /* new rows that took an old one's place, and */
	struct met gone;     /* old ones that were deleted */
	size_t heirs_met;
	struct places seen, followed; /* of the answers to a piece */
	bool lazy; /* new rows are not read: old ones may lead to them all */
	struct err row_err;
	sweep_answer *asked[2]; /* whoever waits for observer and writer */
	const char *given_up;   /* why, while the observer is still read */
	bool failed, too_large; /* the run ends when the writer has answered */
	enum reason failed_reason;
	char *failed_text;
};

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
/* The same of images that are too many. */
void sweep_too_large(struct sweep *s, const char *text);
/* core/sweep_read.c */
bool sweep_open_spools(struct sweep *s);
void sweep_set_span(struct sweep *s, uint64_t span);
bool sweep_row_failed(struct sweep *s);
/* Adds a look at the multixacts behind a reading of old rows; whether the bound
 * has held. */
void sweep_add_span(struct sweep *s, struct batch *b);
bool sweep_span_holds(const struct sweep *s, const struct batch *b, size_t i);
/* The place and columns of airlock_s that a row is kept with; rows of the
 * batch's last statement are kept, new ones from the writer, old ones from the
 * observer. */
void sweep_add_columns(const struct relation *rel, struct text *t);
/* The SELECT of all such rows of the leaf, with this condition. */
void sweep_add_scan(const struct sweep *s, const char *where, struct text *t);
void sweep_value(const PGresult *res, int row, int col, struct value *v);
void sweep_take_rows(struct sweep *s, bool writer, struct batch *b);
/* core/sweep_narrow.c: false where the leaf is not worth it; else the answer is
 * sweep_pair, or this for a leaf that must be read whole. */
bool sweep_narrow(struct sweep *s);
void sweep_narrow_free(struct sweep *s);
void sweep_leaf_whole(struct sweep *s);
/* core/sweep_visible.c: the same, once for each leaf. */
bool sweep_visible(struct sweep *s);
/* core/sweep_stream.c: old rows of a leaf that is read whole; each piece that
 * has come is paired while the next one comes. */
void sweep_read_before(struct sweep *s);
/* core/sweep_pair.c: both spools are full and rewound. */
void sweep_pair(struct sweep *s);
/* What became of the rows in s->before.piece, asked and told. */
void sweep_ask_heirs(struct sweep *s, sweep_answer *then);
/* False where the sweep is over or the leaf given up. */
bool sweep_heirs_told(struct sweep *s, const struct batch *b);
/* Takes an old row of a piece by that answer. */
bool sweep_take_before(struct sweep *s, const struct piece *p,
    const struct batch *b);
/* All old rows are taken. */
void sweep_before_done(struct sweep *s);
/* New rows, which are read last where they were not read first. */
void sweep_read_after(struct sweep *s);
void sweep_pair_after(struct sweep *s);

#endif
