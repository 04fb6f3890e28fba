/* review: fetches one change and recomputes the digest of what was sent */
#ifndef AIRLOCK_CLI_REVIEW_H
#define AIRLOCK_CLI_REVIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "client.h"

/* Which rows the daemon is asked for. */
struct window {
	const char *table;  /* NULL: all */
	long offset, limit; /* -1: from the first, to the last */
};

/* What came.  header is owned. */
struct review {
	json_t *header;
	uint64_t rows;  /* received */
	uint64_t total; /* that the change has, as the daemon says */
	bool complete;  /* all rows came, so digest is recomputed from them */
	char
	    digest[DIGEST_HEX_SIZE]; /* "" where the change has none any more */
};
void review_release(struct review *r);

/* Told as the answer comes in: the header once, then each row; both lent. */
struct review_sink {
	void (*header)(void *arg, const json_t *header);
	void (*row)(void *arg, const json_t *row);
	void *arg;
};

/*
 * Asks `show`.  Beside the daemon's own refusals it can say BROKEN_ANSWER, and
 * DIGEST_MISMATCH (exit 1) where the rows do not give the digest that the
 * daemon claims: then nothing of that view may be trusted.
 */
enum ctl_exit review_fetch(const struct client *c, const char *id,
    const struct window *w, const struct review_sink *sink, struct review *out,
    struct reply *r);

bool review_is_pending(const json_t *header);
/* Rows that the change inserts, updates and deletes, by the header's counts. */
uint64_t review_changed(const json_t *header);

#endif
