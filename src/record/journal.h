/* journal: what happened, one JSON record a line, chained by SHA-256 */
#ifndef AIRLOCK_RECORD_JOURNAL_H
#define AIRLOCK_RECORD_JOURNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/err.h"

/*
 * journal/NNNNNNNN.jsonl below the state directory; a record is an object
 *   {"seq":n,"at":"..Z","kind":"..","prev":"<hex>", ...}
 * with prev = SHA-256 of the whole line before (without its newline), across
 * files too; the first record's prev is 64 zeros.  Appended with O_APPEND in
 * one write.  What a crash leaves at the end (a line without its newline, or
 * blocks of zeros that were never written and what follows them: nothing of it
 * was synced) is moved to journal/torn-<seq> at open, and a "repaired" record
 * says so; any other fault is no crash's doing, and the journal is not opened
 * (ERR_INPUT).  A new file begins above file_bytes_max.  `reserve_bytes` are
 * kept allocated on the disk (journal/reserve, fallocate) and given up when the
 * disk is full, so that decisions can still be written; journal_is_low then
 * says so and new proposals are to be refused until journal_sync has got the
 * reserve back.
 */
struct journal;
struct journal_options {
	uint64_t file_bytes_max; /* 64 MiB */
	uint64_t reserve_bytes;  /* 1 MiB */
	size_t record_bytes_max; /* 4 MiB; 16 MiB at most */
};

int journal_open(int statefd, const struct journal_options *o,
    struct journal **out, struct err *e) MUST_CHECK;
void journal_close(struct journal *j);
/*
 * Takes rec, an object without seq, at, prev ("kind" must be there).  With
 * `sync` it returns only after fdatasync(2); on any error nothing may be
 * built on it (the record may or may not be on the disk) and the journal
 * refuses all further records until reopened where the tail is uncertain.
 */
int journal_append(struct journal *j, json_t *rec, bool sync,
    struct err *e) MUST_CHECK;
/* Syncs what was appended lazily, and takes the reserve again once there is
 * room; called by a timer. */
int journal_sync(struct journal *j, struct err *e) MUST_CHECK;
bool journal_is_low(const struct journal *j);
uint64_t journal_seq(const struct journal *j); /* of the last record */

/* Walks all records, oldest first; each(arg, rec, line, len) lends and returns
 * false to stop.  With `check` the chain is verified on the way: ERR_INPUT
 * names file, line and what is wrong.  No chain shows that whole lines are
 * missing at its very end, nor a change within the last line: nothing follows
 * it. */
typedef bool journal_each(void *arg, const json_t *rec, const char *line,
    size_t len);
int journal_walk(int statefd, bool check, journal_each *each, void *arg,
    struct err *e) MUST_CHECK;
/* From a sequence number on, at most n records, for paging from the daemon
 * without blocking long. *next: the number to go on with, 0 at the end. */
int journal_page(struct journal *j, uint64_t from, size_t n, journal_each *each,
    void *arg, uint64_t *next, struct err *e) MUST_CHECK;

#endif
