/* classify: which kind of statement a node is, and what people call it */
#ifndef AIRLOCK_SQL_CLASSIFY_H
#define AIRLOCK_SQL_CLASSIFY_H

#include <pg_query/pg_query.pb-c.h>

#include "sql/facts.h"

/* *tag is the caller's to free: "DROP TABLE".  NULL is STMT_OTHER. */
enum stmt_kind classify(const ProtobufCMessage *stmt, char **tag);

#endif
