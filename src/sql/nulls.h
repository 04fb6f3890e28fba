/* nulls: conditions that hold for every row once some columns are never NULL */
#ifndef AIRLOCK_SQL_NULLS_H
#define AIRLOCK_SQL_NULLS_H

#include <pg_query/pg_query.pb-c.h>

#include "sql/facts.h"

/*
 * What the condition asks of the target's columns with IS [NOT] NULL, or with
 * IS [NOT] DISTINCT FROM NULL: f->not_null_any gets the columns of which each
 * alone, being NOT NULL, makes the condition vacuous (see sql/where.h),
 * f->not_null_all those that do it together.  `target` is what the query calls
 * the table.  The condition is as it was afterwards.
 */
void nulls_read(PgQuery__Node *where, const char *target, struct facts *f);

#endif
