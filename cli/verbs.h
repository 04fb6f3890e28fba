/* verbs: what each verb of airlock does at this end */
#ifndef AIRLOCK_CLI_VERBS_H
#define AIRLOCK_CLI_VERBS_H

#include "client.h"
#include "options.h"

/* Runs o->verb: data on stdout, talk on stderr; gives the exit code. */
enum ctl_exit verb_run(const struct options *o, const struct client *c);

#endif
