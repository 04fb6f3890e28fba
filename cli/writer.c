/* writer: which rows are shown, and how two views of a change differ */
#include "writer.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

bool
page_takes(struct page *p, const json_t *row)
{
	const char *table = json_string_value(json_object_get(row, "table"));

	if (p->table != NULL && (table == NULL || strcmp(table, p->table) != 0))
		return false;
	if (p->seen++ < p->skip || p->shown >= p->show)
		return false;
	p->shown++;
	return true;
}

static void
differ(const struct term *t, const char *what, const char *was, const char *is)
{
	struct text line = { 0 };

	text_addf(&line, "%s: %s -> %s", what, was, is);
	term_line(t, PLAIN, "  ", text_str(&line));
	text_release(&line);
}

/* Members whose values are compared whole. */
static bool
compare_members(const struct term *t, const json_t *was, const json_t *is)
{
	static const char *const names[] = { "status", "risk", "reasons",
		"complete", "effects", "database", "agent" };
	bool same = true;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		json_t *a = json_object_get(was, names[i]);
		json_t *b = json_object_get(is, names[i]);

		if (json_equal(a, b) || (a == NULL && b == NULL))
			continue;
		differ(t, names[i], term_quote(a, 400), term_quote(b, 400));
		same = false;
	}
	return same;
}

static bool
compare_statements(const struct term *t, const json_t *was, const json_t *is)
{
	json_t *a = json_object_get(was, "statements");
	json_t *b = json_object_get(is, "statements");
	char from[32], to[32];

	if (json_equal(a, b))
		return true;
	snprintf(from, sizeof(from), "%zu", json_array_size(a));
	snprintf(to, sizeof(to), "%zu", json_array_size(b));
	differ(t, "statements", from, to);
	for (size_t i = 0; i < json_array_size(b); i++)
		if (!json_equal(json_array_get(a, i), json_array_get(b, i)))
			differ(t, "statement",
			    term_member(json_array_get(a, i), "sql", 400),
			    term_member(json_array_get(b, i), "sql", 400));
	return false;
}

static const json_t *
table_like(const json_t *header, const json_t *like)
{
	json_t *tables = json_object_get(header, "tables"), *t;
	size_t i;

	json_array_foreach (tables, i, t)
		if (json_equal(json_object_get(t, "table"),
			json_object_get(like, "table")) &&
		    json_equal(json_object_get(t, "collateral"),
			json_object_get(like, "collateral")))
			return t;
	return NULL;
}

/* Tables of `is` that stand otherwise, or not at all, in `was`. */
static bool
compare_tables(const struct term *t, const json_t *was, const json_t *is,
    bool missing_only)
{
	json_t *tables = json_object_get(is, "tables"), *now;
	bool same = true;
	size_t i;

	json_array_foreach (tables, i, now) {
		const json_t *then = table_like(was, now);

		if (missing_only ? then != NULL : json_equal(then, now))
			continue;
		if (missing_only)
			differ(t, "table", term_quote(now, 400), "(gone)");
		else
			differ(t, "table",
			    then != NULL ? term_quote(then, 400) : "(none)",
			    term_quote(now, 400));
		same = false;
	}
	return same;
}

void
writer_compare(const struct term *t, const json_t *was, const json_t *is)
{
	bool same = compare_members(t, was, is);

	same = compare_statements(t, was, is) && same;
	same = compare_tables(t, was, is, false) && same;
	same = compare_tables(t, is, was, true) && same;
	if (same)
		term_line(t, PLAIN, "  ",
		    "counts, statements and reasons are the same: values of "
		    "rows differ");
}

void
writer_summary(const struct term *t, const json_t *header)
{
	const char *risk = json_string_value(json_object_get(header, "risk"));
	bool high = risk == NULL || strcmp(risk, "high") == 0;
	struct text line = { 0 };

	text_addf(&line, "%s: rows that change: %" PRIu64 ", risk %s%s",
	    term_member(header, "id", 64), review_changed(header),
	    term_member(header, "risk", 32),
	    json_is_true(json_object_get(header, "complete"))
		? ""
		: ", INCOMPLETE: not all that changed could be shown");
	term_line(t, high ? RED : BOLD, "", text_str(&line));
	text_release(&line);
}
