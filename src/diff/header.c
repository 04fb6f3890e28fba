/* header: the part of the digest that is not rows */
#include "diff/header.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FORMAT "airlock digest 1"
#define REPLAY_FORMAT "airlock replay digest 1"

typedef int by_order(const void *a, const void *b);

static int
put_string(struct digest *d, const json_t *o, const char *name, struct err *e)
{
	const json_t *v = json_object_get(o, name);

	if (!json_is_string(v))
		return err_set(e, ERR_INPUT, "'%s' is not a string", name);
	digest_field(d, json_string_value(v), json_string_length(v));
	return 0;
}

static int
put_flag(struct digest *d, const json_t *o, const char *name, struct err *e)
{
	const json_t *v = json_object_get(o, name);

	if (!json_is_boolean(v))
		return err_set(e, ERR_INPUT, "'%s' is not a boolean", name);
	digest_u64(d, json_is_true(v) ? 1 : 0);
	return 0;
}

static int
put_count(struct digest *d, const json_t *o, const char *name, struct err *e)
{
	const json_t *v = json_object_get(o, name);

	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return err_set(e, ERR_INPUT, "'%s' is not a count", name);
	digest_u64(d, (uint64_t)json_integer_value(v));
	return 0;
}

/* An estimate moves while nothing changes, so it counts as absent. */
static int
put_size(struct digest *d, const json_t *table, const char *name, struct err *e)
{
	const json_t *v = json_object_get(table, name);
	const json_t *estimated = json_object_get(table, "rows_estimated");

	if (estimated != NULL && !json_is_boolean(estimated))
		return err_set(e, ERR_INPUT,
		    "'rows_estimated' is not a boolean");
	if (v == NULL || json_is_null(v) || json_is_true(estimated)) {
		digest_null(d);
		return 0;
	}
	return put_count(d, table, name, e);
}

static int
compare(const json_t *a, const json_t *b, const char *name)
{
	const json_t *v = json_object_get(a, name),
		     *w = json_object_get(b, name);
	size_t n = json_string_length(v), m = json_string_length(w);
	int c =
	    memcmp(json_string_value(v), json_string_value(w), n < m ? n : m);

	return c != 0 ? c : (n > m) - (n < m);
}

static int
by_code(const void *a, const void *b)
{
	const json_t *const *v = a, *const *w = b;
	int c = compare(*v, *w, "code");

	return c != 0 ? c : compare(*v, *w, "text");
}

static int
by_table(const void *a, const void *b)
{
	const json_t *const *v = a, *const *w = b;
	int c = compare(*v, *w, "table");

	return c != 0 ? c
	              : json_is_true(json_object_get(*v, "collateral")) -
	                    json_is_true(json_object_get(*w, "collateral"));
}

/*
 * The objects of an array in order; each is checked first to have the strings
 * that it is ordered by.  Gives *out.
 */
static int
sorted(const json_t *header, const char *name, const char *const *strings,
    by_order *order, const json_t ***out, struct err *e)
{
	const json_t *array = json_object_get(header, name), **list;
	size_t n = json_array_size(array);

	if (!json_is_array(array))
		return err_set(e, ERR_INPUT, "'%s' is not an array", name);
	list = mem_array(n, sizeof(*list));
	for (size_t i = 0; i < n; i++) {
		list[i] = json_array_get(array, i);
		for (const char *const *s = strings; *s != NULL; s++) {
			if (json_is_string(json_object_get(list[i], *s)))
				continue;
			free(list);
			return err_set(e, ERR_INPUT,
			    "an entry of '%s' has no '%s'", name, *s);
		}
	}
	qsort(list, n, sizeof(*list), order);
	*out = list;
	return 0;
}

/* "effects", "reasons": what was found, as code and text. */
static int
put_notes(struct digest *d, const json_t *header, const char *name,
    struct err *e)
{
	static const char *const strings[] = { "code", "text", NULL };
	size_t n = json_array_size(json_object_get(header, name));
	const json_t **list;
	int r = 0;

	if (sorted(header, name, strings, by_code, &list, e) == -1)
		return -1;
	digest_u64(d, n);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (put_string(d, list[i], "code", e) == -1 ||
		    put_string(d, list[i], "text", e) == -1)
			r = -1;
	free(list);
	return r;
}

static int
put_table(struct digest *d, const json_t *t, struct err *e)
{
	if (put_string(d, t, "table", e) == -1 ||
	    put_flag(d, t, "collateral", e) == -1 ||
	    put_count(d, t, "inserted", e) == -1 ||
	    put_count(d, t, "updated", e) == -1 ||
	    put_count(d, t, "deleted", e) == -1 ||
	    put_count(d, t, "unchanged", e) == -1 ||
	    put_size(d, t, "rows_before", e) == -1 ||
	    put_size(d, t, "rows_after", e) == -1 ||
	    put_flag(d, t, "complete", e) == -1)
		return -1;
	return 0;
}

static int
by_text(const void *a, const void *b)
{
	const char *const *v = a, *const *w = b;

	return strcmp(*v, *w);
}

/* "filled": none where it is missing. */
static int
put_filled(struct digest *d, const json_t *t, struct err *e)
{
	const json_t *filled = json_object_get(t, "filled");
	size_t n = json_array_size(filled);
	const char **names;

	if (filled != NULL && !json_is_array(filled))
		return err_set(e, ERR_INPUT, "'filled' is not an array");
	names = mem_array(n, sizeof(*names));
	for (size_t i = 0; i < n; i++)
		if ((names[i] = json_string_value(json_array_get(filled, i))) ==
		    NULL) {
			free(names);
			return err_set(e, ERR_INPUT,
			    "an entry of 'filled' is not a string");
		}
	qsort(names, n, sizeof(*names), by_text);
	digest_u64(d, n);
	for (size_t i = 0; i < n; i++)
		digest_field(d, names[i], strlen(names[i]));
	free(names);
	return 0;
}

static int
put_tables(struct digest *d, const json_t *header, bool replay, struct err *e)
{
	static const char *const strings[] = { "table", NULL };
	size_t n = json_array_size(json_object_get(header, "tables"));
	const json_t **list;
	int r = 0;

	if (sorted(header, "tables", strings, by_table, &list, e) == -1)
		return -1;
	digest_u64(d, n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (i > 0 && by_table(&list[i - 1], &list[i]) == 0)
			r = err_set(e, ERR_INPUT, "a table is listed twice");
		else
			r = put_table(d, list[i], e);
		if (r == 0 && replay)
			r = put_filled(d, list[i], e);
	}
	free(list);
	return r;
}

static int
put_params(struct digest *d, const json_t *params, struct err *e)
{
	size_t n = json_array_size(params);

	if (params == NULL || json_is_null(params)) {
		digest_null(d);
		return 0;
	}
	if (!json_is_array(params))
		return err_set(e, ERR_INPUT, "'params' is not an array");
	digest_u64(d, n);
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(params, i);

		if (json_is_null(v))
			digest_null(d);
		else if (json_is_string(v))
			digest_field(d, json_string_value(v),
			    json_string_length(v));
		else
			return err_set(e, ERR_INPUT,
			    "a parameter is neither a string nor null");
	}
	return 0;
}

/* In the order in which they were run. */
static int
put_statements(struct digest *d, const json_t *header, struct err *e)
{
	const json_t *list = json_object_get(header, "statements");
	size_t n = json_array_size(list);

	if (!json_is_array(list))
		return err_set(e, ERR_INPUT, "'statements' is not an array");
	digest_u64(d, n);
	for (size_t i = 0; i < n; i++) {
		const json_t *s = json_array_get(list, i);

		if (put_string(d, s, "sql", e) == -1 ||
		    put_params(d, json_object_get(s, "params"), e) == -1)
			return -1;
	}
	return 0;
}

/* A program that does not know what a schema diff holds must not vouch for
 * it. */
static int
put_schema(struct digest *d, const json_t *header, struct err *e)
{
	const json_t *schema = json_object_get(header, "schema");

	if (schema != NULL && !json_is_null(schema))
		return err_set(e, ERR_INPUT,
		    "'schema' is not known to this version of the digest");
	digest_null(d);
	return 0;
}

static int
put_header(struct digest *d, const json_t *header, bool replay, struct err *e)
{
	const char *format = replay ? REPLAY_FORMAT : FORMAT;

	digest_field(d, format, strlen(format));
	if (put_string(d, header, "database", e) == -1 ||
	    put_string(d, header, "agent", e) == -1 ||
	    put_statements(d, header, e) == -1 ||
	    put_tables(d, header, replay, e) == -1 ||
	    put_flag(d, header, "complete", e) == -1 ||
	    put_schema(d, header, e) == -1 ||
	    put_notes(d, header, "effects", e) == -1 ||
	    put_string(d, header, "risk", e) == -1 ||
	    put_notes(d, header, "reasons", e) == -1)
		return -1;
	return 0;
}

int
header_hash(const json_t *header, struct digest *d, struct err *e)
{
	return put_header(d, header, false, e);
}

int
header_hash_replay(const json_t *header, struct digest *d, struct err *e)
{
	return put_header(d, header, true, e);
}
