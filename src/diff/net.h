/* net: rows deleted and inserted that are one row */
#ifndef AIRLOCK_DIFF_NET_H
#define AIRLOCK_DIFF_NET_H

#include "diff/rowfile.h"
#include "diff/store.h"

/* What store_settle has to do; 32 bytes for each row deleted from a table that
 * also had rows inserted, nothing for any other. */
struct net;

/* 1 with *out (lends the file and arg until net_free), 0 where every row can
 * stay as it is. */
int net_find(struct rowfile *f, store_flag *collateral, const void *arg,
    struct net **out, struct err *e) MUST_CHECK;
/* All rows as they come to, in their order, into another file. */
int net_write(struct net *n, struct rowfile *to, struct err *e) MUST_CHECK;
void net_free(struct net *n);

#endif
