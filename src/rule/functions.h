/* functions: which built-in and well-known functions reach outside */
#ifndef AIRLOCK_RULE_FUNCTIONS_H
#define AIRLOCK_RULE_FUNCTIONS_H

#include <stdbool.h>

/*
 * True for a function that acts outside the transaction (files, large objects,
 * other connections, other backends, advisory locks, WAL, replication,
 * settings, notifications), runs text as SQL, or only holds its caller up.
 * `name` without schema, as the parse tree has it.  Refused in both tools
 * whatever schema is named: by design a function of that name elsewhere is
 * refused too.
 */
bool function_reaches_out(const char *name);
/* The same names as a regular expression of PostgreSQL's, which the catalog is
 * asked with: by oid, wherever such a function of pg_catalog is called from. */
char *functions_pattern(void);
/* VOLATILE functions that a read may call, as an SQL array literal: of
 * pg_catalog, and "extension.function" of what belongs to an extension. */
extern const char functions_harmless[];
/* Extensions none of whose functions is called, as an SQL array literal. */
extern const char functions_extensions[];

#endif
