/* reasons: the table of reasons, for people; no daemon is asked */
#ifndef AIRLOCK_CLI_REASONS_H
#define AIRLOCK_CLI_REASONS_H

#include <stdbool.h>

/* "[--json | --markdown] [CODE]"; gives the exit code. */
int reasons_main(bool json, int argc, char **argv);

#endif
