/* facts_cross: the form in which facts cross from the child, told and checked
 * by one table */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sql/facts.h"
#include "sql/parcel.h"

#define STATEMENTS_MAX 10000000
#define POSITION_MAX (1LL << 30)
#define ENTRIES_MAX 100000

enum form {
	A_BOOL,
	A_INT,
	A_SIZE,
	A_POSITION,
	A_TEXT,
	A_KIND,
	A_CONFLICT,
	A_NAMES,
	A_TEXTS
};

struct field {
	const char *name;
	enum form form;
	bool null; /* texts: may be absent */
	size_t at;
};

/* clang-format off */
#define FIELD(form, member) { #member, form, false, offsetof(struct facts, member) }
#define MAYBE(form, member) { #member, form, true, offsetof(struct facts, member) }
static const struct field fields[] = {
	FIELD(A_KIND, kind),
	FIELD(A_POSITION, position),
	FIELD(A_TEXT, tag),
	FIELD(A_TEXT, node),
	FIELD(A_SIZE, statements),
	FIELD(A_POSITION, second_position),
	FIELD(A_INT, depth),
	FIELD(A_BOOL, explain),
	FIELD(A_BOOL, explain_analyze),
	FIELD(A_KIND, explain_kind),
	FIELD(A_NAMES, reads),
	FIELD(A_NAMES, writes),
	FIELD(A_NAMES, careless),
	FIELD(A_NAMES, functions),
	FIELD(A_NAMES, implied),
	FIELD(A_BOOL, locking),
	FIELD(A_POSITION, locking_position),
	FIELD(A_BOOL, into),
	FIELD(A_POSITION, into_position),
	FIELD(A_BOOL, opaque),
	MAYBE(A_TEXT, opaque_node),
	FIELD(A_INT, params),
	MAYBE(A_TEXT, target_ref),
	FIELD(A_BOOL, target_has_alias),
	FIELD(A_POSITION, target_position),
	FIELD(A_BOOL, only),
	FIELD(A_BOOL, current_of),
	FIELD(A_BOOL, has_where),
	FIELD(A_BOOL, where_vacuous),
	FIELD(A_BOOL, where_ignores_target),
	FIELD(A_TEXTS, not_null_any),
	FIELD(A_TEXTS, not_null_all),
	FIELD(A_TEXTS, given),
	FIELD(A_TEXTS, made),
	FIELD(A_BOOL, has_returning),
	FIELD(A_CONFLICT, conflict),
	FIELD(A_TEXTS, set_columns),
};
/* clang-format on */
#define NFIELDS (sizeof(fields) / sizeof(fields[0]))

static bool
add_names(struct text *out, const struct facts_names *v)
{
	parcel_add_number(out, (long long)v->n);
	for (size_t i = 0; i < v->n; i++) {
		const struct facts_name *n = &v->v[i];

		if (!parcel_add_text(out, n->schema) ||
		    !parcel_add_text(out, n->name))
			return false;
		parcel_add_number(out, n->op);
		parcel_add_number(out, n->nested);
		parcel_add_number(out, n->nargs);
		parcel_add_number(out, n->position);
	}
	return true;
}

static bool
add_texts(struct text *out, const struct facts_texts *v)
{
	parcel_add_number(out, (long long)v->n);
	for (size_t i = 0; i < v->n; i++)
		if (!parcel_add_text(out, v->v[i]))
			return false;
	return true;
}

static long long
number_of(const void *at, enum form form)
{
	switch (form) {
	case A_BOOL:
		return *(const bool *)at;
	case A_INT:
		return *(const int *)at;
	case A_SIZE:
		return (long long)*(const size_t *)at;
	case A_KIND:
		return *(const enum stmt_kind *)at;
	case A_CONFLICT:
		return *(const enum conflict_kind *)at;
	default:
		return *(const long *)at;
	}
}

static bool
add_field(struct text *out, const struct facts *f, const struct field *d)
{
	const void *at = (const char *)f + d->at;

	switch (d->form) {
	case A_TEXT:
		return parcel_add_text(out, *(char *const *)at);
	case A_NAMES:
		return add_names(out, at);
	case A_TEXTS:
		return add_texts(out, at);
	default:
		parcel_add_number(out, number_of(at, d->form));
		return true;
	}
}

bool
facts_pack(struct text *out, const struct facts *f)
{
	for (size_t i = 0; i < NFIELDS; i++)
		if (!add_field(out, f, &fields[i]))
			return false;
	return true;
}

static bool
get_name(struct parcel *in, struct facts_name *n)
{
	long long op, nargs, position;

	if (!parcel_text(in, true, &n->schema) ||
	    !parcel_text(in, false, &n->name) ||
	    !parcel_number(in, 1, CHAR_MAX, &op) ||
	    strchr("riudmxfotasnvg", (int)op) == NULL ||
	    !parcel_bool(in, &n->nested) ||
	    !parcel_number(in, -1, INT_MAX, &nargs) ||
	    !parcel_number(in, -1, POSITION_MAX, &position))
		return false;
	n->op = (char)op;
	n->nargs = (int)nargs;
	n->position = (long)position;
	return true;
}

/* How many come; each takes two bytes at least. */
static bool
get_count(struct parcel *in, size_t *n)
{
	long long v;

	if (!parcel_number(in, 0, ENTRIES_MAX, &v) || (size_t)v > in->left / 2)
		return false;
	*n = (size_t)v;
	return true;
}

static bool
get_names(struct parcel *in, struct facts_names *v)
{
	size_t n;

	if (!get_count(in, &n))
		return false;
	v->v = mem_array(n, sizeof(*v->v));
	while (v->n < n) /* what it has so far is released with it */
		if (!get_name(in, &v->v[v->n++]))
			return false;
	return true;
}

static bool
get_texts(struct parcel *in, struct facts_texts *v)
{
	size_t n;

	if (!get_count(in, &n))
		return false;
	v->v = mem_array(n, sizeof(*v->v));
	for (; v->n < n; v->n++)
		if (!parcel_text(in, false, &v->v[v->n]))
			return false;
	return true;
}

static bool
get_number(struct parcel *in, enum form form, void *at)
{
	static const struct {
		long long min, max;
	} range[] = {
		[A_INT] = { 0, INT_MAX },
		[A_SIZE] = { 0, STATEMENTS_MAX },
		[A_POSITION] = { -1, POSITION_MAX },
		[A_KIND] = { 0, STMT_NKINDS - 1 },
		[A_CONFLICT] = { 0, CONFLICT_UPDATE },
	};
	long long v;

	if (!parcel_number(in, range[form].min, range[form].max, &v))
		return false;
	switch (form) {
	case A_INT:
		*(int *)at = (int)v;
		return true;
	case A_SIZE:
		*(size_t *)at = (size_t)v;
		return true;
	case A_KIND:
		*(enum stmt_kind *)at = (enum stmt_kind)v;
		return true;
	case A_CONFLICT:
		*(enum conflict_kind *)at = (enum conflict_kind)v;
		return true;
	default:
		*(long *)at = (long)v;
		return true;
	}
}

static bool
get_field(struct parcel *in, const struct field *d, struct facts *f)
{
	void *at = (char *)f + d->at;

	switch (d->form) {
	case A_BOOL:
		return parcel_bool(in, at);
	case A_TEXT:
		return parcel_text(in, d->null, at);
	case A_NAMES:
		return get_names(in, at);
	case A_TEXTS:
		return get_texts(in, at);
	default:
		return get_number(in, d->form, at);
	}
}

int
facts_unpack(struct parcel *in, struct facts *f, struct err *e)
{
	memset(f, 0, sizeof(*f));
	for (size_t i = 0; i < NFIELDS; i++)
		if (!get_field(in, &fields[i], f)) {
			facts_release(f);
			return err_set(e, ERR_INPUT,
			    "facts: '%s' is missing or wrong", fields[i].name);
		}
	return 0;
}

static char *
copy_text(const char *s)
{
	return s != NULL ? mem_strdup(s) : NULL;
}

static void
copy_names(struct facts_names *to, const struct facts_names *from)
{
	to->v = mem_array(from->n, sizeof(*to->v));
	for (size_t i = 0; i < from->n; i++) {
		to->v[i] = from->v[i];
		to->v[i].schema = copy_text(from->v[i].schema);
		to->v[i].name = copy_text(from->v[i].name);
	}
}

static void
copy_texts(struct facts_texts *to, const struct facts_texts *from)
{
	to->v = mem_array(from->n, sizeof(*to->v));
	for (size_t i = 0; i < from->n; i++)
		to->v[i] = mem_strdup(from->v[i]);
}

static void
copy_field(struct facts *to, const struct facts *from, const struct field *d)
{
	void *dst = (char *)to + d->at;
	const void *src = (const char *)from + d->at;

	if (d->form == A_TEXT)
		*(char **)dst = copy_text(*(char *const *)src);
	else if (d->form == A_NAMES)
		copy_names(dst, src);
	else if (d->form == A_TEXTS)
		copy_texts(dst, src);
}

/* By the same table: what is not in it does not cross from the child. */
void
facts_copy(struct facts *to, const struct facts *from)
{
	*to = *from;
	for (size_t i = 0; i < NFIELDS; i++)
		copy_field(to, from, &fields[i]);
}
