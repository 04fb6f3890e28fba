/* options: airlock's words and options, from argv to one checked struct */
#include "options.h"

#include <assert.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"

#define ON(verb) (1u << (verb))
#define ALL (ON(CTL_NVERBS) - 1)

enum kind { FLAG, TEXT, NUMBER };

struct option_row {
	const char *name;
	char letter; /* 0: none */
	enum kind kind;
	size_t at;      /* in struct options */
	unsigned verbs; /* with which it may stand */
	const char *value, *help;
};

#define AT(member) offsetof(struct options, member)
/* clang-format off */
static const struct option_row table[] = {
	{ "--state-dir", 0, TEXT, AT(state_dir), ALL, "DIR",
	    "the daemon's state directory" },
	{ "--socket", 0, TEXT, AT(socket), ALL, "PATH",
	    "its control socket, where that is elsewhere" },
	{ "--json", 0, FLAG, AT(json), ALL, NULL,
	    "JSON on standard output" },
	{ "--help", 'h', FLAG, AT(help), ALL, NULL, "this text" },
	{ "--version", 'V', FLAG, AT(version), ALL, NULL,
	    "this program's version" },
	{ "--table", 0, TEXT, AT(table), ON(CTL_SHOW), "NAME",
	    "rows of this table only (show)" },
	{ "--column", 0, TEXT, AT(column), ON(CTL_SHOW), "NAME",
	    "this column only, its values uncut (show)" },
	{ "--offset", 0, NUMBER, AT(offset), ON(CTL_SHOW), "N",
	    "begin behind the first N rows (show)" },
	{ "--limit", 0, NUMBER, AT(limit), ON(CTL_SHOW) | ON(CTL_LOG), "N",
	    "at most N rows (show), the last N records (log)" },
	{ "--export", 0, TEXT, AT(file), ON(CTL_SHOW), "FILE",
	    "write header and rows as NDJSON to a new FILE (show)" },
	{ "--reason", 0, TEXT, AT(reason), ON(CTL_ROLLBACK), "TEXT",
	    "told to the agent (rollback)" },
	{ "--follow", 'f', FLAG, AT(follow), ON(CTL_LOG), NULL,
	    "go on with records as they come (log)" },
	{ "--verify", 0, FLAG, AT(verify), ON(CTL_LOG), NULL,
	    "check the chain of hashes (log)" },
	{ "--change", 0, TEXT, AT(change), ON(CTL_LOG), "ID",
	    "records of this change only (log)" },
};
/* clang-format on */
#define NOPTIONS (sizeof(table) / sizeof(table[0]))

void
options_help(FILE *out)
{
	char left[64];

	fputs("usage: airlock [--state-dir DIR | --socket PATH] [--json] "
	      "VERB [ARGUMENT] [OPTIONS]\n\n",
	    out);
	for (size_t i = 0; i < CTL_NVERBS; i++) {
		snprintf(left, sizeof(left), "%s %s", ctl_verbs[i].name,
		    ctl_verbs[i].pattern != NULL ? ctl_verbs[i].pattern : "");
		fprintf(out, "  %-30s %s\n", left, ctl_verbs[i].help);
	}
	for (const struct offline *o = offline_verbs; o->name != NULL; o++) {
		snprintf(left, sizeof(left), "%s %s", o->name, o->pattern);
		fprintf(out, "  %-30s %s\n", left, o->help);
	}
	fprintf(out, "  %-30s %s\n\n", "help", "this text");
	for (size_t i = 0; i < NOPTIONS; i++) {
		const struct option_row *o = &table[i];

		snprintf(left, sizeof(left), "%c%c%s%s%s%s",
		    o->letter != 0 ? '-' : ' ',
		    o->letter != 0 ? o->letter : ' ',
		    o->letter != 0 ? ", " : "  ", o->name,
		    o->value != NULL ? " " : "",
		    o->value != NULL ? o->value : "");
		fprintf(out, "  %-30s %s\n", left, o->help);
	}
	fputs("\nexit codes: 0 done, 1 the answer is no, 2 wrong usage, "
	      "3 daemon not reachable, 4 not permitted\n",
	    out);
}

static int
bad_verb(const char *word, struct err *e)
{
	struct text t = { 0 };
	char quoted[64];
	int rc;

	for (size_t i = 0; i < CTL_NVERBS; i++)
		text_addf(&t, "%s ", ctl_verbs[i].name);
	for (const struct offline *o = offline_verbs; o->name != NULL; o++)
		text_addf(&t, "%s ", o->name);
	if (word == NULL) {
		rc = err_set(e, ERR_INPUT,
		    "a verb is missing; the possible ones: %shelp", t.s);
	} else {
		text_quote_into(quoted, sizeof(quoted), word, strlen(word));
		rc = err_set(e, ERR_INPUT,
		    "there is no verb '%s'; the possible ones: %shelp", quoted,
		    t.s);
	}
	text_release(&t);
	return rc;
}

/* verb CTL_NVERBS: not known yet, so all are listed. */
static int
bad_option(const char *word, enum ctl_verb verb, struct err *e)
{
	unsigned may = verb == CTL_NVERBS ? ALL : ON(verb);
	struct text t = { 0 };
	char quoted[64];
	int rc;

	for (size_t i = 0; i < NOPTIONS; i++)
		if (table[i].verbs & may)
			text_addf(&t, " %s", table[i].name);
	text_quote_into(quoted, sizeof(quoted), word, strcspn(word, "="));
	rc = err_set(e, ERR_INPUT,
	    "there is no option '%s'%s%s; the possible ones:%s", quoted,
	    verb == CTL_NVERBS ? "" : " for ",
	    verb == CTL_NVERBS ? "" : ctl_verbs[verb].name, t.s);
	text_release(&t);
	return rc;
}

static const struct option_row *
find(const char *word)
{
	size_t len = strcspn(word, "=");

	for (size_t i = 0; i < NOPTIONS; i++) {
		const struct option_row *o = &table[i];

		if (strlen(o->name) == len && strncmp(o->name, word, len) == 0)
			return o;
		if (o->letter != 0 && word[1] == o->letter && word[2] == '\0')
			return o;
	}
	return NULL;
}

static int
set(struct options *out, const struct option_row *o, const char *value,
    struct err *e)
{
	char *at = (char *)out + o->at, quoted[64];
	long long n;

	switch (o->kind) {
	case FLAG:
		memcpy(at, &(bool){ true }, sizeof(bool));
		return 0;
	case TEXT:
		memcpy(at, &value, sizeof(value));
		return 0;
	case NUMBER:
		assert(value != NULL);
		text_quote_into(quoted, sizeof(quoted), value, strlen(value));
		if (text_to_long(quoted, 0, LONG_MAX / 2, &n, e) == -1)
			return err_wrap(e, "option '%s'", o->name);
		memcpy(at, &(long){ (long)n }, sizeof(long));
		return 0;
	}
	return 0;
}

/* One option at argv[*i]; steps over its value. */
static int
take_option(int argc, char **argv, int *i, struct options *out, unsigned *needs,
    struct err *e)
{
	const char *word = argv[*i], *value = strchr(word, '=');
	const struct option_row *o = find(word);

	if (o == NULL)
		return bad_option(word, out->verb, e);
	if (o->kind == FLAG) {
		if (value != NULL)
			return err_set(e, ERR_INPUT,
			    "option '%s' takes no value", o->name);
	} else if (value != NULL) {
		value++;
	} else if (*i + 1 < argc) {
		value = argv[++*i];
	} else {
		return err_set(e, ERR_INPUT, "option '%s' needs a value (%s)",
		    o->name, o->value);
	}
	*needs |= 1u << (o - table);
	return set(out, o, value, e);
}

static int
take_word(const char *word, int *nwords, struct options *out, struct err *e)
{
	if ((*nwords)++ == 0) {
		if (strcmp(word, "help") == 0) {
			out->help = true;
			return 0;
		}
		out->offline = offline_by_name(word);
		if (out->offline != NULL)
			return 0;
		out->verb = ctl_verb_by_name(word);
		return out->verb == CTL_NVERBS ? bad_verb(word, e) : 0;
	}
	if (out->help)
		return 0; /* "help VERB" is the same text */
	if (*nwords == 2) {
		out->arg = word;
		return 0;
	}
	return err_set(e, ERR_INPUT, "'%s' is one word too many for %s", word,
	    ctl_verbs[out->verb].name);
}

static bool
takes_change(enum ctl_verb verb)
{
	return verb == CTL_SHOW || verb == CTL_COMMIT || verb == CTL_ROLLBACK;
}

/* What can only be told once all words are read. */
static int
check(const struct options *o, unsigned given, struct err *e)
{
	if (o->help || o->offline != NULL ||
	    (o->version && o->verb == CTL_NVERBS))
		return 0;
	if (o->verb == CTL_NVERBS)
		return bad_verb(NULL, e);
	for (size_t i = 0; i < NOPTIONS; i++)
		if ((given & (1u << i)) && !(table[i].verbs & ON(o->verb)))
			return bad_option(table[i].name, o->verb, e);
	if (takes_change(o->verb) && (o->arg == NULL || o->arg[0] == '\0'))
		return err_set(e, ERR_INPUT,
		    "%s needs the id of a change (airlock pending lists them)",
		    ctl_verbs[o->verb].name);
	if (!takes_change(o->verb) && o->arg != NULL)
		return err_set(e, ERR_INPUT, "%s takes no argument",
		    ctl_verbs[o->verb].name);
	if (o->verify && o->follow)
		return err_set(e, ERR_INPUT,
		    "--verify and --follow do not go together");
	if (o->json && o->column != NULL)
		return err_set(e, ERR_INPUT,
		    "--json and --column do not go together");
	return 0;
}

int
options_parse(int argc, char **argv, struct options *out, struct err *e)
{
	static_assert(NOPTIONS <= 32, "one bit an option");
	bool words_only = false;
	unsigned given = 0;
	int nwords = 0;

	memset(out, 0, sizeof(*out));
	out->offset = out->limit = -1;
	out->verb = CTL_NVERBS;
	for (int i = 1; i < argc && out->offline == NULL; i++) {
		out->rest = i + 1;
		if (!words_only && strcmp(argv[i], "--") == 0) {
			words_only = true;
		} else if (!words_only && argv[i][0] == '-' &&
			   argv[i][1] != '\0') {
			if (take_option(argc, argv, &i, out, &given, e) == -1)
				return -1;
		} else if (take_word(argv[i], &nwords, out, e) == -1) {
			return -1;
		}
	}
	return check(out, given, e);
}
