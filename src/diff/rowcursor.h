/* rowcursor: the lines of a file of row images, one after the other */
#ifndef AIRLOCK_DIFF_ROWCURSOR_H
#define AIRLOCK_DIFF_ROWCURSOR_H

#include "diff/image.h"
#include "diff/rowfile.h"

/* A way through the file; rows added meanwhile are met too. */
struct rowcursor {
	struct rowfile *f;
	char *buf;
	size_t size, start, end; /* of buf; buf[start..end) is not yet given */
	uint64_t at;             /* file offset of buf[start] */
	size_t chunk;            /* bytes read at once */
};

/* One line (rowfile.h); lent until the next call. */
struct rowline {
	const char *line;
	size_t len;      /* with its newline */
	size_t json_len; /* up to the tab */
	uint64_t at;
	struct rowid was, is;
	unsigned char hash[DIGEST_SIZE];
};

void rowcursor_init(struct rowcursor *c, struct rowfile *f);
void rowcursor_release(struct rowcursor *c);
/* ERR_INPUT where no line begins at offset. */
int rowcursor_seek(struct rowcursor *c, uint64_t offset,
    struct err *e) MUST_CHECK;
/* 1 with a line, 0 at the end. */
int rowcursor_next(struct rowcursor *c, struct rowline *l,
    struct err *e) MUST_CHECK;

#endif
