/* stream: answers of any length, sent in pieces as the peer reads them */
#ifndef AIRLOCK_FRONT_STREAM_H
#define AIRLOCK_FRONT_STREAM_H

#include <jansson.h>
#include <stdbool.h>

#include "core/gate.h"
#include "diff/store.h"
#include "wire/lines.h"

/* A row or record longer than this is not sent; `out` must take it. */
#define STREAM_LINE_MAX STORE_LINE_MAX

/* Each gives NULL where it has answered already, with a refusal. `out` is lent
 * until stream_free. */
struct stream;
/* Takes list, an array: one data line an element. */
struct stream *stream_list(struct lines *out, json_t *list);
/* Header and rows of a change; args "table", "offset", "limit".  It ends with
 * a refusal where the change moves on while it is read. */
struct stream *stream_show(struct lines *out, struct gate *g, const char *id,
    const json_t *args);
/* Records; args "from", "limit" (without "from" and "change": the last ones),
 * "change". */
struct stream *stream_log(struct lines *out, struct gate *g,
    const json_t *args);
/* Records that somebody verifies, which chains the last record too, then walks
 * the chain. */
struct stream *stream_verify(struct lines *out, struct gate *g,
    const struct operator_peer *who);

/* Sends until `out` is full or a bounded piece is done; false: it has ended,
 * its last line is sent. */
bool stream_step(struct stream *s);
void stream_free(struct stream *s);

#endif
