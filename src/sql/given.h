/* given: what a statement puts into the columns that it writes */
#ifndef AIRLOCK_SQL_GIVEN_H
#define AIRLOCK_SQL_GIVEN_H

#include <pg_query/pg_query.pb-c.h>

#include "sql/facts.h"

/* clang-format off */
/* PostgreSQL's own functions that ask the clock, a sequence or chance. */
#define GIVEN_MAKERS(each) \
	each("nextval") each("now") each("transaction_timestamp") \
	each("statement_timestamp") each("clock_timestamp") each("timeofday") \
	each("random") each("random_normal") each("gen_random_uuid") \
	each("uuidv4") each("uuidv7")
/* clang-format on */

/*
 * Of the INSERT, UPDATE or MERGE m, and of those in its WITH: f->given gets the
 * columns into which a value goes that may come from data, f->made those into
 * which none does, but the clock's, a sequence's or chance's.  What the text
 * and its parameters tell by themselves, and DEFAULT, are neither.  A column
 * is "=name"; "#n", the statement's own target's n-th, from 1; or "*", any.
 */
void given_read(const ProtobufCMessage *m, struct facts *f);

#endif
