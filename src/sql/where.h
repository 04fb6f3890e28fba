/* where: what a condition's form alone says about the rows that it chooses */
#ifndef AIRLOCK_SQL_WHERE_H
#define AIRLOCK_SQL_WHERE_H

#include <pg_query/pg_query.pb-c.h>
#include <stdbool.h>

/*
 * Constant, or true for every row by its form: TRUE, 1 = 1, id = id, x OR
 * true, name LIKE '%'.  A condition that is plainly false is not vacuous.
 * What depends on a parameter, a function or a subquery is not known here.
 * Locations in it must be forgotten.
 */
bool where_is_vacuous(const PgQuery__Node *where);

#endif
