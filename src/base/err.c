/* errors as values: a code that callers branch on, and one line of text */
#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const err_names[] = {
	[ERR_NONE] = "none",
	[ERR_INPUT] = "input",
	[ERR_LIMIT] = "limit",
	[ERR_SYSTEM] = "system",
	[ERR_DATABASE] = "database",
	[ERR_GONE] = "gone",
	[ERR_UNFIT] = "state",
	[ERR_DENIED] = "denied",
	[ERR_BUG] = "bug",
};
static_assert(sizeof(err_names) / sizeof(err_names[0]) == ERR_NCODES,
    "every error code has a name");

int
err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return -1;
}

int
err_sys(struct err *e, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;
	size_t n;

	e->code = ERR_SYSTEM;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof(e->text) - n, ": %s", strerror(saved));
	errno = saved;
	return -1;
}

int
err_wrap(struct err *e, const char *fmt, ...)
{
	char rest[sizeof(e->text)];
	va_list ap;
	size_t n;

	memcpy(rest, e->text, sizeof(rest));
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof(e->text) - n, ": %s", rest);
	return -1;
}

const char *
err_name(enum err_code code)
{
	return (unsigned)code < ERR_NCODES ? err_names[code] : "unknown";
}
