/* store: the file of row images of one change, written as they stream in */
#ifndef AIRLOCK_DIFF_STORE_H
#define AIRLOCK_DIFF_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "diff/image.h"
#include "diff/seal.h"

/*
 * changes/<id>/rows.ndjson: one image_json line a row, each followed by a tab
 * and, for our own use, "oldleaf oldctid newleaf newctid hash" (0 (0,0) where
 * there is none; the hash is image_hash), newline.  Written through a 64 KiB
 * buffer; memory does not grow with rows.  A sparse index (one offset each
 * 1,024 rows) finds a page.  Files are 0600, opened O_NOFOLLOW below the
 * directory descriptor.
 */
struct store;

/* The JSON of a row, both images: a longer one is not taken, since it could not
 * be sent to who decides.  Escapes can make it six times its values. */
#define STORE_LINE_MAX ((size_t)64 << 20)

/* id: "chg_" and 10 hex digits, else ERR_INPUT; it must not have been used
 * before.  dirfd: the state directory's changes/; makes changes/<id>/. */
int store_open(int dirfd, const char *id, uint64_t bytes_max,
    struct store **out, struct err *e) MUST_CHECK;
/* Flushes and closes; with `remove` deletes the files. */
void store_close(struct store *s, bool remove);
/* ERR_LIMIT above bytes_max (of all rows together) and STORE_LINE_MAX,
 * ERR_SYSTEM (disk). On an error the row is not in the store and all others
 * are. */
int store_add(struct store *s, const struct image *im,
    struct err *e) MUST_CHECK;
uint64_t store_rows(const struct store *s);
uint64_t store_bytes(const struct store *s);
/* Pushes what is buffered to the file; with `sync` to the disk. */
int store_flush(struct store *s, bool sync, struct err *e) MUST_CHECK;
/* As seal_step_all, over the rows stored; the replay digest where nothing is
 * left out. */
int store_seal_step(struct store *s, const json_t *header,
    char *const out[SEAL_NDIGESTS], struct err *e) MUST_CHECK;
/* The replay digest of the rows stored (diff/replay.h), which must stay as they
 * are meanwhile. Gives. */
struct replay;
struct replay *store_replay(struct store *s, json_t *header);

/*
 * Reads rows from `offset` on.  For each calls row(arg, line, len) with the
 * JSON part (no tab, no newline; lent for the call), which returns false to
 * stop.  *next is the offset behind the last row given.  A line longer than
 * 64 KiB is handled.
 */
typedef bool store_row(void *arg, const char *line, size_t len);
int store_read(struct store *s, uint64_t offset, store_row *row, void *arg,
    uint64_t *next, struct err *e) MUST_CHECK;
/* The offset of row n (from 0), the end's where there are fewer. */
int store_find(struct store *s, uint64_t n, uint64_t *offset,
    struct err *e) MUST_CHECK;

/*
 * Folding, for a statement added to a change: a new row whose `was` is the
 * `is` of a stored row continues that row (before from the stored one, after
 * from the new one; insert then delete leaves nothing; an update back to the
 * identical text leaves nothing and is counted as `unchanged`).  Until it has
 * ended, rows, bytes, counts, reads and the seal are those of before.
 *   store_fold_begin  starts a new generation; ERR_LIMIT where the change
 *                     holds more than rows_max rows (the map is in memory)
 *   store_add         as ever, into the new generation
 *   store_fold_step   writes the folded file, a few megabytes a call, and makes
 *                     it the store: 1 while there is more to do, 0 when it is
 *                     done; on an error it aborts
 *   store_fold_abort  drops the new generation, as if it had not begun; does
 *                     nothing where none is open
 */
int store_fold_begin(struct store *s, uint64_t rows_max,
    struct err *e) MUST_CHECK;
int store_fold_step(struct store *s, struct err *e) MUST_CHECK;
void store_fold_abort(struct store *s);
/* While folding: whether the row that lived at `was` is one of those stored, so
 * that its next image is needed even where it changes nothing. */
bool store_knows(const struct store *s, const struct rowid *was);

/*
 * Until rows are added, folded or forgotten, what is read, counted and sealed
 * is what the rows come to: one that was deleted and one of the same table that
 * was inserted under the same key (in a table without a key: with the same
 * content) are one row, updated, or unchanged where all its text is as it was;
 * and every row says `collateral` as the caller says it of its table now.  What
 * is added later goes on from the rows themselves, which stay beside (the file
 * rows.net is the one shown).
 */
typedef bool store_flag(const void *arg, const char *table);
int store_settle(struct store *s, store_flag *collateral, const void *arg,
    struct err *e) MUST_CHECK;

/* A row that a statement matched and left as it was; it is counted alone. */
void store_note_unchanged(struct store *s, const struct image *im);

/* Takes the rows of a table out, the unchanged ones too: what is known of them
 * proved to be not the whole truth, and a wrong image is worse than none. */
int store_forget(struct store *s, const char *table, struct err *e) MUST_CHECK;

/* Counts of the rows that stand, by table, in table order of first mention;
 * lent until the next change of the store.  `unchanged`: rows noted to be so,
 * and those that were found to be back at their first text. */
struct store_count {
	char *table;
	uint64_t n[IMAGE_NOPS];
	uint64_t unchanged;
	uint64_t collateral; /* of the rows in n, how many say so */
};
size_t store_counts(const struct store *s, const struct store_count **out);

#endif
