/* unprint: a parse tree out of the JSON that libpg_query prints it as */
#include "sql/unprint.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sql/tree.h"

/* Node and List, which do not count as depth, stand between the others. */
#define LEVELS_MAX (3 * PARSE_DEPTH_MAX)
#define WHITE " \t\n\r\f\v"
#define SEEN 1024 /* a power of two; there are some 300 names in use */

/* Why there is no tree; STRANGE: it is to be had in another way. */
enum fault { FAULT_NONE, FAULT_STRANGE, FAULT_DEEP, FAULT_LARGE };

struct reading {
	struct parse *p;
	char *at; /* the text ends with a NUL, which fits nowhere */
	ProtobufCMessage **items; /* of the lists around this place */
	size_t n, room;
	int depth, levels;
	bool bounds; /* in the bounds of an array's type */
	enum fault fault;
};

static ProtobufCMessage *message(struct reading *r,
    const ProtobufCMessageDescriptor *d);

static bool
fail(struct reading *r, enum fault f)
{
	if (r->fault == FAULT_NONE)
		r->fault = f;
	return false;
}

static bool
take(struct reading *r, char c)
{
	if (*r->at != c)
		return false;
	r->at++;
	return true;
}

static bool
expect(struct reading *r, char c)
{
	return take(r, c) || fail(r, FAULT_STRANGE);
}

/* What can stand in a number or a name. */
static bool
is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80 ||
	       (c != '\0' && strchr("_$.", c) != NULL);
}

/* What \uXXXX says; only ASCII is ever printed so. */
static int
four_digits(const char *s)
{
	int v = 0;

	for (int i = 0; i < 4; i++) {
		const char *digits = "0123456789abcdef";
		const char *at =
		    s[i] != '\0' ? strchr(digits, s[i] | 0x20) : NULL;

		if (at == NULL)
			return -1;
		v = v * 16 + (int)(at - digits);
	}
	return v;
}

/* The character behind a backslash; 0 where there is none such. */
static char
escaped(struct reading *r)
{
	static const char codes[] = "\"\\/bfnrt", chars[] = "\"\\/\b\f\n\r\t";
	const char *code;
	int v;

	if (*r->at == 'u') {
		v = four_digits(r->at + 1);
		if (v <= 0 || v > 0x7f)
			return 0;
		r->at += 5;
		return (char)v;
	}
	code = *r->at != '\0' ? strchr(codes, *r->at) : NULL;
	if (code == NULL)
		return 0;
	r->at++;
	return chars[code - codes];
}

/* A text in quotes, which stays where it is; NULL where there is none. */
static char *
text(struct reading *r)
{
	char *s, *to;

	if (!expect(r, '"'))
		return NULL;
	s = r->at;
	r->at += strcspn(r->at, "\"\\");
	to = r->at;
	while (*r->at != '"' && *r->at != '\0') {
		char c = *r->at++;

		if (c == '\\' && (c = escaped(r)) == 0)
			break;
		*to++ = c;
	}
	if (!expect(r, '"'))
		return NULL;
	*to = '\0';
	return s;
}

/* targetList is target_list, SQLValueFunction sqlvalue_function. */
static bool
is_name(const char *field, const char *key)
{
	for (;; field++, key++) {
		field += *field == '_';
		key += *key == '_';
		if (*field != (*key >= 'A' && *key <= 'Z' ? *key | 0x20 : *key))
			return false;
		if (*field == '\0')
			return true;
	}
}

/* The only name that is another one. */
static bool
is_named(const ProtobufCMessageDescriptor *d, const char *field,
    const char *key)
{
	if (d == &pg_query__create_foreign_table_stmt__descriptor &&
	    strcmp(key, "base") == 0)
		key = "base_stmt";
	return is_name(field, key);
}

static const ProtobufCFieldDescriptor *
find_field(const ProtobufCMessageDescriptor *d, const char *key)
{
	for (unsigned i = 0; i < d->n_fields; i++)
		if (is_named(d, d->fields[i].name, key))
			return &d->fields[i];
	return NULL;
}

/*
 * Names are looked up once a process: a Node alone has some 270 that it may
 * hold.  What is found here is compared again, so that it does not matter
 * which of two names keeps a place.
 */
static const ProtobufCFieldDescriptor *
field_of(const ProtobufCMessageDescriptor *d, const char *key)
{
	static struct {
		const ProtobufCMessageDescriptor *d;
		const ProtobufCFieldDescriptor *f;
	} seen[SEEN];
	size_t h = (uintptr_t)d / sizeof(*d);

	for (const char *c = key; *c != '\0'; c++)
		h = h * 31 + (unsigned char)*c;
	h = (h ^ h >> 12) & (SEEN - 1);
	if (seen[h].d != d || !is_named(d, seen[h].f->name, key)) {
		const ProtobufCFieldDescriptor *f = find_field(d, key);

		if (f == NULL)
			return NULL;
		seen[h].d = d;
		seen[h].f = f;
	}
	return seen[h].f;
}

static void *
member(ProtobufCMessage *m, unsigned offset)
{
	return (char *)m + offset;
}

static bool
number(struct reading *r, long long min, long long max, long long *v)
{
	char *end;

	errno = 0;
	*v = strtoll(r->at, &end, 10);
	if (end == r->at || errno != 0 || *v < min || *v > max)
		return fail(r, FAULT_STRANGE);
	r->at = end;
	return true;
}

static bool
integer(struct reading *r, const ProtobufCFieldDescriptor *f, void *to)
{
	long long v;

	switch (f->type) {
	case PROTOBUF_C_TYPE_INT32:
		if (!number(r, INT32_MIN, INT32_MAX, &v))
			return false;
		*(int32_t *)to = (int32_t)v;
		return true;
	case PROTOBUF_C_TYPE_UINT32:
		if (!number(r, 0, UINT32_MAX, &v))
			return false;
		*(uint32_t *)to = (uint32_t)v;
		return true;
	case PROTOBUF_C_TYPE_INT64:
		if (!number(r, LLONG_MIN, LLONG_MAX, &v))
			return false;
		*(int64_t *)to = v;
		return true;
	default: /* no raw tree has others */
		return fail(r, FAULT_STRANGE);
	}
}

static bool
boolean(struct reading *r, void *to)
{
	static const char yes[] = "true", no[] = "false";
	bool is = strncmp(r->at, yes, sizeof(yes) - 1) == 0;

	if (!is && strncmp(r->at, no, sizeof(no) - 1) != 0)
		return fail(r, FAULT_STRANGE);
	r->at += is ? sizeof(yes) - 1 : sizeof(no) - 1;
	*(protobuf_c_boolean *)to = is;
	return true;
}

static bool
word(struct reading *r, const ProtobufCFieldDescriptor *f, void *to)
{
	const char *name = text(r);
	const ProtobufCEnumValue *v;

	if (name == NULL)
		return false;
	v = protobuf_c_enum_descriptor_get_value_by_name(f->descriptor, name);
	if (v == NULL)
		return fail(r, FAULT_STRANGE);
	*(int *)to = v->value;
	return true;
}

/* One value of a member that is not a list. */
static bool
value(struct reading *r, const ProtobufCFieldDescriptor *f, void *to)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		*(ProtobufCMessage **)to = message(r, f->descriptor);
		return *(ProtobufCMessage **)to != NULL;
	case PROTOBUF_C_TYPE_STRING:
		*(char **)to = text(r);
		return *(char **)to != NULL;
	case PROTOBUF_C_TYPE_ENUM:
		return word(r, f, to);
	case PROTOBUF_C_TYPE_BOOL:
		return boolean(r, to);
	default:
		return integer(r, f, to);
	}
}

static bool
items(struct reading *r, const ProtobufCMessageDescriptor *d)
{
	if (take(r, ']'))
		return true;
	do {
		ProtobufCMessage *m = message(r, d);

		if (m == NULL)
			return false;
		if (r->n == r->room) {
			r->room = r->room * 2 + 64;
			r->items =
			    mem_grow(r->items, r->room, sizeof(*r->items));
		}
		r->items[r->n++] = m;
	} while (take(r, ','));
	return expect(r, ']');
}

static bool
list(struct reading *r, const ProtobufCFieldDescriptor *f, ProtobufCMessage *m)
{
	size_t first = r->n, n;
	ProtobufCMessage **v;

	if (f->type != PROTOBUF_C_TYPE_MESSAGE)
		return fail(r, FAULT_STRANGE);
	if (!expect(r, '[') || !items(r, f->descriptor))
		return false;
	n = r->n - first;
	if (n == 0)
		return true;
	v = parse_alloc(r->p, n * sizeof(*v));
	if (v == NULL)
		return fail(r, FAULT_LARGE);
	memcpy(v, r->items + first, n * sizeof(*v));
	r->n = first;
	*(size_t *)member(m, f->quantifier_offset) = n;
	*(ProtobufCMessage ***)member(m, f->offset) = v;
	return true;
}

static bool
is_bounds(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	return m->descriptor == &pg_query__type_name__descriptor &&
	       f->offset == offsetof(PgQuery__TypeName, array_bounds);
}

static bool
pair(struct reading *r, ProtobufCMessage *m)
{
	const char *key = text(r);
	const ProtobufCFieldDescriptor *f;
	bool read;

	if (key == NULL || !expect(r, ':'))
		return false;
	f = field_of(m->descriptor, key);
	if (f == NULL)
		return fail(r, FAULT_STRANGE);
	if (f->label == PROTOBUF_C_LABEL_REPEATED) {
		r->bounds = is_bounds(m, f);
		read = list(r, f, m);
		r->bounds = false;
		return read;
	}
	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		*(uint32_t *)member(m, f->quantifier_offset) = f->id;
	return value(r, f, member(m, f->offset));
}

static bool
pairs(struct reading *r, ProtobufCMessage *m)
{
	if (!expect(r, '{'))
		return false;
	if (take(r, '}'))
		return true;
	do
		if (!pair(r, m))
			return false;
	while (take(r, ','));
	return expect(r, '}');
}

/*
 * libpg_query 15 prints a negative Integer as if it were 0.  That of a constant
 * is in the text: where it begins is a digit for one that is not negative, and
 * a minus sign for one that is.  false: it is not as simple as that.
 */
static bool
find_sign(struct reading *r, const PgQuery__AConst *c)
{
	const char *sql = r->p->sql, *end;
	size_t at = (size_t)c->location;
	long long v;

	if (c->location < 0 || at >= r->p->len)
		return false;
	if (sql[at] != '-')
		return sql[at] >= '0' && sql[at] <= '9';
	at += 1 + strspn(sql + at + 1, WHITE);
	end = sql + at;
	end += strspn(end, "0123456789");
	errno = 0;
	v = strtoll(sql + at, NULL, 10);
	if (end == sql + at || errno != 0 || -v < INT32_MIN || is_word(*end))
		return false;
	c->ival->ival = (int32_t)-v;
	return true;
}

/* Whether a bound may be 0: [0] is in the text, or what may become it. */
static bool
has_zero_bound(const char *sql)
{
	const char *at = sql;

	while ((at = strchr(at, '[')) != NULL) {
		at += 1 + strspn(at + 1, WHITE);
		if (*at == '0' || *at == '-' || *at == '/')
			return true;
	}
	return false;
}

/* A bound that is not said is -1. */
static bool
find_bound(const struct reading *r, PgQuery__Node *n)
{
	if (!r->bounds || has_zero_bound(r->p->sql))
		return false;
	n->integer->ival = -1;
	return true;
}

static bool
find_value(struct reading *r, ProtobufCMessage *m)
{
	const PgQuery__AConst *c = (const void *)m;
	PgQuery__Node *n = (void *)m;

	if (m->descriptor == &pg_query__a__const__descriptor &&
	    c->val_case == PG_QUERY__A__CONST__VAL_IVAL && c->ival->ival == 0)
		return find_sign(r, c) || fail(r, FAULT_STRANGE);
	if (m->descriptor == &pg_query__node__descriptor &&
	    n->node_case == PG_QUERY__NODE__NODE_INTEGER &&
	    n->integer->ival == 0)
		return find_bound(r, n) || fail(r, FAULT_STRANGE);
	return true;
}

static ProtobufCMessage *
message(struct reading *r, const ProtobufCMessageDescriptor *d)
{
	ProtobufCMessage *m = parse_alloc(r->p, d->sizeof_message);
	bool counts = !tree_is_wrapper(d), fine;

	if (m == NULL) {
		fail(r, FAULT_LARGE);
		return NULL;
	}
	d->message_init(m);
	r->depth += counts;
	if (r->depth > PARSE_DEPTH_MAX || ++r->levels > LEVELS_MAX) {
		fail(r, FAULT_DEEP);
		return NULL;
	}
	if (r->depth > r->p->depth)
		r->p->depth = r->depth;
	fine = pairs(r, m) && find_value(r, m);
	r->levels--;
	r->depth -= counts;
	return fine ? m : NULL;
}

int
unprint(struct parse *p, bool *whole, struct err *e)
{
	struct reading r = { .p = p, .at = p->printed.parse_tree, .depth = -1 };

	p->tree = (PgQuery__ParseResult *)message(&r,
	    &pg_query__parse_result__descriptor);
	free(r.items);
	if (r.fault == FAULT_DEEP)
		return parse_too_deep(e);
	if (r.fault == FAULT_LARGE)
		return parse_too_large(e);
	*whole = r.fault == FAULT_NONE && *r.at == '\0';
	return 0;
}
