/* tree: libpg_query's protobuf trees, read by their descriptors, so that a node
 * of any version is walked whether it is known here or not */
#include "sql/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

bool
tree_is_wrapper(const ProtobufCMessageDescriptor *d)
{
	return d == &pg_query__node__descriptor ||
	       d == &pg_query__list__descriptor;
}

ProtobufCMessage *
tree_inner(const PgQuery__Node *n)
{
	/* Every member of the union is a pointer to a message. */
	if (n == NULL || n->node_case == PG_QUERY__NODE__NODE__NOT_SET)
		return NULL;
	return (ProtobufCMessage *)n->alias;
}

void *
tree_as(const PgQuery__Node *n, const ProtobufCMessageDescriptor *d)
{
	ProtobufCMessage *m = tree_inner(n);

	return m != NULL && m->descriptor == d ? m : NULL;
}

static const void *
member(const ProtobufCMessage *m, unsigned offset)
{
	return (const char *)m + offset;
}

/* A oneof's member exists only while its case says so. */
static bool
is_there(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	if (!(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
		return true;
	return *(const uint32_t *)member(m, f->quantifier_offset) == f->id;
}

static int
tell(ProtobufCMessage *child, const ProtobufCFieldDescriptor *f,
    tree_visit *visit, void *arg)
{
	if (child == NULL)
		return 0;
	if (child->descriptor == &pg_query__node__descriptor) {
		if (child->n_unknown_fields != 0)
			return visit(arg, child, f);
		child = tree_inner((PgQuery__Node *)child);
	}
	return visit(arg, child, f);
}

int
tree_children(const ProtobufCMessage *m, tree_visit *visit, void *arg)
{
	const ProtobufCMessageDescriptor *d = m->descriptor;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];
		ProtobufCMessage *const *v;
		size_t n = 1;

		if (f->type != PROTOBUF_C_TYPE_MESSAGE || !is_there(m, f))
			continue;
		v = member(m, f->offset);
		if (f->label == PROTOBUF_C_LABEL_REPEATED) {
			n = *(const size_t *)member(m, f->quantifier_offset);
			v = *(ProtobufCMessage *const *const *)member(m,
			    f->offset);
		}
		for (size_t k = 0; rc == 0 && k < n; k++)
			rc = tell(v[k], f, visit, arg);
	}
	return rc;
}

static const ProtobufCFieldDescriptor *
find(const ProtobufCMessage *m, const char *name, ProtobufCType type)
{
	const ProtobufCFieldDescriptor *f =
	    protobuf_c_message_descriptor_get_field_by_name(m->descriptor,
		name);

	return f != NULL && f->type == type &&
	               f->label != PROTOBUF_C_LABEL_REPEATED
	           ? f
	           : NULL;
}

bool
tree_bool(const ProtobufCMessage *m, const char *field)
{
	const ProtobufCFieldDescriptor *f =
	    find(m, field, PROTOBUF_C_TYPE_BOOL);

	return f != NULL && *(const protobuf_c_boolean *)member(m, f->offset);
}

const ProtobufCMessage *
tree_message(const ProtobufCMessage *m, const char *field)
{
	const ProtobufCFieldDescriptor *f =
	    find(m, field, PROTOBUF_C_TYPE_MESSAGE);
	const ProtobufCMessage *child;

	if (f == NULL || !is_there(m, f))
		return NULL;
	child = *(ProtobufCMessage *const *)member(m, f->offset);
	return f->descriptor == &pg_query__node__descriptor
	           ? tree_inner((const PgQuery__Node *)child)
	           : child;
}

const char *
tree_enum(const ProtobufCMessage *m, const char *field)
{
	const ProtobufCFieldDescriptor *f =
	    find(m, field, PROTOBUF_C_TYPE_ENUM);
	const ProtobufCEnumValue *v;

	if (f == NULL)
		return NULL;
	v = protobuf_c_enum_descriptor_get_value(f->descriptor,
	    *(const int *)member(m, f->offset));
	return v != NULL ? v->name : NULL;
}

void
tree_qualified(PgQuery__Node *const *v, size_t n, const char **schema,
    const char **name)
{
	const PgQuery__String *s;

	*schema = *name = NULL;
	if (n > 0 && (s = tree_as(v[n - 1], &pg_query__string__descriptor)))
		*name = s->sval;
	if (n > 1 && (s = tree_as(v[n - 2], &pg_query__string__descriptor)))
		*schema = s->sval;
}

static bool
is_location(const ProtobufCFieldDescriptor *f)
{
	size_t n = strlen(f->name), tail = strlen("location");

	if (f->type != PROTOBUF_C_TYPE_INT32 ||
	    f->label == PROTOBUF_C_LABEL_REPEATED)
		return false;
	return strcmp(f->name, "stmt_len") == 0 ||
	       (n >= tail && strcmp(f->name + n - tail, "location") == 0);
}

static int
forget(void *arg UNUSED, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *field UNUSED)
{
	/* The tree is the caller's to change; visits lend it as const. */
	if (m != NULL)
		tree_forget_locations((ProtobufCMessage *)(uintptr_t)m);
	return 0;
}

void
tree_forget_locations(ProtobufCMessage *m)
{
	const ProtobufCMessageDescriptor *d = m->descriptor;

	for (unsigned i = 0; i < d->n_fields; i++)
		if (is_location(&d->fields[i]))
			*(int32_t *)(void *)((char *)m + d->fields[i].offset) =
			    0;
	tree_children(m, forget, NULL);
}

/* Two trees are the same when they pack into the same bytes: packing reads
 * every field there is, so nothing can be overlooked here. */
bool
tree_equal(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
	size_t n = protobuf_c_message_get_packed_size(a);
	uint8_t *pa, *pb;
	bool same;

	if (a->descriptor != b->descriptor ||
	    n != protobuf_c_message_get_packed_size(b))
		return false;
	pa = mem_array(2, n);
	pb = pa + n;
	protobuf_c_message_pack(a, pa);
	protobuf_c_message_pack(b, pb);
	same = memcmp(pa, pb, n) == 0;
	free(pa);
	return same;
}
