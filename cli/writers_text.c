/* writers_text: answers for people; every foreign byte goes through term */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "diffview.h"
#include "writer.h"

#define BRIEF_SQL 2000 /* bytes of SQL shown in a list */

static void line(const struct term *t, enum colour c, const char *prefix,
    const char *fmt, ...) PRINTF_LIKE(4, 5);

static void
line(const struct term *t, enum colour c, const char *prefix, const char *fmt,
    ...)
{
	struct text s = { 0 };
	va_list ap;
	char *p = NULL;

	va_start(ap, fmt);
	if (vasprintf(&p, fmt, ap) >= 0)
		text_add(&s, p);
	va_end(ap);
	free(p);
	term_line(t, c, prefix, text_str(&s));
	text_release(&s);
}

static enum colour
risk_colour(const json_t *header)
{
	const char *risk = json_string_value(json_object_get(header, "risk"));

	return risk != NULL && strcmp(risk, "low") == 0      ? GREEN
	       : risk != NULL && strcmp(risk, "medium") == 0 ? YELLOW
	                                                     : RED;
}

static void
print_reasons(const struct term *t, const json_t *header)
{
	json_t *reasons = json_object_get(header, "reasons"), *r;
	size_t i;

	if (json_object_get(header, "risk") == NULL)
		return; /* of an earlier run, of which the journal has less */
	line(t, risk_colour(header), "  ", "risk %s",
	    term_member(header, "risk", 32));
	json_array_foreach (reasons, i, r)
		line(t, PLAIN, "    ", "%s: %s", term_member(r, "code", 64),
		    term_member(r, "text", 1000));
}

/* Milliseconds since 1970 of an RFC 3339 time in UTC, -1 where it is none. */
static int64_t
parse_time(const json_t *j)
{
	const char *s = json_string_value(j);
	struct tm tm = { 0 };
	const char *rest;

	if (s == NULL ||
	    (rest = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm)) == NULL ||
	    (*rest != '.' && *rest != 'Z'))
		return -1;
	return (int64_t)timegm(&tm) * 1000;
}

/* "9 min 5 s" */
static void
print_span(char *out, size_t size, int64_t ms)
{
	int64_t s = ms > 0 ? ms / 1000 : 0;

	if (s >= 3600)
		snprintf(out, size, "%" PRId64 " h %" PRId64 " min", s / 3600,
		    s % 3600 / 60);
	else if (s >= 60)
		snprintf(out, size, "%" PRId64 " min %" PRId64 " s", s / 60,
		    s % 60);
	else
		snprintf(out, size, "%" PRId64 " s", s);
}

static void
print_times(const struct term *t, const json_t *header)
{
	json_t *created = json_object_get(header, "created_at");
	json_t *expires = json_object_get(header, "expires_at");
	int64_t from = parse_time(created), until = parse_time(expires);
	char age[48] = "?", left[48] = "?";

	if (created == NULL)
		return;
	if (from >= 0)
		print_span(age, sizeof(age), clock_wall_ms() - from);
	if (until >= 0)
		print_span(left, sizeof(left), until - clock_wall_ms());
	line(t, PLAIN, "  ", "ran %s ago (%s)", age, term_quote(created, 40));
	if (review_is_pending(header))
		line(t, PLAIN, "  ",
		    "%s left (until %s), then it is rolled back", left,
		    term_quote(expires, 40));
}

static void
print_params(const struct term *t, const json_t *params)
{
	struct text s = { 0 };
	json_t *v;
	size_t i;

	json_array_foreach (params, i, v) {
		text_reset(&s);
		text_addf(&s, "$%zu = ", i + 1);
		diffview_value(&s, v, 400);
		term_line(t, PLAIN, "    ", text_str(&s));
	}
	text_release(&s);
}

void
writer_statement(const struct term *t, const char *prefix, const json_t *header,
    size_t i, bool brief)
{
	json_t *one = json_array_get(json_object_get(header, "statements"), i);
	json_t *sql = json_object_get(one, "sql");
	size_t len = json_string_length(sql), n = len;

	if (!json_is_string(sql))
		return;
	if (brief)
		n = text_utf8_cut(json_string_value(sql), len, BRIEF_SQL);
	term_block(t, prefix, json_string_value(sql), n);
	if (n < len)
		line(t, PLAIN, "  ",
		    "... %zu of %zu bytes; all of it: airlock show %s", n, len,
		    term_member(header, "id", 64));
	print_params(t, json_object_get(one, "params"));
}

static void
print_statements(const struct page *p, const json_t *header)
{
	json_t *list = json_object_get(header, "statements");

	for (size_t i = 0; i < json_array_size(list); i++)
		writer_statement(&p->term, "  sql | ", header, i, p->brief);
}

static json_int_t
number(const json_t *j, const char *name)
{
	return json_integer_value(json_object_get(j, name));
}

static bool
is_true(const json_t *j, const char *name)
{
	return json_is_true(json_object_get(j, name));
}

/* "; rows 4 -> 5", where they are known. */
static void
add_sizes(struct text *out, const json_t *table)
{
	const char *about = is_true(table, "rows_estimated") ? "about " : "";

	if (!json_is_integer(json_object_get(table, "rows_before")) ||
	    !json_is_integer(json_object_get(table, "rows_after"))) {
		text_add(out, "; rows not counted");
		return;
	}
	text_addf(out,
	    "; rows %s%" JSON_INTEGER_FORMAT " -> %s%" JSON_INTEGER_FORMAT,
	    about, number(table, "rows_before"), about,
	    number(table, "rows_after"));
}

/* "; collateral: by trigger a or b on public.t": each that could be it, by the
 * daemon's word. */
static void
add_causes(struct text *out, const json_t *table)
{
	json_t *by = json_object_get(table, "by"), *one, *last = NULL;
	size_t i;

	text_add(out, "; collateral: the statement does not name it");
	json_array_foreach (by, i, one) {
		bool same =
		    last != NULL && json_equal(json_object_get(last, "kind"),
					json_object_get(one, "kind"));

		text_add(out, i == 0 ? "; written by " : " or ");
		if (!same)
			text_addf(out, "%s ", term_member(one, "kind", 20));
		text_add(out, term_member(one, "name", 300));
		if (json_object_get(one, "on") != NULL)
			text_addf(out, " on %s", term_member(one, "on", 300));
		last = one;
	}
}

static void
print_tables(const struct term *t, const json_t *header)
{
	json_t *tables = json_object_get(header, "tables"), *one;
	struct text s = { 0 };
	size_t i;

	json_array_foreach (tables, i, one) {
		text_reset(&s);
		text_addf(&s,
		    "%s: %" JSON_INTEGER_FORMAT " inserted, "
		    "%" JSON_INTEGER_FORMAT " updated, "
		    "%" JSON_INTEGER_FORMAT " deleted, "
		    "%" JSON_INTEGER_FORMAT " matched but unchanged",
		    term_member(one, "table", 300), number(one, "inserted"),
		    number(one, "updated"), number(one, "deleted"),
		    number(one, "unchanged"));
		add_sizes(&s, one);
		if (is_true(one, "collateral"))
			add_causes(&s, one);
		if (json_is_false(json_object_get(one, "complete")))
			text_add(&s,
			    "; INCOMPLETE: its rows are not all below");
		term_line(t, BOLD, "  ", text_str(&s));
	}
	text_release(&s);
}

static void
print_extras(const struct term *t, const json_t *header)
{
	json_t *effects = json_object_get(header, "effects"), *one;
	size_t i;

	json_array_foreach (effects, i, one)
		line(t, YELLOW, "  ", "effect %s: %s",
		    term_member(one, "code", 64),
		    term_member(one, "text", 1000));
	if (json_object_get(header, "complete") != NULL &&
	    !is_true(header, "complete"))
		line(t, RED, "  ",
		    "INCOMPLETE: not all that this change did could be read; "
		    "the counts above tell how much");
}

static void
print_header(struct page *p, const json_t *header)
{
	const struct term *t = &p->term;
	json_t *intent = json_object_get(header, "intent");

	if (p->listed++ > 0)
		fputc('\n', t->out);
	line(t, BOLD, "", "%s %s, agent %s%s%s", term_member(header, "id", 64),
	    term_member(header, "status", 32), term_member(header, "agent", 64),
	    json_object_get(header, "database") != NULL ? ", database " : "",
	    term_member(header, "database", 64));
	if (json_is_string(intent))
		line(t, PLAIN, "  ", "agent says: %s",
		    term_quote(intent, 1000));
	if (!review_is_pending(header) &&
	    json_object_get(header, "why") != NULL)
		line(t, PLAIN, "  ", "why: %s%s%s",
		    term_member(header, "why", 64),
		    json_object_get(header, "reason") != NULL ? ", " : "",
		    term_member(header, "reason", 1000));
	print_reasons(t, header);
	print_times(t, header);
	print_statements(p, header);
	print_tables(t, header);
	print_extras(t, header);
	p->seen = p->shown = 0;
}

static void
print_row(struct page *p, const json_t *row)
{
	if (!page_takes(p, row))
		return;
	if (p->column != NULL && diffview_has(row, p->column))
		p->has_column = true;
	diffview_row(&p->term, row, p->column);
}

/* What a second run would show as well; nothing is decided by it. */
static void
print_replay(const struct term *t, const json_t *header)
{
	json_t *tables = json_object_get(header, "tables"), *one, *name;
	struct text s = { 0 };
	size_t i, k;

	if (!json_is_string(json_object_get(header, "replay_digest")))
		return;
	line(t, PLAIN, "  ", "replay digest %s",
	    term_member(header, "replay_digest", 64));
	json_array_foreach (tables, i, one) {
		text_reset(&s);
		json_array_foreach (json_object_get(one, "filled"), k, name)
			text_addf(&s, "%s %s", k > 0 ? "," : "",
			    term_quote(name, 300));
		if (s.len > 0)
			line(t, PLAIN, "    ", "without new values in %s:%s",
			    term_member(one, "table", 300), text_str(&s));
	}
	text_release(&s);
}

static void
print_tail(struct page *p, const struct review *r)
{
	const char *id = term_member(r->header, "id", 64);
	uint64_t total = p->table != NULL && r->complete ? p->seen : r->total;

	if (p->shown + p->skip < total)
		line(&p->term, PLAIN, "    ",
		    "... %" PRIu64 " more rows: airlock show %s%s%s "
		    "--offset %" PRIu64,
		    total - p->shown - p->skip, id,
		    p->table != NULL ? " --table " : "",
		    p->table != NULL ? term_quote_str(p->table, 300) : "",
		    p->shown + p->skip);
	if (!review_is_pending(r->header))
		return;
	if (!r->complete)
		line(&p->term, YELLOW, "  ",
		    "(the daemon's digest; airlock show %s checks it against "
		    "all rows)",
		    id);
	if (!p->brief)
		print_replay(&p->term, r->header);
	line(&p->term, PLAIN, "  ", "airlock commit takes it by this token:");
	fprintf(p->term.out, "%s@%s\n", id, r->digest);
}

static void
nothing(struct page *p UNUSED)
{
}

static const struct change_writer changes = { nothing, print_header, print_row,
	print_tail, nothing };

static void
ping(const struct term *t, const char *version)
{
	fprintf(t->out, "airlockd %s is up\n", version);
}

static void
version_of_both(const struct term *t, const char *own, const char *daemon)
{
	fprintf(t->out, "airlock %s\n", own);
	if (daemon != NULL)
		fprintf(t->out, "airlockd %s\n", daemon);
}

/* Objects become "name: value" lines, deeper ones indented. */
static void
status(const struct term *t, const json_t *j)
{
	const char *name;
	json_t *v, *one;
	size_t i;

	json_object_foreach ((json_t *)(uintptr_t)j, name, v) {
		if (!json_is_array(v)) {
			line(t, PLAIN, "", "%s: %s", term_quote_str(name, 64),
			    term_quote(v, 1000));
			continue;
		}
		json_array_foreach (v, i, one)
			line(t, PLAIN, "", "%s: %s", term_quote_str(name, 64),
			    term_quote(one, 1000));
	}
}

static void
agents(const struct term *t, const json_t *list)
{
	json_t *a;
	size_t i;

	fprintf(t->out, "%-32s %-8s %6s %8s\n", "AGENT", "ACCESS", "CALLS",
	    "PENDING");
	json_array_foreach (list, i, a)
		fprintf(t->out, "%-32s %-8s %6s %8s\n",
		    term_member(a, "name", 32), term_member(a, "access", 16),
		    term_member(a, "calls", 16), term_member(a, "pending", 16));
}

/* Members of a record that have columns of their own, or are of no interest to
 * the eye. */
static bool
is_told_apart(const char *name)
{
	static const char *const names[] = { "seq", "at", "kind", "prev",
		"change", "change_id", "id", "operator", "agent",
		"replay_digest" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static const char *
first_of(const json_t *j, const char *const *names)
{
	for (; *names != NULL; names++)
		if (json_is_string(json_object_get(j, *names)))
			return term_member(j, *names, 64);
	return "-";
}

/* How members of a record that are objects or long are put in a few words. */
static void
add_sql(struct text *out, const json_t *v)
{
	diffview_value(out, json_object_get(v, "sql"), DIFFVIEW_VALUE_MAX);
}

static void
add_codes(struct text *out, const json_t *v)
{
	json_t *one;
	size_t i;

	json_array_foreach (v, i, one)
		text_addf(out, "%s%s", i > 0 ? "," : "",
		    term_member(one, "code", 64));
}

static void
add_counts(struct text *out, const json_t *v)
{
	json_t *one;
	size_t i;

	json_array_foreach (v, i, one)
		text_addf(out,
		    "%s%s:+%" JSON_INTEGER_FORMAT "~%" JSON_INTEGER_FORMAT
		    "-%" JSON_INTEGER_FORMAT,
		    i > 0 ? "," : "", term_member(one, "table", 160),
		    number(one, "inserted"), number(one, "updated"),
		    number(one, "deleted"));
}

static void
add_short(struct text *out, const json_t *v)
{
	const char *s = json_string_value(v);

	text_quote(out, s, text_utf8_cut(s, json_string_length(v), 12));
}

static void
add_any(struct text *out, const json_t *v)
{
	if (json_is_string(v))
		diffview_value(out, v, DIFFVIEW_VALUE_MAX);
	else
		text_add(out, term_quote(v, DIFFVIEW_VALUE_MAX));
}

static void
add_member(struct text *out, const char *name, const json_t *v)
{
	static const struct {
		const char *name;
		json_type type;
		void (*add)(struct text *out, const json_t *v);
	} table[] = {
		{ "statement", JSON_OBJECT, add_sql },
		{ "tables", JSON_ARRAY, add_counts },
		{ "reasons", JSON_ARRAY, add_codes },
		{ "digest", JSON_STRING, add_short },
	};

	text_addf(out, " %s=", term_quote_str(name, 32));
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].name, name) == 0 &&
		    json_typeof(v) == table[i].type) {
			table[i].add(out, v);
			return;
		}
	add_any(out, v);
}

static void
record(const struct term *t, const json_t *rec)
{
	static const char *const change[] = { "change", "change_id", "id",
		NULL };
	static const char *const who[] = { "operator", "agent", NULL };
	struct text s = { 0 };
	const char *name;
	json_t *v;

	text_addf(&s, "%s %-12s %-14s %-12s", term_member(rec, "at", 40),
	    term_member(rec, "kind", 32), first_of(rec, change),
	    first_of(rec, who));
	json_object_foreach ((json_t *)(uintptr_t)rec, name, v)
		if (!is_told_apart(name) && !json_is_null(v))
			add_member(&s, name, v);
	term_line(t, PLAIN, "", text_str(&s));
	text_release(&s);
}

static void
verified(const struct term *t, const json_t *ok)
{
	fprintf(t->out,
	    "the journal is whole: %" JSON_INTEGER_FORMAT
	    " records, each with the hash of the one before\n",
	    number(ok, "records"));
}

static void
decided(const struct term *t, const json_t *change)
{
	line(t, BOLD, "", "%s %s: %" PRIu64 " row%s%s%s",
	    term_member(change, "status", 32), term_member(change, "id", 64),
	    review_changed(change), review_changed(change) == 1 ? "" : "s",
	    json_is_string(json_object_get(change, "reason")) ? ", reason: "
							      : "",
	    term_member(change, "reason", 1000));
}

const struct writer writer_text = {
	.list = &changes,
	.one = &changes,
	.ping = ping,
	.version = version_of_both,
	.status = status,
	.agents = agents,
	.record = record,
	.verified = verified,
	.decided = decided,
};
