/* parse: one text through libpg_query, as a tree of bounded depth and size */
#include "sql/parse.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "sql/unpack.h"
#include "sql/unprint.h"

#define BLOCK_SIZE ((size_t)32 << 10)
#define ALIGNMENT sizeof(max_align_t)

struct parse_block {
	struct parse_block *next;
	size_t size, used;
	max_align_t data[];
};

void *
parse_alloc(struct parse *p, size_t n)
{
	struct parse_block *b = p->blocks;
	size_t size;
	char *at;

	if (n > PARSE_TREE_BYTES_MAX - p->used)
		return NULL;
	n = (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (b == NULL || b->size - b->used < n) {
		size = n > BLOCK_SIZE ? n : BLOCK_SIZE;
		b = mem_array(1, sizeof(*b) + size);
		b->size = size;
		b->next = p->blocks;
		p->blocks = b;
	}
	at = (char *)b->data + b->used;
	b->used += n;
	p->used += n;
	if (p->used > PARSE_TREE_BYTES_MAX)
		p->used = PARSE_TREE_BYTES_MAX;
	return at;
}

static int
syntax_error(const PgQueryError *error, long *position, struct err *e)
{
	const char *text = error->message != NULL
	                       ? error->message
	                       : "the parser gave no message";
	size_t n;

	*position = error->cursorpos > 0 ? error->cursorpos : 0;
	if (text_starts_with(text, "memory exhausted") ||
	    text_starts_with(text, "out of memory") ||
	    text_starts_with(text, "stack depth"))
		return err_set(e, ERR_LIMIT,
		    "the statement is nested too deeply");
	n = text_utf8_cut(text, strlen(text), PARSE_MESSAGE_MAX);
	return err_set(e, ERR_INPUT, "%.*s", (int)n, text);
}

int
parse_too_deep(struct err *e)
{
	return err_set(e, ERR_LIMIT,
	    "the statement is nested more than %d levels deep",
	    PARSE_DEPTH_MAX);
}

int
parse_too_large(struct err *e)
{
	return err_set(e, ERR_LIMIT, "the statement's tree is too large");
}

static void
forget_tree(struct parse *p)
{
	struct parse_block *b;

	while ((b = p->blocks) != NULL) {
		p->blocks = b->next;
		free(b);
	}
	p->used = 0;
	p->tree = NULL;
	p->depth = 0;
}

static int
read_tree(struct parse *p, struct err *e)
{
	bool whole;

	if (unprint(p, &whole, e) == -1)
		return -1;
	if (whole)
		return 0;
	forget_tree(p);
	return unpack_tree(p, e);
}

int
parse_text(const char *sql, size_t len, struct parse *p, long *position,
    struct err *e)
{
	int rc;

	memset(p, 0, sizeof(*p));
	*position = 0;
	p->sql = mem_strndup(sql, len);
	p->len = len;
	p->printed = pg_query_parse(p->sql);
	rc = p->printed.error != NULL
	         ? syntax_error(p->printed.error, position, e)
	         : read_tree(p, e);
	if (rc == -1)
		parse_release(p);
	return rc;
}

void
parse_release(struct parse *p)
{
	forget_tree(p);
	pg_query_free_parse_result(p->printed);
	free(p->sql);
	memset(p, 0, sizeof(*p));
}

PgQuery__Node *
parse_single(const struct parse *p)
{
	return p->tree->n_stmts == 1 ? p->tree->stmts[0]->stmt : NULL;
}
