/* offline: the verbs of airlock that ask no daemon, one row each */
#include "offline.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "reasons.h"
#include "rule/grants.h"
#include "wire/ctl.h"

static int
refuse(const char *why)
{
	char said[512];

	text_quote_into(said, sizeof(said), why, strlen(why));
	fprintf(stderr, "airlock: %s\n", said);
	return CTL_USAGE;
}

static int
grants(bool json, int argc, char **argv)
{
	struct text sql = { 0 }, line = { 0 };
	struct err e = ERR_INIT;
	int code = CTL_DONE, n = 0;

	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], "--json") == 0)
			json = true;
		else if (argv[i][0] == '-')
			return refuse("grants [--json] [TABLE ...]");
		else
			argv[n++] = argv[i];
	if (grants_add(&sql, (size_t)n, argv, &e) == -1) {
		code = refuse(e.text);
	} else if (json) {
		text_add_json(&line, text_str(&sql), sql.len);
		printf("{\"sql\":%s}\n", text_str(&line));
	} else {
		fputs(text_str(&sql), stdout);
	}
	text_release(&sql);
	text_release(&line);
	return code;
}

/* clang-format off */
const struct offline offline_verbs[] = {
	{ "reasons", "[CODE]", "say what the codes mean; asks no daemon", reasons_main },
	{ "grants", "[TABLE ...]", "print the SQL of the least privileges; likewise", grants },
	{ NULL, NULL, NULL, NULL },
};
/* clang-format on */

const struct offline *
offline_by_name(const char *name)
{
	for (const struct offline *o = offline_verbs; o->name != NULL; o++)
		if (strcmp(o->name, name) == 0)
			return o;
	return NULL;
}
