/* unpack: a parse tree out of the bytes that libpg_query packs it into */
#ifndef AIRLOCK_SQL_UNPACK_H
#define AIRLOCK_SQL_UNPACK_H

#include "base/err.h"
#include "sql/parse.h"

/* Parses p->sql, which is known to be without syntax errors, for p->tree and
 * p->depth. ERR_LIMIT: too deep or too large. */
int unpack_tree(struct parse *p, struct err *e) MUST_CHECK;

#endif
