/* config: airlockd.conf and flags to one checked struct, and back to text */
#ifndef AIRLOCK_FRONT_CONFIG_H
#define AIRLOCK_FRONT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "base/text.h"
#include "core/options.h"

#define CONFIG_EMBEDDED "embedded" /* in place of a connection string */

/* Owns everything that gate_options lends. */
struct config {
	struct gate_options gate;
	bool embedded;      /* database.writer_dsn was CONFIG_EMBEDDED */
	char *init_file;    /* for embedded */
	char *state_dir;    /* gate.state_dir lends it */
	char *runtime_dir;  /* NULL: run/ in the state directory */
	char **guard_hosts; /* NULL: the built-in list; gate.guard lends it */
	int log_level;
	bool shared_uid; /* agents of one uid may differ in access */
};

void config_init(struct config *c); /* defaults */
void config_release(struct config *c);
/* Reads with libinih; ERR_INPUT names file, line, key and what would be right.
 * The file must be a regular one of ours or root's that no one else can write,
 * nor read where it holds a password. */
int config_read(struct config *c, const char *path, struct err *e) MUST_CHECK;
/* The same from memory; `path` is for messages.  *secret: a password was in it;
 * may be NULL. */
int config_read_text(struct config *c, const char *path, const char *text,
    size_t len, bool *secret, struct err *e) MUST_CHECK;
/* Sets one key as the file would; for flags. section "airlock", name may be
 * NULL. */
int config_set(struct config *c, const char *section, const char *name,
    const char *key, const char *value, struct err *e) MUST_CHECK;
/* After file and flags: fills what is missing, checks what must fit. */
int config_finish(struct config *c, struct err *e) MUST_CHECK;
/* Puts what the environment and the service file say (PGPASSWORD, PGSERVICE,
 * ...) into every connection string, so that the environment can be scrubbed.
 */
int config_resolve(struct config *c, struct err *e) MUST_CHECK;
/* Prints a file that reads back to the same; secrets as "********". */
void config_print(const struct config *c, FILE *out);
/* Appends one line for each uid that stands on both sides of the wall: an
 * agent's and a decider's or airlockd's own, and what its processes could then
 * do. */
void config_overlaps(const struct config *c, struct text *out);
/*
 * Takes over into both `read` (as read at the last start or reload) and
 * `running` the reloadable keys in which `fresh` differs from `read`.  What
 * differs elsewhere is left alone and named in `waits`, comma-separated.
 * Returns the number of keys taken over.
 */
int config_reload(struct config *running, struct config *read,
    const struct config *fresh, struct text *waits);

#endif
