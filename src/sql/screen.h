/* screen: what a statement must pass before any parser sees it, and what of it
 * no parser needs to see */
#ifndef AIRLOCK_SQL_SCREEN_H
#define AIRLOCK_SQL_SCREEN_H

#include <stddef.h>

struct screen_limits {
	size_t bytes_max;         /* inclusive */
	size_t operator_run_max;  /* operator characters in a row */
	size_t comment_depth_max; /* comments in comments */
};

enum screen {
	SCREEN_FINE,
	SCREEN_TOO_LARGE,
	SCREEN_NUL,
	SCREEN_NOT_UTF8,
	SCREEN_TOO_COMPLEX
};

/*
 * One pass over the text, without looking at what it means.  PostgreSQL's
 * scanner takes time that grows with the square of a run of operator
 * characters, and of comments that open one behind another; comments' and
 * literals' own text is not looked at.  Where it is not fine, says why, and
 * at which byte, or -1.
 */
enum screen screen_text(const char *sql, size_t len,
    const struct screen_limits *l, char *why, size_t size, long *at);

/*
 * Puts spaces in the place of comments; all else, line ends in comments too,
 * stays where it is.  libpg_query 15 cannot look past a comment where the
 * grammar looks one word ahead (NOT, NULLS, WITH, UESCAPE), and extensions of
 * the server may read orders in them.  What comes of it is what is parsed and
 * what is run, so that a comment seen where there is none changes what is
 * done, but never lets anything through unread.  A comment that does not end,
 * and one that parts two literals, stays.
 */
void screen_blank(char *sql, size_t len);

#endif
