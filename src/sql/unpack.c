/* unpack: a parse tree out of the bytes that libpg_query packs it into */
#include "sql/unpack.h"

#include <stdbool.h>
#include <stdint.h>

#include "sql/tree.h"

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

int
unpack_tree(struct parse *p, struct err *e)
{
	ProtobufCAllocator arena = { arena_alloc, arena_free, p };
	PgQueryProtobufParseResult r = pg_query_parse_protobuf(p->sql);
	int rc = 0;

	if (r.error != NULL)
		rc = err_set(e, ERR_LIMIT, "the statement cannot be packed");
	else if (!depth_is_fine((uint8_t *)r.parse_tree.data, r.parse_tree.len,
		     &p->depth))
		rc = parse_too_deep(e);
	else if ((p->tree = pg_query__parse_result__unpack(&arena,
		      r.parse_tree.len, (uint8_t *)r.parse_tree.data)) == NULL)
		rc = parse_too_large(e);
	pg_query_free_protobuf_parse_result(r);
	return rc;
}
