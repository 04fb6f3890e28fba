/* reasons: the table of reasons, for people; no daemon is asked */
#ifndef AIRLOCK_CLI_REASONS_H
#define AIRLOCK_CLI_REASONS_H

/* "[--json | --markdown] [CODE]"; gives the exit code. */
int reasons_main(int argc, char **argv);

#endif
