/* seal: the digest that binds a decision to what was shown */
#ifndef AIRLOCK_DIFF_SEAL_H
#define AIRLOCK_DIFF_SEAL_H

#include <jansson.h>

#include "base/digest.h"
#include "base/err.h"

/*
 * SHA-256 over (docs/digest.md): a format tag; database, agent, statements and
 * parameters, tables with their counts, incomplete tables, effects, risk and
 * reasons, all taken from `header`, the object that `airlock pending --json`
 * gives; then the number of rows and the hashes of all row images in byte
 * order.  Sorting the hashes makes it independent of scan order; ids, times,
 * ctids and intent do not enter.
 */
struct seal; /* row hashes being gathered: 32 bytes a row, spilled to an
                unlinked file in dirfd above SEAL_MEMORY_ROWS */
#define SEAL_MEMORY_ROWS 32768

struct seal *seal_new(int dirfd); /* -1: $TMPDIR */
void seal_free(struct seal *s);
int seal_add(struct seal *s, const unsigned char hash[DIGEST_SIZE],
    struct err *e) MUST_CHECK;
/*
 * Works off a bounded piece (about 32,768 rows) of the sorting; returns 1 when
 * there is more to do, 0 when out holds the digest, -1 on error.  After 0 rows
 * may be added and the digest made again.
 */
int seal_step(struct seal *s, const json_t *header, char out[DIGEST_HEX_SIZE],
    struct err *e) MUST_CHECK;
/* The same for each digest that is asked for (out[i] is not NULL), which must
 * be the same ones until it is done; SEAL_REPLAY: of rows whose hashes are made
 * for it (image_hash_replay). */
enum seal_digest { SEAL_DIGEST, SEAL_REPLAY, SEAL_NDIGESTS };
int seal_step_all(struct seal *s, const json_t *header,
    char *const out[SEAL_NDIGESTS], struct err *e) MUST_CHECK;

#endif
