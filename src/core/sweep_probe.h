/* sweep_probe: rows of a leaf that foreign keys lead to from other rows of the
 * change */
#ifndef AIRLOCK_CORE_SWEEP_PROBE_H
#define AIRLOCK_CORE_SWEEP_PROBE_H

#include "diff/store.h"
#include "pg/batch.h"

/*
 * For each foreign key between the leaf and another table of the change, either
 * way, for which the leaf has an index that begins with a column of it: the
 * values that the other table's changed rows have there, old and new.  Rows of
 * the leaf with these values may be rows that the change touched, or not.
 */
struct probes;

#define PROBE_ROWS_MAX 20000 /* of the change; with more none is read */

/* $1 the leaf, $2 the tables of the change. */
extern const char probes_sql[];
/* Reads the answer, and the rows that the change has so far.  NULL where they
 * are too many or cannot be read; without foreign keys or values it is empty.
 */
struct probes *probes_read(const struct batch *b, size_t step,
    struct store *rows);
void probes_free(struct probes *p);
bool probes_any(const struct probes *p);
size_t probes_nvalues(const struct probes *p); /* parameters of the SQL */
/* Appends " UNION ALL SELECT airlock_s.ctid ..." of `leaf` for each, with the
 * condition `where`, and its parameters behind values[0..n); returns their
 * number then.  The values lend. */
int probes_add(const struct probes *p, const char *leaf, const char *where,
    struct text *sql, const char **values, int n);

#endif
