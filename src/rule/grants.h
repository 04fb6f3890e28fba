/* grants: the SQL that gives the three logins their least privileges */
#ifndef AIRLOCK_RULE_GRANTS_H
#define AIRLOCK_RULE_GRANTS_H

#include <stddef.h>

#include "base/err.h"
#include "base/text.h"

#define GRANTS_WRITER "airlock_writer"
#define GRANTS_READER "airlock_reader"
#define GRANTS_OBSERVER "airlock_observer"

/* Appends the logins and what they need of the database itself. */
void grants_add_logins(struct text *t);
/* Appends what they need of one table, "TABLE" or "SCHEMA.TABLE" as written in
 * the catalog, or of all tables of a schema, "SCHEMA.*". */
int grants_add_table(struct text *t, const char *table,
    struct err *e) MUST_CHECK;
/* Both, for n tables; none: public.*. */
int grants_add(struct text *t, size_t n, char *const *tables,
    struct err *e) MUST_CHECK;
/* Appends what they need of all tables that there are, by psql's \gexec. */
void grants_add_everything(struct text *t);

#endif
