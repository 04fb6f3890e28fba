/* spool: rows that wait on the disk for the other half of their image */
#ifndef AIRLOCK_CORE_SPOOL_H
#define AIRLOCK_CORE_SPOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "diff/image.h"

/* An unlinked file below dirfd; rows come back in the order they went in. */
struct spool;
int spool_open(int dirfd, struct spool **out, struct err *e) MUST_CHECK;
void spool_close(struct spool *s);
int spool_add(struct spool *s, const struct rowid *id, const struct value *v,
    size_t n, struct err *e) MUST_CHECK;
/* Before the first spool_next. */
int spool_rewind(struct spool *s, struct err *e) MUST_CHECK;
/* 1: *id and v[n] lend the next row until the next call; 0: no more; -1. */
int spool_next(struct spool *s, struct rowid *id, struct value *v, size_t n,
    struct err *e) MUST_CHECK;

#endif
