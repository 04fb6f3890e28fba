/* splice: the tokens of one statement, and where its clauses begin and end */
#include "sql/splice.h"

#include <pg_query.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool
is_white(char c)
{
	return c != '\0' && strchr(" \t\n\r\f\v", c) != NULL;
}

/*
 * libpg_query 15 says of U&'..' and U&".." that they end where they start, so
 * a token ends where the next one starts (a comment is one too), white space
 * aside.
 */
static void
set_ends(const char *sql, const PgQuery__ScanResult *r, struct splice_token *v)
{
	for (size_t i = 0; i < r->n_tokens; i++) {
		long end = i + 1 < r->n_tokens ? r->tokens[i + 1]->start
		                               : (long)strlen(sql);

		while (end > r->tokens[i]->start && is_white(sql[end - 1]))
			end--;
		v[i].start = r->tokens[i]->start;
		v[i].end = end;
		v[i].what = r->tokens[i]->token;
	}
}

static void
set_depths(struct splice_tokens *t)
{
	int depth = 0;

	for (size_t i = 0; i < t->n; i++) {
		PgQuery__Token what = t->v[i].what;

		if (what == PG_QUERY__TOKEN__ASCII_41 ||
		    what == PG_QUERY__TOKEN__ASCII_93)
			depth--;
		t->v[i].depth = depth;
		if (what == PG_QUERY__TOKEN__ASCII_40 ||
		    what == PG_QUERY__TOKEN__ASCII_91)
			depth++;
	}
}

/* Keeps what belongs to the first statement that there is. */
static void
drop_comments(struct splice_tokens *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n; i++) {
		PgQuery__Token what = t->v[i].what;

		if (what == PG_QUERY__TOKEN__ASCII_59 && kept > 0)
			break;
		if (what != PG_QUERY__TOKEN__SQL_COMMENT &&
		    what != PG_QUERY__TOKEN__C_COMMENT &&
		    what != PG_QUERY__TOKEN__ASCII_59)
			t->v[kept++] = t->v[i];
	}
	t->n = kept;
}

int
splice_scan(const char *sql, struct splice_tokens *t, struct err *e)
{
	PgQueryScanResult r = pg_query_scan(sql);
	PgQuery__ScanResult *s = NULL;

	if (r.error == NULL)
		s = pg_query__scan_result__unpack(NULL, r.pbuf.len,
		    (uint8_t *)r.pbuf.data);
	pg_query_free_scan_result(r);
	if (s == NULL)
		return err_set(e, ERR_INPUT, "the statement cannot be scanned");
	t->n = s->n_tokens;
	t->v = mem_array(t->n, sizeof(*t->v));
	set_ends(sql, s, t->v);
	pg_query__scan_result__free_unpacked(s, NULL);
	drop_comments(t);
	set_depths(t);
	return 0;
}

void
splice_release(struct splice_tokens *t)
{
	free(t->v);
	memset(t, 0, sizeof(*t));
}

size_t
splice_at(const struct splice_tokens *t, long at)
{
	size_t i = 0;

	while (i < t->n && t->v[i].start < at)
		i++;
	return i;
}

/* t.where is a column, AS where a label, and DISTINCT FROM an operator. */
static bool
is_clause(const struct splice_tokens *t, size_t i)
{
	PgQuery__Token before;

	if (t->v[i].depth != 0)
		return false;
	if (i == 0)
		return true;
	before = t->v[i - 1].what;
	return before != PG_QUERY__TOKEN__ASCII_46 &&
	       before != PG_QUERY__TOKEN__AS &&
	       (before != PG_QUERY__TOKEN__DISTINCT ||
		   t->v[i].what != PG_QUERY__TOKEN__FROM);
}

size_t
splice_find(const struct splice_tokens *t, size_t from, size_t to,
    PgQuery__Token what)
{
	for (size_t i = from; i < to; i++)
		if (t->v[i].what == what && is_clause(t, i))
			return i;
	return SPLICE_NONE;
}
