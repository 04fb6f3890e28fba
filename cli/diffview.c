/* diffview: one row image as lines that a person reads: column, old -> new */
#include "diffview.h"

#include <stdbool.h>
#include <string.h>

#define LEAD 24 /* bytes kept before the first one that differs */

static bool
is_plain(const char *p, size_t n)
{
	static const char marks[] = "_.:+-@/";

	if (n == 0 || (n == 4 && strncmp(p, "NULL", 4) == 0))
		return false;
	for (size_t i = 0; i < n; i++) {
		bool blank =
		    p[i] == ' ' && i > 0 && i + 1 < n && p[i - 1] != ' ';

		if (!blank && !(p[i] >= 'a' && p[i] <= 'z') &&
		    !(p[i] >= 'A' && p[i] <= 'Z') &&
		    !(p[i] >= '0' && p[i] <= '9') &&
		    (p[i] == '\0' || strchr(marks, p[i]) == NULL))
			return false;
	}
	return true;
}

static void
add_quoted(struct text *out, const char *p, size_t n)
{
	text_addc(out, '"');
	for (size_t from = 0, i = 0; i <= n; i++) {
		if (i < n && p[i] != '"')
			continue;
		text_quote(out, p + from, i - from);
		if (i < n)
			text_add(out, "\\\"");
		from = i + 1;
	}
	text_addc(out, '"');
}

/* Bytes [start, start + most) of a value, and what was left out. */
static void
add_window(struct text *out, const json_t *v, size_t start, size_t most)
{
	const char *p = json_string_value(v);
	size_t len, n;

	if (p == NULL) {
		text_add(out, json_is_null(v) ? "NULL" : "(not a value)");
		return;
	}
	len = json_string_length(v);
	start = start < len ? text_utf8_cut(p, len, start) : 0;
	n = most == 0 ? len - start
	              : text_utf8_cut(p + start, len - start, most);
	if (start > 0)
		text_add(out, "...");
	if (start == 0 && n == len && is_plain(p, len))
		text_addn(out, p, len);
	else
		add_quoted(out, p + start, n);
	if (start + n < len)
		text_add(out, "...");
	if (start > 0)
		text_addf(out, " (bytes %zu to %zu of %zu)", start + 1,
		    start + n, len);
	else if (n < len)
		text_addf(out, " (%zu bytes)", len);
}

void
diffview_value(struct text *out, const json_t *v, size_t most)
{
	add_window(out, v, 0, most);
}

static size_t
common_prefix(const json_t *a, const json_t *b)
{
	const char *p = json_string_value(a), *q = json_string_value(b);
	size_t n = 0;

	if (p == NULL || q == NULL)
		return 0;
	while (n < json_string_length(a) && n < json_string_length(b) &&
	       p[n] == q[n])
		n++;
	return n;
}

void
diffview_pair(struct text *out, const json_t *before, const json_t *after,
    size_t most)
{
	size_t same = common_prefix(before, after), start = 0;

	if (most != 0 && same > LEAD &&
	    (json_string_length(before) > most ||
		json_string_length(after) > most))
		start = same - LEAD;
	add_window(out, before, start, most);
	text_add(out, " -> ");
	add_window(out, after, start, most);
}

static void
add_name(struct text *out, const char *name)
{
	if (is_plain(name, strlen(name)))
		text_add(out, name);
	else
		add_quoted(out, name, strlen(name));
}

static void
print_heading(const struct term *t, const json_t *row)
{
	static const struct {
		const char *op;
		enum colour colour;
	} colours[] = { { "insert", GREEN }, { "update", YELLOW },
		{ "delete", RED } };
	json_t *key = json_object_get(row, "key"), *v;
	struct text line = { 0 };
	enum colour c = PLAIN;
	const char *name, *op, *sep = " ";

	op = term_member(row, "op", 16);
	for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++)
		if (strcmp(colours[i].op, op) == 0)
			c = colours[i].colour;
	text_addf(&line, "%s %s", op, term_member(row, "table", 300));
	json_object_foreach (key, name, v) {
		text_add(&line, sep);
		add_name(&line, name);
		text_addc(&line, '=');
		diffview_value(&line, v, DIFFVIEW_VALUE_MAX);
		sep = ", ";
	}
	if (json_object_size(key) == 0)
		text_add(&line, " (no key)");
	if (json_is_true(json_object_get(row, "collateral")))
		text_add(&line, " (collateral: not named by the statement)");
	term_line(t, c, "    ", text_str(&line));
	text_release(&line);
}

static void
print_column(const struct term *t, const char *name, const json_t *before,
    const json_t *after, size_t most)
{
	bool pair = before != NULL && after != NULL;
	struct text line = { 0 };

	add_name(&line, name);
	text_add(&line, ": ");
	if (pair && !json_equal(before, after))
		diffview_pair(&line, before, after, most);
	else
		diffview_value(&line, after != NULL ? after : before, most);
	if (pair && json_equal(before, after))
		text_add(&line, " (unchanged)");
	term_line(t, PLAIN, "      ", text_str(&line));
	text_release(&line);
}

bool
diffview_has(const json_t *row, const char *column)
{
	return json_object_get(json_object_get(row, "before"), column) !=
	           NULL ||
	       json_object_get(json_object_get(row, "after"), column) != NULL;
}

void
diffview_row(const struct term *t, const json_t *row, const char *column)
{
	json_t *before = json_object_get(row, "before");
	json_t *after = json_object_get(row, "after");
	/* Without a key only the other columns tell which row it is. */
	bool all = column != NULL ||
	           json_object_size(json_object_get(row, "key")) == 0;
	const char *name;
	json_t *v;

	print_heading(t, row);
	json_object_foreach (json_is_object(after) ? after : before, name, v) {
		json_t *was = json_object_get(before, name);
		json_t *is = json_object_get(after, name);

		if (column != NULL && strcmp(column, name) != 0)
			continue;
		if (all || !json_equal(was, is))
			print_column(t, name, was, is,
			    column != NULL ? 0 : DIFFVIEW_VALUE_MAX);
	}
	if (!json_is_object(after))
		return;
	/* Both images have the same columns; where they do not, hide nothing.
	 */
	json_object_foreach (before, name, v)
		if (json_object_get(after, name) == NULL)
			print_column(t, name, v, NULL, DIFFVIEW_VALUE_MAX);
}
