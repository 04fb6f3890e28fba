/* reasons: the table of reasons, for people; no daemon is asked */
#include "reasons.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "rule/reasons.h"
#include "wire/ctl.h"

enum form { TEXT, JSON, MARKDOWN };

static void
as_text(const struct reason_row *r)
{
	printf("%-22s %-7s %s\n", r->code, severity_name[r->severity],
	    r->meaning);
}

static void
in_full(const struct reason_row *r)
{
	bool refused = r->severity == SEVERITY_REFUSE;

	printf("%s (%s)\n  %s.\n  %s: %s\n", r->code,
	    refused ? "the statement is refused" : severity_name[r->severity],
	    r->meaning, refused ? "The agent is told" : "What to look at",
	    r->advice);
}

static json_t *
as_json(const struct reason_row *r)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "code", r->code, "severity",
	    severity_name[r->severity], "meaning", r->meaning, "advice",
	    r->advice);
}

static void
markdown_of(enum severity from, enum severity to, const char *title,
    const char *advice)
{
	printf("\n## %s\n\n| code | risk | meaning | %s |\n|---|---|---|---|\n",
	    title, advice);
	for (int i = 0; i < REASON_N; i++)
		if (reasons[i].severity >= from && reasons[i].severity <= to)
			printf("| `%s` | %s | %s | %s |\n", reasons[i].code,
			    severity_name[reasons[i].severity],
			    reasons[i].meaning, reasons[i].advice);
}

static void
as_markdown(void)
{
	puts("# Reasons\n\nEvery code that a refusal or a risk can carry. This "
	     "page is made from\n`src/rule/reasons.h` by `make reasons`; "
	     "`airlock reasons CODE` says the same of one.\n\nA refusal reads "
	     "`REFUSED CODE: what is wrong (at character N, near \"...\"). "
	     "What would be\naccepted`. `ERROR` and five characters is the "
	     "database's own word, its SQLSTATE.");
	markdown_of(SEVERITY_REFUSE, SEVERITY_REFUSE, "Refusals",
	    "what the agent is told");
	markdown_of(SEVERITY_NOTE, SEVERITY_HIGH, "Risks of a held change",
	    "what to look at");
}

static int
one(enum form form, const char *code)
{
	enum reason r = reason_by_code(code);

	if (r == REASON_N) {
		fprintf(stderr, "airlock: there is no such reason; 'airlock "
				"reasons' lists them\n");
		return CTL_NO;
	}
	if (form == JSON) {
		json_t *j = as_json(&reasons[r]);

		json_dumpf(j, stdout, JSON_ENSURE_ASCII | JSON_COMPACT);
		json_decref(j);
		putchar('\n');
	} else {
		in_full(&reasons[r]);
	}
	return CTL_DONE;
}

static int
all(enum form form)
{
	json_t *list = json_array();

	for (int i = 0; i < REASON_N; i++)
		if (form == TEXT)
			as_text(&reasons[i]);
		else
			json_array_append_new(list, as_json(&reasons[i]));
	if (form == JSON) {
		json_dumpf(list, stdout, JSON_ENSURE_ASCII | JSON_COMPACT);
		putchar('\n');
	}
	json_decref(list);
	if (form == MARKDOWN)
		as_markdown();
	return CTL_DONE;
}

static int
usage(void)
{
	fputs("airlock: reasons [--json] [CODE], or reasons --markdown\n",
	    stderr);
	return CTL_USAGE;
}

int
reasons_main(bool json, int argc, char **argv)
{
	enum form form = json ? JSON : TEXT;
	const char *code = NULL;

	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			form = JSON;
		else if (strcmp(argv[i], "--markdown") == 0)
			form = MARKDOWN;
		else if (*argv[i] != '-' && code == NULL)
			code = argv[i];
		else
			return usage();
	}
	if (form == MARKDOWN && code != NULL)
		return usage();
	return code != NULL ? one(form, code) : all(form);
}
