/* tree: libpg_query's protobuf trees, read by their descriptors, so that a node
 * of any version is walked whether it is known here or not */
#include "sql/tree.h"

#include <string.h>

#include "base/err.h"

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

/* A number that says where in the text something is. */
static bool
is_location(const ProtobufCFieldDescriptor *f)
{
	size_t n = strlen(f->name), tail = strlen("location");

	return strcmp(f->name, "stmt_len") == 0 ||
	       (n >= tail && strcmp(f->name + n - tail, "location") == 0);
}

static bool
same_text(const char *a, const char *b)
{
	/* protobuf-c has no NULL texts: one that is not there is empty. */
	return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

static bool
same_message(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
	return a == NULL || b == NULL ? a == b : tree_equal(a, b);
}

/* What is of a type that no tree has is not compared, but different. */
static bool
same_value(const ProtobufCFieldDescriptor *f, const void *a, const void *b)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		return same_message(*(ProtobufCMessage *const *)a,
		    *(ProtobufCMessage *const *)b);
	case PROTOBUF_C_TYPE_STRING:
		return same_text(*(char *const *)a, *(char *const *)b);
	case PROTOBUF_C_TYPE_INT32:
		return *(const int32_t *)a == *(const int32_t *)b ||
		       is_location(f);
	case PROTOBUF_C_TYPE_UINT32:
		return *(const uint32_t *)a == *(const uint32_t *)b;
	case PROTOBUF_C_TYPE_ENUM:
		return *(const int *)a == *(const int *)b;
	case PROTOBUF_C_TYPE_BOOL:
		return *(const protobuf_c_boolean *)a ==
		       *(const protobuf_c_boolean *)b;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
		return *(const uint64_t *)a == *(const uint64_t *)b;
	default:
		return false;
	}
}

static bool
same_list(const ProtobufCFieldDescriptor *f, const ProtobufCMessage *a,
    const ProtobufCMessage *b)
{
	size_t n = *(const size_t *)member(a, f->quantifier_offset);
	ProtobufCMessage *const *va, *const *vb;

	if (n != *(const size_t *)member(b, f->quantifier_offset))
		return false;
	if (n > 0 && f->type != PROTOBUF_C_TYPE_MESSAGE)
		return false;
	va = *(ProtobufCMessage *const *const *)member(a, f->offset);
	vb = *(ProtobufCMessage *const *const *)member(b, f->offset);
	for (size_t i = 0; i < n; i++)
		if (!same_message(va[i], vb[i]))
			return false;
	return true;
}

static bool
same_field(const ProtobufCFieldDescriptor *f, const ProtobufCMessage *a,
    const ProtobufCMessage *b)
{
	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		return same_list(f, a, b);
	if (is_there(a, f) != is_there(b, f))
		return false;
	return !is_there(a, f) ||
	       same_value(f, member(a, f->offset), member(b, f->offset));
}

/* Every field that a message has is compared, so nothing can be overlooked;
 * what is unknown is like nothing, itself included. */
bool
tree_equal(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
	if (a->descriptor != b->descriptor || a->n_unknown_fields != 0 ||
	    b->n_unknown_fields != 0)
		return false;
	if (a->descriptor == &pg_query__node__descriptor)
		return ((const PgQuery__Node *)a)->node_case ==
		           ((const PgQuery__Node *)b)->node_case &&
		       same_message(tree_inner((const PgQuery__Node *)a),
			   tree_inner((const PgQuery__Node *)b));
	for (unsigned i = 0; i < a->descriptor->n_fields; i++)
		if (!same_field(&a->descriptor->fields[i], a, b))
			return false;
	return true;
}
