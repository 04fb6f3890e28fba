/* capture: how a statement is made to give the rows it changes */
#ifndef AIRLOCK_DIFF_CAPTURE_H
#define AIRLOCK_DIFF_CAPTURE_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "diff/image.h"
#include "pg/catalog.h"
#include "sql/facts.h"
#include "sql/rewrite.h"

enum capture_path {
	CAPTURE_RETURNING, /* RETURNING gives both images */
	CAPTURE_CONFLICT,  /* RETURNING gives the after-images; the observer has
	                      the before-images of those that were updated */
	CAPTURE_PLAIN,     /* the text runs as it is; only counts are known */
};

/*
 * The plan for one statement on one relation, which both stay lent to it.  Old
 * row versions of an UPDATE come from a self-join by ctid: exact under
 * REPEATABLE READ, where a row that somebody else changed meanwhile is an
 * error and never skipped.  What the statement does not set is in the new
 * version as it was in the old one and is asked for once, unless a BEFORE
 * trigger may have set it or the row may have moved to another table.
 */
struct capture {
	enum capture_path path;
	const char *why; /* CAPTURE_PLAIN: why no rows can be had, for people */
	const struct relation *relation;
	enum stmt_kind kind;
	char nonce[9]; /* makes our column names unlike any of the agent's */
	struct rewrite_edit edit;
	char *from, *where, *returning;
	bool *moves; /* of an UPDATE: columns whose old text is asked for */
	/* of the rows, once the first has come */
	bool laid_out;
	int nagent;               /* the agent's own columns ... */
	int *agent;               /* ... and where they stand in the result */
	int first_new, first_old; /* -1: that side is not in the result */
	struct value *before, *after;
	const char **names;
	bool *key;
	uint64_t shape;
};

/* sql is the text that f is of; the same text is planned alike while the
 * program runs.  relation NULL: a statement without a single known target. */
void capture_plan(struct capture *c, const char *sql, const struct facts *f,
    const struct relation *relation);
void capture_release(struct capture *c);
/* Learns the result's shape; ERR_BUG where it is not what the plan made. */
int capture_lay_out(struct capture *c, const PGresult *res,
    struct err *e) MUST_CHECK;
/* The image of a one-row result; lends until the next call or PQclear.  For
 * CAPTURE_CONFLICT an insert whose before is still to be looked up. */
int capture_image(struct capture *c, const PGresult *res, struct image *out,
    struct err *e) MUST_CHECK;

/* The observer's question for before-images by key: one text[] parameter a key
 * column, in table order; answers tableoid, ctid, every column.  Gives. */
char *capture_lookup_sql(const struct relation *r);

#endif
