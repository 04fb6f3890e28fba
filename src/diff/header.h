/* header: the part of the digest that is not rows */
#ifndef AIRLOCK_DIFF_HEADER_H
#define AIRLOCK_DIFF_HEADER_H

#include <jansson.h>

#include "base/digest.h"
#include "base/err.h"

/*
 * Feeds d with the encoding (docs/digest.md) of what a decision is bound to
 * beside the rows, read from the object that `airlock pending --json` gives.
 * Members that do not enter (id, token, intent, times, status) are not looked
 * at. ERR_INPUT where one that does is missing or of another shape; d is then
 * good for nothing but digest_reset.
 */
int header_hash(const json_t *header, struct digest *d,
    struct err *e) MUST_CHECK;
/* The same for the replay digest, with the columns that it leaves out. */
int header_hash_replay(const json_t *header, struct digest *d,
    struct err *e) MUST_CHECK;

#endif
