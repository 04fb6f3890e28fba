/* config: airlockd.conf and flags to one checked struct, and back to text */
#ifndef AIRLOCK_FRONT_CONFIG_H
#define AIRLOCK_FRONT_CONFIG_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "core/options.h"

/* Owns everything that gate_options lends. */
struct config {
	struct gate_options gate;
	bool embedded;	 /* database = embedded */
	char *init_file; /* for embedded */
	char *state_dir;
	char *runtime_dir;
	int log_level;
};

void config_init(struct config *c); /* defaults */
void config_release(struct config *c);
/* Reads with libinih; ERR_INPUT names file, line, key and what would be right. */
int config_read(struct config *c, const char *path, struct err *e) MUST_CHECK;
/* Sets one key as the file would; for flags. section "airlock", name may be
 * NULL. */
int config_set(struct config *c, const char *section, const char *name,
    const char *key, const char *value, struct err *e) MUST_CHECK;
/* After file and flags: fills what is missing, checks what must fit. */
int config_finish(struct config *c, struct err *e) MUST_CHECK;
/* Prints a file that reads back to the same; secrets as "********". */
void config_print(const struct config *c, FILE *out);

#endif
