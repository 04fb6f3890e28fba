/* fuzz_sql: any text through the screen, the parser, facts and rewriting.  The
 * input is the statement and, each behind a NUL, the three fragments. */
#include <pg_query.h>
#include <pg_query/pg_query.pb-c.h>
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

struct tokens {
	PgQuery__ScanResult *scan; /* NULL where there are none */
	size_t next;
};

static struct tokens
scan(const char *sql)
{
	PgQueryScanResult r = pg_query_scan(sql);
	struct tokens t = { 0 };

	if (r.error == NULL)
		t.scan = pg_query__scan_result__unpack(NULL, r.pbuf.len,
		    (uint8_t *)r.pbuf.data);
	pg_query_free_scan_result(r);
	return t;
}

/* The next that is no comment, or NULL. */
static const PgQuery__ScanToken *
next(struct tokens *t)
{
	while (t->scan != NULL && t->next < t->scan->n_tokens) {
		const PgQuery__ScanToken *k = t->scan->tokens[t->next++];

		if (k->token != PG_QUERY__TOKEN__SQL_COMMENT &&
		    k->token != PG_QUERY__TOKEN__C_COMMENT)
			return k;
	}
	return NULL;
}

static bool
is_literal(const PgQuery__ScanToken *k)
{
	return k != NULL && (k->token == PG_QUERY__TOKEN__SCONST ||
				k->token == PG_QUERY__TOKEN__USCONST ||
				k->token == PG_QUERY__TOKEN__BCONST ||
				k->token == PG_QUERY__TOKEN__XCONST);
}

/*
 * The scanner's own comments are blank and nothing else is.  Where a literal
 * goes on behind a comment, libpg_query 15 sees two and a server one: what is
 * behind them is not compared.
 */
static void
same_tokens(const char *sql, const char *bare)
{
	struct tokens a = scan(sql), b = scan(bare);
	const PgQuery__ScanToken *k = next(&a), *l, *last = NULL;

	while (!(is_literal(last) && is_literal(k)) && k != NULL) {
		l = next(&b);
		must(b.scan == NULL || (l != NULL && l->token == k->token &&
					   l->start == k->start));
		last = k;
		k = next(&a);
	}
	if (a.scan != NULL && k == NULL)
		must(b.scan != NULL && next(&b) == NULL);
	if (a.scan != NULL)
		pg_query__scan_result__free_unpacked(a.scan, NULL);
	if (b.scan != NULL)
		pg_query__scan_result__free_unpacked(b.scan, NULL);
}

/* What is sent to the server is what the parser has read; this is what it is
 * beside what the agent wrote. */
static void
blank(const char *sql, char *bare)
{
	size_t len = strlen(sql);
	char *again;

	screen_blank(bare, len);
	must(strlen(bare) == len);
	for (size_t i = 0; i < len; i++)
		must(bare[i] == sql[i] ||
		     (bare[i] == ' ' && strchr("\t\n\f\r", sql[i]) == NULL));
	again = mem_strdup(bare);
	screen_blank(again, len);
	must(strcmp(again, bare) == 0);
	free(again);
	same_tokens(sql, bare);
}

/* The tree is the one that libpg_query packs. */
static void
same_tree(const char *sql)
{
	PgQueryProtobufParseResult r = pg_query_parse_protobuf(sql);
	struct err e = ERR_INIT;
	struct parse p;
	long position;
	uint8_t *packed;
	size_t n;

	if (parse_text(sql, strlen(sql), &p, &position, &e) == 0) {
		must(r.error == NULL);
		n = pg_query__parse_result__get_packed_size(p.tree);
		packed = mem_array(n + 1, 1);
		pg_query__parse_result__pack(p.tree, packed);
		must(n == r.parse_tree.len &&
		     memcmp(packed, r.parse_tree.data, n) == 0);
		free(packed);
		parse_release(&p);
	} else {
		must(r.error != NULL || e.code == ERR_LIMIT);
	}
	pg_query_free_protobuf_parse_result(r);
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
	char *parts[4] = { NULL }, why[128], *text, *at, *bare;
	long place;

	if (size > SIZE_MAX_HERE)
		return 0;
	screen_text((const char *)data, size, &limits, why, sizeof(why),
	    &place);
	must(place >= -1 && place <= (long)size);
	if (!text_is_utf8((const char *)data, size))
		return 0;
	text = at = mem_strndup((const char *)data, size);
	for (size_t i = 0; i < 4 && at <= text + size; i++) {
		parts[i] = at;
		at += strlen(at) + 1;
	}
	if (screen_text(text, strlen(text), &limits, why, sizeof(why),
		&place) == SCREEN_FINE) {
		bare = mem_strdup(text);
		blank(text, bare);
		same_tree(bare);
		ask(bare, NULL);
		if (parts[1] != NULL)
			edit = (struct rewrite_edit){ parts[1], parts[2],
				parts[3] };
		ask(bare, &edit);
		free(bare);
	}
	free(text);
	return 0;
}
