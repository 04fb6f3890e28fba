/* flags: airlockd's command line, one row a flag */
#ifndef AIRLOCK_FRONT_FLAGS_H
#define AIRLOCK_FRONT_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "front/config.h"

enum flag {
	FLAG_DB,
	FLAG_INIT,
	FLAG_STATE_DIR,
	FLAG_RUNTIME_DIR,
	FLAG_TTL,
	FLAG_ACCESS,
	FLAG_OPERATOR_GUARD,
	FLAG_CONFIG,
	FLAG_LOG_LEVEL,
	FLAG_CHECK,
	FLAG_VERBOSE,
	FLAG_GRANTS,
	FLAG_PARSER,
	FLAG_HELP,
	FLAG_VERSION,
	FLAG_N
};

struct flag_row {
	const char *name;          /* without its two hyphens */
	char letter;               /* 0: none */
	const char *argument;      /* NULL: takes none */
	const char *section, *key; /* what it sets; NULL: see main */
	const char *help;          /* NULL: internal, not shown */
};
extern const struct flag_row flag_rows[FLAG_N];

struct flags {
	char *value[FLAG_N]; /* "" for a flag that takes no argument; NULL: not
	                        given.  Owned: the arguments may be wiped. */
	char **rest;         /* what follows the flags; lent by argv */
	size_t nrest;
	bool db_secret; /* a password was in argv; it is wiped there */
};

int flags_parse(struct flags *f, int argc, char **argv,
    struct err *e) MUST_CHECK;
void flags_release(struct flags *f);
/* Puts what was given into a config, over what a file said. */
int flags_apply(const struct flags *f, struct config *c,
    struct err *e) MUST_CHECK;
void flags_usage(FILE *out);

#endif
