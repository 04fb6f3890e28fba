/* twins: rows of a table without a key that are the same before and after */
#ifndef AIRLOCK_CORE_TWINS_H
#define AIRLOCK_CORE_TWINS_H

#include <stdbool.h>
#include <stddef.h>

#include "diff/image.h"

/* A multiset of row contents, 24 bytes a row. */
struct twins;
struct twins *twins_new(void);
void twins_free(struct twins *t);
/* An old row; all of them before the first twins_take. */
void twins_add(struct twins *t, const struct value *v, size_t n);
/* A new row: true where an old one of the same content is left, which it then
 * is. */
bool twins_take(struct twins *t, const struct value *v, size_t n);
/* An old row, met again: true where it was taken (once a take). */
bool twins_was_taken(struct twins *t, const struct value *v, size_t n);

#endif
