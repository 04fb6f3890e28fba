/* dsn: connection strings of both forms to one, by libpq's own parser */
#ifndef AIRLOCK_FRONT_DSN_H
#define AIRLOCK_FRONT_DSN_H

#include <stdbool.h>

#include "base/err.h"
#include "base/text.h"

/*
 * Messages never quote the string: a password with an unescaped character in
 * it ends up in any part of it.
 */

/* Gives key=value form of a URL or key=value string, with only what was said
 * in it.  ERR_INPUT where libpq would not take it, or where a character of the
 * password was plainly taken for syntax. */
int dsn_parse(const char *dsn, char **out, struct err *e) MUST_CHECK;
/* Gives it with libpq's environment variables and service file put in. */
int dsn_resolve(const char *dsn, char **out, struct err *e) MUST_CHECK;
/* Appends one option, quoted as far as it has to be. */
void dsn_add(struct text *t, const char *keyword, const char *value);
/* True when in doubt. */
bool dsn_has_password(const char *dsn);
/* Gives it with "********" for each secret. */
char *dsn_masked(const char *dsn);

#endif
