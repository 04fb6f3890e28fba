/* parse: one text through libpg_query, as a tree of bounded depth and size */
#include "sql/parse.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "sql/tree.h"

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

static void *
arena_alloc(void *arg, size_t n)
{
	return parse_alloc(arg, n);
}

static void
arena_free(void *arg UNUSED, void *p UNUSED)
{
}

/* A message that the bytes being read belong to. */
struct frame {
	const ProtobufCMessageDescriptor *d;
	const uint8_t *end;
};

/* Gives false where the bytes are not a varint. */
static bool
varint(const uint8_t **at, const uint8_t *end, uint64_t *v)
{
	*v = 0;
	for (int shift = 0; shift < 64 && *at < end; shift += 7) {
		uint8_t c = *(*at)++;

		*v |= (uint64_t)(c & 0x7f) << shift;
		if (c < 0x80)
			return true;
	}
	return false;
}

static bool
skip(const uint8_t **at, const uint8_t *end, unsigned wire, uint64_t *length)
{
	uint64_t ignored;

	*length = wire == 1 ? 8 : wire == 5 ? 4 : 0;
	if (wire == 0)
		return varint(at, end, &ignored);
	if (wire == 2 && !varint(at, end, length))
		return false;
	return (wire == 1 || wire == 2 || wire == 5) &&
	       *length <= (uint64_t)(end - *at);
}

/*
 * The depth of a packed tree, read from its bytes without recursion, because
 * unpacking takes 2 kB of stack a level.  Wrappers count, so a limit for them
 * is set above PARSE_DEPTH_MAX; gives false where it is passed.
 */
static bool
depth_is_fine(const uint8_t *at, size_t n, int *depth)
{
	struct frame stack[3 * PARSE_DEPTH_MAX], *top = stack;
	const ProtobufCFieldDescriptor *field;
	size_t messages = 0;
	uint64_t tag, length;

	*top = (struct frame){ &pg_query__parse_result__descriptor, at + n };
	for (;;) {
		while (at == top->end) {
			messages -= !tree_is_wrapper(top->d);
			if (top-- == stack)
				return true;
		}
		if (!varint(&at, top->end, &tag) ||
		    !skip(&at, top->end, tag & 7, &length))
			return false;
		field = protobuf_c_message_descriptor_get_field(top->d,
		    (unsigned)(tag >> 3));
		if ((tag & 7) != 2 || field == NULL ||
		    field->type != PROTOBUF_C_TYPE_MESSAGE) {
			at += length;
			continue;
		}
		if (top == stack + sizeof(stack) / sizeof(stack[0]) - 1)
			return false;
		*++top = (struct frame){ field->descriptor, at + length };
		messages += !tree_is_wrapper(top->d);
		if (messages > PARSE_DEPTH_MAX)
			return false;
		if ((int)messages > *depth)
			*depth = (int)messages;
	}
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
parse_text(const char *sql, size_t len, struct parse *p, long *position,
    struct err *e)
{
	ProtobufCAllocator arena = { arena_alloc, arena_free, p };
	PgQueryProtobufParseResult r;
	int rc = 0;

	memset(p, 0, sizeof(*p));
	*position = 0;
	p->sql = mem_strndup(sql, len);
	p->len = len;
	r = pg_query_parse_protobuf(p->sql);
	if (r.error != NULL)
		rc = syntax_error(r.error, position, e);
	else if (!depth_is_fine((uint8_t *)r.parse_tree.data, r.parse_tree.len,
		     &p->depth))
		rc = err_set(e, ERR_LIMIT,
		    "the statement is nested more than %d levels deep",
		    PARSE_DEPTH_MAX);
	else if ((p->tree = pg_query__parse_result__unpack(&arena,
		      r.parse_tree.len, (uint8_t *)r.parse_tree.data)) == NULL)
		rc = err_set(e, ERR_LIMIT, "the statement's tree is too large");
	pg_query_free_protobuf_parse_result(r);
	if (rc == -1)
		parse_release(p);
	return rc;
}

void
parse_release(struct parse *p)
{
	struct parse_block *b;

	while ((b = p->blocks) != NULL) {
		p->blocks = b->next;
		free(b);
	}
	free(p->sql);
	memset(p, 0, sizeof(*p));
}

PgQuery__Node *
parse_single(const struct parse *p)
{
	return p->tree->n_stmts == 1 ? p->tree->stmts[0]->stmt : NULL;
}
