/* parse: one text through libpg_query, as a tree of bounded depth and size */
#ifndef AIRLOCK_SQL_PARSE_H
#define AIRLOCK_SQL_PARSE_H

#include <pg_query.h>
#include <pg_query/pg_query.pb-c.h>
#include <stddef.h>

#include "base/err.h"

/* Messages inside messages, list and node wrappers not counted. */
#define PARSE_DEPTH_MAX 500
/* What the unpacked tree of one text may take. */
#define PARSE_TREE_BYTES_MAX ((size_t)512 << 20)
/* PostgreSQL quotes the rest of the text in its messages. */
#define PARSE_MESSAGE_MAX 400

struct parse_block; /* memory of the tree, freed as a whole */

struct parse {
	char *sql; /* owned, NUL-terminated */
	size_t len;
	PgQuery__ParseResult *tree;
	int depth;                  /* of the tree, as it is limited */
	PgQueryParseResult printed; /* what the tree's texts lie in */
	struct parse_block *blocks;
	size_t used;
};

/*
 * The text must be UTF-8 without NUL (the caller has looked).  *p is set on
 * success alone.  ERR_INPUT: a syntax error; the text is PostgreSQL's message,
 * cut at PARSE_MESSAGE_MAX bytes, and *position the character where it is,
 * from 1, or 0.  ERR_LIMIT: too deep or too large.
 */
int parse_text(const char *sql, size_t len, struct parse *p, long *position,
    struct err *e) MUST_CHECK;
void parse_release(struct parse *p);
/* Why there is no tree; both give -1. */
int parse_too_deep(struct err *e);
int parse_too_large(struct err *e);
/* n bytes that live as long as the tree, zeroed; NULL above the cap. */
void *parse_alloc(struct parse *p, size_t n);
/* The only statement of the text, or NULL. */
PgQuery__Node *parse_single(const struct parse *p);

#endif
