/* term: what may reach a terminal: quoted, wrapped and coloured text */
#include "term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"

#define WIDTH_MIN 40
#define ROOM_MIN 20
#define INDENT_MIN 4 /* of a line that goes on */
#define RING 8

void
term_init(struct term *t, FILE *out)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	struct winsize ws = { 0 };

	memset(t, 0, sizeof(*t));
	t->out = out;
	if (!isatty(fileno(out)))
		return;
	t->coloured = (no == NULL || no[0] == '\0') && term != NULL &&
	              strcmp(term, "dumb") != 0;
	t->width = 80;
	if (ioctl(fileno(out), TIOCGWINSZ, &ws) == 0 && ws.ws_col != 0)
		t->width = ws.ws_col > WIDTH_MIN ? ws.ws_col : WIDTH_MIN;
}

static const char *const codes[] = {
	[PLAIN] = "",
	[BOLD] = "\033[1m",
	[RED] = "\033[31m",
	[GREEN] = "\033[32m",
	[YELLOW] = "\033[33m",
	[DIM] = "\033[2m",
};

/* How many bytes of quoted text fit into `room` columns.  What is not ASCII is
 * taken for two columns wide, which errs on the safe side. */
static size_t
fitting(const char *s, size_t room)
{
	size_t n = 0, columns = 0;

	while (s[n] != '\0') {
		size_t next = n + 1;

		columns += (unsigned char)s[n] < 0x80 ? 1 : 2;
		while (((unsigned char)s[next] & 0xc0) == 0x80)
			next++;
		if (columns > room)
			break;
		n = next;
	}
	return n;
}

void
term_line(const struct term *t, enum colour c, const char *prefix,
    const char *text)
{
	size_t indent = strlen(prefix), room, n;
	bool paint = t->coloured && c != PLAIN;

	if (indent < INDENT_MIN)
		indent = INDENT_MIN;
	room = t->width > indent + ROOM_MIN ? t->width - 1 - indent : ROOM_MIN;
	for (bool first = true; first || *text != '\0'; first = false) {
		n = t->width == 0 ? strlen(text) : fitting(text, room);
		fprintf(t->out, "%*s%s%.*s%s\n", first ? 0 : (int)indent,
		    first ? prefix : "", paint ? codes[c] : "", (int)n, text,
		    paint ? "\033[0m" : "");
		text += n;
	}
}

void
term_block(const struct term *t, const char *prefix, const char *p, size_t n)
{
	struct text line = { 0 };

	for (;;) {
		const char *nl = memchr(p, '\n', n);
		size_t len = nl != NULL ? (size_t)(nl - p) : n;

		text_reset(&line);
		for (size_t i = 0, from = 0; i <= len; i++) {
			if (i < len && p[i] != '\t')
				continue;
			text_quote(&line, p + from, i - from);
			if (i < len)
				text_add(&line, "    ");
			from = i + 1;
		}
		term_line(t, PLAIN, prefix, text_str(&line));
		if (nl == NULL)
			break;
		p += len + 1;
		n -= len + 1;
	}
	text_release(&line);
}

static struct text *
ring_next(void)
{
	static struct text ring[RING];
	static size_t at;
	struct text *t = &ring[at++ % RING];

	text_reset(t);
	return t;
}

static const char *
quote(const char *p, size_t n, size_t most)
{
	struct text *t = ring_next();
	size_t cut = text_utf8_cut(p, n, most);

	text_quote(t, p, cut);
	if (cut < n)
		text_addf(t, "... (%zu bytes)", n);
	return text_str(t);
}

const char *
term_quote_str(const char *s, size_t most)
{
	return quote(s, strlen(s), most);
}

const char *
term_quote(const json_t *j, size_t most)
{
	const char *s;
	char *dump;

	if (j == NULL)
		return "";
	if (json_is_string(j))
		return quote(json_string_value(j), json_string_length(j), most);
	dump = term_json_text(j);
	s = quote(dump, strlen(dump), most);
	free(dump);
	return s;
}

const char *
term_member(const json_t *j, const char *name, size_t most)
{
	return term_quote(json_object_get(j, name), most);
}

char *
term_json_text(const json_t *j)
{
	char *dump = json_dumps(j,
		 JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY),
	     *p;
	struct text t = { 0 };

	if (dump == NULL)
		return mem_strdup("null");
	if (strchr(dump, 0x7f) == NULL)
		return dump;
	/* DEL can only stand inside a string, where it may be escaped. */
	for (p = dump; *p != '\0'; p++)
		if (*p == 0x7f)
			text_add(&t, "\\u007f");
		else
			text_addc(&t, *p);
	free(dump);
	return text_take(&t);
}

void
term_json(FILE *out, const json_t *j)
{
	char *s = term_json_text(j);

	fputs(s, out);
	putc('\n', out);
	free(s);
}
