/* unpack: a stored row taken apart again */
#ifndef AIRLOCK_DIFF_UNPACK_H
#define AIRLOCK_DIFF_UNPACK_H

#include "diff/image.h"
#include "diff/rowcursor.h"

/* Columns in the order in which they stand in the line. */
struct columns {
	bool there; /* false: null */
	size_t n, size;
	const char **names;
	struct value *values;
};

/* A row; owns all that it points to.  A zeroed struct is empty and may be used
 * again and again. */
struct unpacked {
	char *text; /* a copy of the line, in which its strings are decoded */
	size_t size;
	const char *table;
	enum image_op op;
	bool collateral;
	struct columns key, before, after;
};

/*
 * Reads what image_json writes and no other JSON, which is ten times as fast
 * as reading any: when a statement is added to a change, all its rows pass
 * here at once.  ERR_BUG where the line is not of that form.
 */
int unpack(struct unpacked *u, const struct rowline *l,
    struct err *e) MUST_CHECK;
/* The same up to `collateral`: what a row is counted by. */
int unpack_head(struct unpacked *u, const struct rowline *l,
    struct err *e) MUST_CHECK;
void unpack_release(struct unpacked *u);

#endif
