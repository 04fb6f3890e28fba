/* fuzz_sql: any text through the screen, the parser, facts and rewriting.  The
 * input is the statement and, each behind a NUL, the three fragments. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "sql/answer.h"
#include "sql/parse.h"
#include "sql/screen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SIZE_MAX_HERE 4096 /* of a fuzzer's stack, not of a statement */

static void
must(bool claim)
{
	if (!claim)
		abort();
}

/* As between the child and its keeper: what is told is what is heard. */
static void
cross(const struct answer *a)
{
	struct text out = { 0 }, again = { 0 };
	struct err e = ERR_INIT;
	struct answer b;

	answer_pack(&out, a);
	must(answer_unpack(out.s + FRAME_HEADER, out.len - FRAME_HEADER, &b,
		 &e) == 0);
	answer_pack(&again, &b);
	must(out.len == again.len && memcmp(out.s, again.s, out.len) == 0);
	answer_release(&b);
	text_release(&out);
	text_release(&again);
}

/* With the inserts taken out, the agent's own bytes are left, in order. */
static void
check_rewrite(const char *sql, const struct rewrite_result *r)
{
	long expected = 0;

	for (long p = 0; r->sql[p] != '\0'; p++) {
		long at = rewrite_map_back(r->inserts, r->ninserts, p);

		must(at == -1 || (at == expected && r->sql[p] == sql[at]));
		expected += at != -1;
	}
	must(expected == (long)strlen(sql));
}

static void
ask(const char *sql, const struct rewrite_edit *edit)
{
	struct ask q = { .rewrite = edit != NULL };
	struct answer a;

	q.sql = mem_strdup(sql);
	if (edit != NULL)
		q.edit = *edit;
	answer_make(&q, &a);
	must(a.status != ANSWER_READY);
	must((a.status == ANSWER_OK) == (a.has_facts || a.has_rewrite));
	if (a.has_rewrite)
		check_rewrite(sql, &a.rewrite);
	cross(&a);
	answer_release(&a);
	ask_release(&q);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct screen_limits limits = { SIZE_MAX_HERE, 256, 64 };
	struct rewrite_edit edit = { NULL, "true", "ctid" };
	char *parts[4] = { NULL }, why[128], *text, *at;

	if (size > SIZE_MAX_HERE)
		return 0;
	screen_text((const char *)data, size, &limits, why, sizeof(why));
	if (!text_is_utf8((const char *)data, size))
		return 0;
	text = at = mem_strndup((const char *)data, size);
	for (size_t i = 0; i < 4 && at <= text + size; i++) {
		parts[i] = at;
		at += strlen(at) + 1;
	}
	if (screen_text(text, strlen(text), &limits, why, sizeof(why)) ==
	    SCREEN_FINE) {
		ask(text, NULL);
		if (parts[1] != NULL)
			edit = (struct rewrite_edit){ parts[1], parts[2],
				parts[3] };
		ask(text, &edit);
	}
	free(text);
	return 0;
}
