/* walk: one pass over a statement's tree, filling in what it names */
#ifndef AIRLOCK_SQL_WALK_H
#define AIRLOCK_SQL_WALK_H

#include <pg_query/pg_query.pb-c.h>

#include "base/err.h"
#include "sql/facts.h"

/* Different names that one list of facts may hold. */
#define WALK_NAMES_MAX 1000

/*
 * Adds the relations, functions, locks, parameters and unknown nodes below
 * stmt to *f.  `own` is the INSERT, UPDATE, DELETE or MERGE whose target is
 * the statement's own, or NULL.
 */
int walk_statement(const ProtobufCMessage *stmt, const ProtobufCMessage *own,
    struct facts *f, struct err *e) MUST_CHECK;

#endif
