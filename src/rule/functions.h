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
/* VOLATILE functions of pg_catalog that a read may call, as an SQL array
 * literal for the probe that travels with each read. */
extern const char functions_harmless[];

#endif
