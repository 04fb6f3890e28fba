/* flags: airlockd's command line, one row a flag */
#include "front/flags.h"

#include <assert.h>
#include <getopt.h>
#include <string.h>

#include "base/mem.h"
#include "front/dsn.h"
#include "front/harden.h"

#define LONG_ONLY 1000 /* getopt's value for flag 0; above every letter */

/* clang-format off */
const struct flag_row flag_rows[] = {
	[FLAG_DB] = { "db", 0, "URL|embedded", "database", "writer_dsn",
	    "the database, or a private one made by airlockd" },
	[FLAG_INIT] = { "init", 0, "FILE", "database", "init_file",
	    "SQL that a new embedded database begins with" },
	[FLAG_STATE_DIR] = { "state-dir", 0, "DIR", "airlock", "state_dir",
	    "the state directory" },
	[FLAG_RUNTIME_DIR] = { "runtime-dir", 0, "DIR", "airlock", "runtime_dir",
	    "where the sockets are (run in the state directory)" },
	[FLAG_TTL] = { "ttl", 0, "DURATION", "airlock", "ttl",
	    "how long a change is held for a decision (10m)" },
	[FLAG_ACCESS] = { "access", 0, "read|data|schema", "agent", "access",
	    "what the one agent may propose (data)" },
	[FLAG_OPERATOR_GUARD] = { "operator-guard", 0, "ancestry|off", "airlock", "operator_guard",
	    "how an operator is told from an agent (ancestry)" },
	[FLAG_CONFIG] = { "config", 'f', "FILE", NULL, NULL,
	    "the configuration file, see airlockd.conf(5)" },
	[FLAG_LOG_LEVEL] = { "log-level", 'd', "LEVEL", "airlock", "log_level",
	    "error, warn, info or debug (info)" },
	[FLAG_CHECK] = { "check", 'n', NULL, NULL, NULL,
	    "check the configuration and exit" },
	[FLAG_VERBOSE] = { "verbose", 'v', NULL, NULL, NULL,
	    "with -n print the configuration, else log level debug" },
	[FLAG_GRANTS] = { "grants", 0, NULL, NULL, NULL,
	    "print the SQL of the least privileges and exit" },
	[FLAG_PARSER] = { "parser", 0, NULL, NULL, NULL, NULL },
	[FLAG_HELP] = { "help", 'h', NULL, NULL, NULL, "print this and exit" },
	[FLAG_VERSION] = { "version", 'V', NULL, NULL, NULL,
	    "print the version and exit" },
};
/* clang-format on */
static_assert(sizeof(flag_rows) / sizeof(flag_rows[0]) == FLAG_N,
    "one row a flag");

/* Fills what getopt_long wants from the table. */
static void
make_options(struct option options[FLAG_N + 1], char letters[2 * FLAG_N + 1])
{
	char *p = letters;

	memset(options, 0, (FLAG_N + 1) * sizeof(options[0]));
	for (int i = 0; i < FLAG_N; i++) {
		const struct flag_row *r = &flag_rows[i];

		options[i].name = r->name;
		options[i].has_arg =
		    r->argument != NULL ? required_argument : no_argument;
		options[i].val = LONG_ONLY + i;
		if (r->letter == 0)
			continue;
		*p++ = r->letter;
		if (r->argument != NULL)
			*p++ = ':';
	}
	*p = '\0';
}

static int
flag_of(int got)
{
	int i = 0;

	if (got >= LONG_ONLY)
		return got - LONG_ONLY;
	while (i < FLAG_N && flag_rows[i].letter != got)
		i++;
	return i;
}

static void
take(struct flags *f, int i, char *argument)
{
	mem_free_secret(f->value[i]);
	f->value[i] = mem_strdup(argument != NULL ? argument : "");
	if (i != FLAG_DB || argument == NULL ||
	    strcmp(argument, CONFIG_EMBEDDED) == 0 ||
	    !dsn_has_password(argument))
		return;
	harden_wipe_argument(argument);
	f->db_secret = true;
}

int
flags_parse(struct flags *f, int argc, char **argv, struct err *e)
{
	struct option options[FLAG_N + 1];
	char letters[2 * FLAG_N + 1];
	int got, i;

	memset(f, 0, sizeof(*f));
	make_options(options, letters);
	while ((got = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		i = flag_of(got);
		if (i == FLAG_N)
			return err_set(e, ERR_INPUT, "see airlockd --help");
		take(f, i, optarg);
	}
	f->rest = argv + optind;
	f->nrest = (size_t)(argc - optind);
	if (f->nrest > 0 && f->value[FLAG_GRANTS] == NULL)
		return err_set(e, ERR_INPUT,
		    "'%.40s' is not a flag; see airlockd --help", f->rest[0]);
	return 0;
}

void
flags_release(struct flags *f)
{
	for (int i = 0; i < FLAG_N; i++)
		mem_free_secret(f->value[i]);
	memset(f, 0, sizeof(*f));
}

/* The section's name in the file where there is one, else our own. */
static const char *
name_of(const struct flag_row *r, const struct config *c)
{
	if (strcmp(r->section, "database") == 0)
		return c->gate.database.name != NULL ? c->gate.database.name
		                                     : "main";
	return strcmp(r->section, "agent") == 0 ? "agent" : NULL;
}

int
flags_apply(const struct flags *f, struct config *c, struct err *e)
{
	if (f->value[FLAG_ACCESS] != NULL && c->gate.nagents > 0)
		return err_set(e, ERR_INPUT,
		    "--access is for a start without agents in the "
		    "configuration file; set access in [agent NAME]");
	if (f->value[FLAG_VERBOSE] != NULL && f->value[FLAG_CHECK] == NULL &&
	    config_set(c, "airlock", NULL, "log_level", "debug", e) != 0)
		return -1;
	for (int i = 0; i < FLAG_N; i++) {
		const struct flag_row *r = &flag_rows[i];

		if (r->key == NULL || f->value[i] == NULL)
			continue;
		if (config_set(c, r->section, name_of(r, c), r->key,
			f->value[i], e) != 0)
			return err_wrap(e, "--%s", r->name);
	}
	return 0;
}

void
flags_usage(FILE *out)
{
	fputs("usage: airlockd --db URL|embedded [--init FILE] [--state-dir "
	      "DIR] [FLAG ...]\n"
	      "       airlockd --config FILE [-n [-v]]\n"
	      "       airlockd --grants [TABLE ...]\n\n",
	    out);
	for (int i = 0; i < FLAG_N; i++) {
		const struct flag_row *r = &flag_rows[i];
		char left[64], letter[8] = "    ";

		if (r->help == NULL)
			continue;
		if (r->letter != 0)
			snprintf(letter, sizeof(letter), "-%c, ", r->letter);
		snprintf(left, sizeof(left), "%s--%s %s", letter, r->name,
		    r->argument != NULL ? r->argument : "");
		fprintf(out, "  %-34s %s\n", left, r->help);
	}
}
