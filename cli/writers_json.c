/* writers_json: answers as JSON, pure ASCII, one value a line */
#include <stdlib.h>
#include <string.h>

#include "writer.h"

static void
nothing(struct page *p UNUSED)
{
}

static void
no_json(struct page *p UNUSED, const json_t *j UNUSED)
{
}

static void
no_tail(struct page *p UNUSED, const struct review *r UNUSED)
{
}

static void
print_header(struct page *p, const json_t *header)
{
	term_json(p->term.out, header);
}

static void
print_row(struct page *p, const json_t *row)
{
	if (page_takes(p, row))
		term_json(p->term.out, row);
}

static const struct change_writer ndjson = { nothing, print_header, print_row,
	no_tail, nothing };

/* An array's element is printed once its digest is known to be right.  One
 * that was decided while it was fetched waits no longer. */
static void
list_begin(struct page *p)
{
	putc('[', p->term.out);
}

static void
list_item(struct page *p, const struct review *r)
{
	json_t *status = json_object_get(r->header, "status");
	char *s;

	if (!review_is_pending(r->header) &&
	    (!json_is_string(status) ||
		strcmp(json_string_value(status), "in_doubt") != 0))
		return;
	s = term_json_text(r->header);
	fprintf(p->term.out, "%s%s", p->listed++ > 0 ? ",\n" : "", s);
	free(s);
}

static void
list_end(struct page *p)
{
	fputs("]\n", p->term.out);
}

static const struct change_writer array = { list_begin, no_json, no_json,
	list_item, list_end };

static void
print_new(const struct term *t, json_t *j)
{
	term_json(t->out, j);
	json_decref(j);
}

static void
ping(const struct term *t, const char *version)
{
	print_new(t, json_pack("{s:b, s:s}", "ok", 1, "version", version));
}

static void
version_of_both(const struct term *t, const char *own, const char *daemon)
{
	print_new(t,
	    json_pack("{s:s, s:s?}", "airlock", own, "airlockd", daemon));
}

static void
print(const struct term *t, const json_t *j)
{
	term_json(t->out, j);
}

const struct writer writer_json = {
	.list = &array,
	.one = &ndjson,
	.ping = ping,
	.version = version_of_both,
	.status = print,
	.agents = print,
	.record = print,
	.verified = print,
	.decided = print,
};
