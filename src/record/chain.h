/* chain: the files of the journal, their lines, and the links between them */
#ifndef AIRLOCK_RECORD_CHAIN_H
#define AIRLOCK_RECORD_CHAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/err.h"

#define CHAIN_NAME_SIZE sizeof("00000001.jsonl")
#define CHAIN_FILES_MAX 99999999u
#define CHAIN_LINE_MAX ((size_t)16 << 20) /* no record is longer */

/* "00000001.jsonl" for 1. */
void chain_name(char out[CHAIN_NAME_SIZE], unsigned number);
/* The numbers of the files in dirfd in ascending order; gives *out. */
int chain_list(int dirfd, unsigned **out, size_t *n, struct err *e) MUST_CHECK;

/* The lines of one file; a zeroed struct with fd -1 is closed. */
struct chain_reader {
	int fd;
	char *buf;
	size_t size, start, end; /* buf[start..end) is not yet given */
	uint64_t at;             /* file offset of buf[start] */
	char name[CHAIN_NAME_SIZE];
	uint64_t line; /* number of the line given last, from 1 */
};
/* A line without its newline; `whole` is false where the file ends before it.
 * Lent until the next call. */
struct chain_line {
	const char *s;
	size_t len;
	uint64_t at;
	bool whole;
};

int chain_open(struct chain_reader *r, int dirfd, unsigned number,
    uint64_t offset, struct err *e) MUST_CHECK;
void chain_close(struct chain_reader *r);
/* 1 with a line, 0 at the end. */
int chain_next(struct chain_reader *r, struct chain_line *l,
    struct err *e) MUST_CHECK;

/* The end of a chain: its last record's number and the hash of its line. */
struct chain_end {
	uint64_t seq;
	char hash[DIGEST_HEX_SIZE];
};

/* Before the first record: 0 and 64 zeros. */
void chain_begin(struct chain_end *c);
/* The record in the reader's last line; gives *rec.  ERR_INPUT names file,
 * line and what is wrong. */
int chain_parse(const struct chain_reader *r, const struct chain_line *l,
    json_t **rec, struct err *e) MUST_CHECK;
/* Moves *c on over a record that must follow it. ERR_INPUT as above. */
int chain_link(struct chain_end *c, const struct chain_reader *r,
    const struct chain_line *l, const json_t *rec, struct err *e) MUST_CHECK;
/* Moves *c on over a record without looking back. */
void chain_advance(struct chain_end *c, uint64_t seq, const char *line,
    size_t len);

#endif
