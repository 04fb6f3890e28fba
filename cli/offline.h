/* offline: the verbs of airlock that ask no daemon, one row each */
#ifndef AIRLOCK_CLI_OFFLINE_H
#define AIRLOCK_CLI_OFFLINE_H

#include <stdbool.h>

/* argv begins behind the verb; json: --json stood before it.  Gives the exit
 * code. */
typedef int offline_fn(bool json, int argc, char **argv);

struct offline {
	const char *name, *pattern, *help;
	offline_fn *run;
};
extern const struct offline offline_verbs[]; /* ended by a NULL name */

/* NULL where there is none. */
const struct offline *offline_by_name(const char *name);

#endif
