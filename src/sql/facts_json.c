/* facts_json: the form in which facts cross from the child, told and checked
 * by one table */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sql/facts.h"

#define STATEMENTS_MAX 10000000
#define POSITION_MAX ((json_int_t)1 << 30)
#define ENTRIES_MAX 100000

static const char *const conflict_name[] = {
	[CONFLICT_NONE] = "none",
	[CONFLICT_NOTHING] = "nothing",
	[CONFLICT_UPDATE] = "update",
};

enum form {
	A_BOOL,
	A_INT,
	A_SIZE,
	A_POSITION,
	A_TEXT,
	A_KIND,
	A_CONFLICT,
	A_NAMES,
	A_TEXTS,
	A_LIST
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
	FIELD(A_BOOL, has_returning),
	FIELD(A_CONFLICT, conflict),
	FIELD(A_LIST, set_columns),
};
/* clang-format on */
#define NFIELDS (sizeof(fields) / sizeof(fields[0]))

static json_t *
text_or_null(const char *s)
{
	return s != NULL ? json_string(s) : json_null();
}

/* [schema, name, op, nested, nargs, position] */
static json_t *
names_to_json(const struct facts_names *v)
{
	json_t *a = json_array();

	for (size_t i = 0; i < v->n; i++) {
		const struct facts_name *n = &v->v[i];
		char op[] = { n->op, '\0' };

		if (json_array_append_new(a,
			json_pack("[s?, s, s, b, i, I]", n->schema, n->name, op,
			    n->nested, n->nargs, (json_int_t)n->position)) ==
		    -1) {
			json_decref(a);
			return NULL;
		}
	}
	return a;
}

static json_t *
list_to_json(char *const *v, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(a, json_string(v[i])) == -1) {
			json_decref(a);
			return NULL;
		}
	return a;
}

static json_t *
field_to_json(const struct facts *f, const struct field *d)
{
	const void *at = (const char *)f + d->at;

	switch (d->form) {
	case A_BOOL:
		return json_boolean(*(const bool *)at);
	case A_INT:
		return json_integer(*(const int *)at);
	case A_SIZE:
		return json_integer((json_int_t) * (const size_t *)at);
	case A_POSITION:
		return json_integer(*(const long *)at);
	case A_TEXT:
		return text_or_null(*(char *const *)at);
	case A_KIND:
		return json_string(stmt_kind_name[*(const enum stmt_kind *)at]);
	case A_CONFLICT:
		return json_string(
		    conflict_name[*(const enum conflict_kind *)at]);
	case A_NAMES:
		return names_to_json(at);
	case A_TEXTS:
		return list_to_json(((const struct facts_texts *)at)->v,
		    ((const struct facts_texts *)at)->n);
	case A_LIST:
		return list_to_json(f->set_columns, f->nset_columns);
	}
	return NULL;
}

json_t *
facts_to_json(const struct facts *f)
{
	json_t *j = json_object();

	for (size_t i = 0; i < NFIELDS; i++)
		if (json_object_set_new(j, fields[i].name,
			field_to_json(f, &fields[i])) == -1) {
			json_decref(j);
			return NULL;
		}
	return j;
}

static bool
get_integer(const json_t *j, json_int_t min, json_int_t max, json_int_t *out)
{
	*out = json_integer_value(j);
	return json_is_integer(j) && *out >= min && *out <= max;
}

/* The row of a table of names, or -1. */
static int
get_word(const json_t *j, const char *const *words, int n)
{
	const char *s = json_string_value(j);

	for (int i = 0; s != NULL && i < n; i++)
		if (strcmp(words[i], s) == 0)
			return i;
	return -1;
}

static bool
get_text(const json_t *j, bool null, char **out)
{
	if (null && json_is_null(j))
		return true;
	if (!json_is_string(j) ||
	    strlen(json_string_value(j)) != json_string_length(j))
		return false;
	*out = mem_strdup(json_string_value(j));
	return true;
}

static bool
get_name(const json_t *j, struct facts_name *n)
{
	const char *op = json_string_value(json_array_get(j, 2));
	const json_t *nested = json_array_get(j, 3);
	json_int_t nargs, position;

	if (json_array_size(j) != 6 || op == NULL || strlen(op) != 1 ||
	    strchr("riudmxfotasnvg", *op) == NULL || !json_is_boolean(nested) ||
	    !get_integer(json_array_get(j, 4), -1, INT_MAX, &nargs) ||
	    !get_integer(json_array_get(j, 5), -1, POSITION_MAX, &position))
		return false;
	n->op = *op;
	n->nested = json_is_true(nested);
	n->nargs = (int)nargs;
	n->position = (long)position;
	return get_text(json_array_get(j, 0), true, &n->schema) &&
	       get_text(json_array_get(j, 1), false, &n->name);
}

static bool
get_names(const json_t *j, struct facts_names *v)
{
	size_t n = json_array_size(j);

	if (!json_is_array(j) || n > ENTRIES_MAX)
		return false;
	v->v = mem_array(n, sizeof(*v->v));
	for (; v->n < n; v->n++)
		if (!get_name(json_array_get(j, v->n), &v->v[v->n])) {
			v->n++; /* what it has so far is released with it */
			return false;
		}
	return true;
}

static bool
get_list(const json_t *j, char ***v, size_t *nv)
{
	size_t n = json_array_size(j);

	if (!json_is_array(j) || n > ENTRIES_MAX)
		return false;
	*v = mem_array(n, sizeof(**v));
	for (; *nv < n; (*nv)++)
		if (!get_text(json_array_get(j, *nv), false, &(*v)[*nv]))
			return false;
	return true;
}

static bool
get_number(const json_t *j, enum form form, void *at)
{
	json_int_t v;

	switch (form) {
	case A_INT:
		if (!get_integer(j, 0, INT_MAX, &v))
			return false;
		*(int *)at = (int)v;
		return true;
	case A_SIZE:
		if (!get_integer(j, 0, STATEMENTS_MAX, &v))
			return false;
		*(size_t *)at = (size_t)v;
		return true;
	default:
		if (!get_integer(j, -1, POSITION_MAX, &v))
			return false;
		*(long *)at = (long)v;
		return true;
	}
}

static bool
get_field(const json_t *j, const struct field *d, struct facts *f)
{
	void *at = (char *)f + d->at;
	int word;

	switch (d->form) {
	case A_BOOL:
		*(bool *)at = json_is_true(j);
		return json_is_boolean(j);
	case A_INT:
	case A_SIZE:
	case A_POSITION:
		return get_number(j, d->form, at);
	case A_TEXT:
		return get_text(j, d->null, at);
	case A_KIND:
		word = get_word(j, stmt_kind_name, STMT_NKINDS);
		*(enum stmt_kind *)at = word == -1 ? STMT_OTHER : word;
		return word != -1;
	case A_CONFLICT:
		word = get_word(j, conflict_name, CONFLICT_UPDATE + 1);
		*(enum conflict_kind *)at = word == -1 ? CONFLICT_NONE : word;
		return word != -1;
	case A_NAMES:
		return get_names(j, at);
	case A_TEXTS:
		return get_list(j, &((struct facts_texts *)at)->v,
		    &((struct facts_texts *)at)->n);
	case A_LIST:
		return get_list(j, &f->set_columns, &f->nset_columns);
	}
	return false;
}

int
facts_from_json(const json_t *j, struct facts *f, struct err *e)
{
	memset(f, 0, sizeof(*f));
	if (!json_is_object(j) || json_object_size(j) != NFIELDS)
		return err_set(e, ERR_INPUT,
		    "facts are not an object of %zu members", NFIELDS);
	for (size_t i = 0; i < NFIELDS; i++)
		if (!get_field(json_object_get(j, fields[i].name), &fields[i],
			f)) {
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
	to->set_columns =
	    mem_array(from->nset_columns, sizeof(*to->set_columns));
	for (size_t i = 0; i < from->nset_columns; i++)
		to->set_columns[i] = mem_strdup(from->set_columns[i]);
}
