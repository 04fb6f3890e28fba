/* rowfile: one file of row images, appended to and read from where one likes */
#ifndef AIRLOCK_DIFF_ROWFILE_H
#define AIRLOCK_DIFF_ROWFILE_H

#include "diff/image.h"
#include "diff/seal.h"
#include "diff/store.h"

/*
 *   {"table":...}\t16403 (0,1) 16403 (0,7) 9f86d0...\n
 *   image_json     was        is          image_hash
 *
 * The hash saves making it again when a row is copied. What is in the buffer
 * is part of the file for every reader: reads flush first.  On any error the
 * file holds the rows it held before, and the call may be tried again.
 */
struct rowfile;

/* Makes the file, which must not be there; lends dirfd to it. */
int rowfile_open(int dirfd, const char *name, struct rowfile **out,
    struct err *e) MUST_CHECK;
void rowfile_close(struct rowfile *f);
/* ERR_LIMIT where the file would grow above bytes_max, or the row is longer
 * than STORE_LINE_MAX. */
int rowfile_add(struct rowfile *f, const struct image *im, uint64_t bytes_max,
    struct err *e) MUST_CHECK;
/*
 * A row that is equal to what it was at first: counted, and remembered by where
 * it was and is, so that what a later statement does to it is not counted
 * beside.  Of more than SAMES_MAX no more than the number is kept.
 */
#define SAMES_MAX 131072
struct same {
	struct rowid was, is;
	uint32_t count; /* which of rowfile_counts */
};
void rowfile_note_unchanged(struct rowfile *f, const char *table,
    const struct rowid *was, const struct rowid *is);
/* Those of another file, but for one table (NULL: none), and for rows that
 * other went on from: gone (may be NULL) tells. */
typedef bool rowfile_gone(const void *arg, const struct rowid *is);
void rowfile_carry_unchanged(struct rowfile *f, const struct rowfile *from,
    const char *but, rowfile_gone *gone, const void *arg);
size_t rowfile_sames(const struct rowfile *f, const struct same **out);
int rowfile_flush(struct rowfile *f, struct err *e) MUST_CHECK;
int rowfile_sync(struct rowfile *f, struct err *e) MUST_CHECK;
uint64_t rowfile_rows(const struct rowfile *f);
uint64_t rowfile_bytes(const struct rowfile *f);
struct seal *rowfile_seal(struct rowfile *f);
/* Of the replay digest; NULL where the rows must be read for it. */
struct seal *rowfile_seal_replay(struct rowfile *f, const json_t *header);
size_t rowfile_counts(const struct rowfile *f, const struct store_count **out);
/* Where row n (from 0) begins; the end of the file where there is none. */
int rowfile_find(struct rowfile *f, uint64_t n, uint64_t *offset,
    struct err *e) MUST_CHECK;

/* At most n bytes from offset on, 0 at the end; flushes first. */
int rowfile_read(struct rowfile *f, uint64_t offset, void *p, size_t n,
    size_t *got, struct err *e) MUST_CHECK;

struct rowline;
/* Appends a line of another file as it is. */
int rowfile_copy(struct rowfile *f, const struct rowline *l,
    struct err *e) MUST_CHECK;

#endif
