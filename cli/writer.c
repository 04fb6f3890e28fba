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

		if (a == NULL || json_equal(a, b))
			continue; /* not known of what it was */
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
	json_int_t known = json_integer_value(a);
	size_t n = json_is_integer(a) && known >= 0 ? (size_t)known
	                                            : json_array_size(a);
	char from[32], to[32];

	if (json_equal(a, b))
		return true;
	snprintf(from, sizeof(from), "%zu", n);
	snprintf(to, sizeof(to), "%zu", json_array_size(b));
	differ(t, "statements", from, to);
	for (size_t i = 0; i < json_array_size(b); i++)
		if (i >= n)
			writer_statement(t, "  added sql | ", is, i, true);
		else if (json_is_array(a) && !json_equal(json_array_get(a, i),
						 json_array_get(b, i)))
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
			json_object_get(like, "table")))
			return t;
	return NULL;
}

/* "inserted 0, updated 1 -> 2, deleted 0, unchanged 0"; false where all are
 * the same.  A table that was not there yet had none. */
static bool
add_changed_counts(struct text *out, const json_t *was, const json_t *is)
{
	static const char *const counts[] = { "inserted", "updated", "deleted",
		"unchanged" };
	json_t *whole = json_object_get(is, "complete");
	bool differs = was == NULL;

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		json_int_t a =
		    json_integer_value(json_object_get(was, counts[i]));
		json_int_t b =
		    json_integer_value(json_object_get(is, counts[i]));

		text_addf(out, "%s%s %" JSON_INTEGER_FORMAT, i > 0 ? ", " : "",
		    counts[i], a);
		if (a != b)
			text_addf(out, " -> %" JSON_INTEGER_FORMAT, b);
		differs = differs || a != b;
	}
	if (was == NULL
		? json_is_false(whole)
		: !json_equal(json_object_get(was, "complete"), whole)) {
		text_add(out, json_is_false(whole) ? "; now INCOMPLETE"
						   : "; now complete");
		differs = true;
	}
	return differs;
}

/* Tables are only added to a change; what else differs of one that has both
 * views in full is shown as it stands there. */
static bool
compare_tables(const struct term *t, const json_t *was, const json_t *is)
{
	json_t *tables = json_object_get(is, "tables"), *now;
	struct text line = { 0 };
	bool same = true;
	size_t i;

	json_array_foreach (tables, i, now) {
		const json_t *then = table_like(was, now);

		text_reset(&line);
		text_addf(&line, "table %s%s: ", term_member(now, "table", 300),
		    then == NULL ? " (new)" : "");
		if (add_changed_counts(&line, then, now)) {
			term_line(t, PLAIN, "  ", text_str(&line));
		} else if (json_object_get(then, "collateral") != NULL &&
			   !json_equal(then, now)) {
			differ(t, "table", term_quote(then, 400),
			    term_quote(now, 400));
		} else {
			continue;
		}
		same = false;
	}
	text_release(&line);
	return same;
}

static bool
compare_gone(const struct term *t, const json_t *was, const json_t *is)
{
	json_t *tables = json_object_get(was, "tables"), *then;
	bool same = true;
	size_t i;

	json_array_foreach (tables, i, then)
		if (table_like(is, then) == NULL) {
			differ(t, "table", term_member(then, "table", 300),
			    "(gone)");
			same = false;
		}
	return same;
}

void
writer_compare(const struct term *t, const json_t *was, const json_t *is)
{
	bool same = compare_members(t, was, is);

	same = compare_statements(t, was, is) && same;
	same = compare_tables(t, was, is) && same;
	same = compare_gone(t, was, is) && same;
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
