/* options: airlock's words and options, from argv to one checked struct */
#ifndef AIRLOCK_CLI_OPTIONS_H
#define AIRLOCK_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "offline.h"
#include "wire/ctl.h"

/* What options_parse lends from argv; nothing here is owned. */
struct options {
	const char *state_dir, *socket;
	bool json, help, version;
	const char *table, *column, *file; /* show; file: --export */
	long offset, limit;                /* show, log; -1: not given */
	const char *reason;                /* rollback */
	bool follow, verify;               /* log */
	const char *change;                /* log */
	enum ctl_verb verb; /* CTL_NVERBS: none, then help or version is set */
	const char *arg;    /* the change of show, commit, rollback */
	const struct offline *offline; /* instead of a verb; its words follow */
	int rest;                      /* at argv[rest] */
};

/* ERR_INPUT names the bad word, quoted, and lists the possible ones. */
int options_parse(int argc, char **argv, struct options *out,
    struct err *e) MUST_CHECK;
/* The whole usage: verbs from ctl_verbs, options from the table. */
void options_help(FILE *out);

#endif
