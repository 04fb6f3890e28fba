/* replay: the digest of what a second run of a change would show as well */
#ifndef AIRLOCK_DIFF_REPLAY_H
#define AIRLOCK_DIFF_REPLAY_H

#include <jansson.h>
#include <stdbool.h>

#include "base/digest.h"
#include "base/err.h"
#include "diff/rowfile.h"

/* The rows are read once more, those of tables that have columns to leave out
 * (`filled` of the header's tables) hashed anew (docs/digest.md), unless that
 * was done when they were stored.  Where nothing is left out the rows hash as
 * ever, and nothing need be read. */
struct replay;
bool replay_leaves_out(const json_t *header);
/* The columns left out of a table, or NULL. Lends. */
const json_t *replay_filled(const json_t *header, const char *table,
    bool collateral);

/* Lends f, holds header. */
struct replay *replay_new(struct rowfile *f, json_t *header);
void replay_free(struct replay *r);
/* A piece of the work: 1 more, 0 done, -1 on error. */
int replay_step(struct replay *r, char out[DIGEST_HEX_SIZE],
    struct err *e) MUST_CHECK;

#endif
