/* unprint: a parse tree out of the JSON that libpg_query prints it as */
#ifndef AIRLOCK_SQL_UNPRINT_H
#define AIRLOCK_SQL_UNPRINT_H

#include <stdbool.h>

#include "base/err.h"
#include "sql/parse.h"

/*
 * libpg_query prints a tree in a quarter of the time that it takes to pack it.
 * What is printed is not quite all that is packed, so what comes of it is
 * the tree only where nothing was met that the descriptors do not know, nor
 * that is printed wrong: else *whole is false, and the tree is to be had from
 * sql/unpack.h.  That both are the same otherwise is tested (fuzz_sql too).
 *
 * Fills in p->tree and p->depth from p->printed, whose text is taken apart in
 * place: the tree's own texts lie in it.  ERR_LIMIT: too deep or too large.
 */
int unprint(struct parse *p, bool *whole, struct err *e) MUST_CHECK;

#endif
