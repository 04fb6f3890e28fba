/* text: a growing string, and the escapes that foreign bytes must pass */
#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void
text_init(struct text *t)
{
	memset(t, 0, sizeof(*t));
}

void
text_release(struct text *t)
{
	free(t->s);
	text_init(t);
}

void
text_reset(struct text *t)
{
	t->len = 0;
	if (t->s != NULL)
		t->s[0] = '\0';
}

void
text_drop(struct text *t, size_t n)
{
	if (n >= t->len) {
		text_reset(t);
		return;
	}
	memmove(t->s, t->s + n, t->len - n + 1);
	t->len -= n;
}

/* Room for n more bytes and a NUL. */
static void
reserve(struct text *t, size_t n)
{
	size_t size = t->size != 0 ? t->size : 64;

	if (t->size - t->len > n)
		return;
	while (size - t->len <= n)
		size = size > SIZE_MAX / 2 ? t->len + n + 1 : size * 2;
	t->s = mem_grow(t->s, size, 1);
	t->size = size;
}

void
text_addn(struct text *t, const void *p, size_t n)
{
	reserve(t, n);
	if (n != 0)
		memcpy(t->s + t->len, p, n);
	t->len += n;
	t->s[t->len] = '\0';
}

void
text_add(struct text *t, const char *s)
{
	text_addn(t, s, strlen(s));
}

void
text_addc(struct text *t, char c)
{
	text_addn(t, &c, 1);
}

void
text_addf(struct text *t, const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		return; /* only a broken format can */
	text_addn(t, s, (size_t)n);
	free(s);
}

const char *
text_str(const struct text *t)
{
	return t->s != NULL ? t->s : "";
}

char *
text_take(struct text *t)
{
	char *s = t->s != NULL ? t->s : mem_strdup("");

	text_init(t);
	return s;
}

#define QUOTED_MAX 16 /* the longest escape, and more */
#define MARKS_MAX 3   /* on one character; writing does with fewer */

/* Length of the valid UTF-8 sequence at p, 0 where there is none; *cp is its
 * code point. */
static size_t
sequence(const char *p, size_t n, uint32_t *cp)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char c = (unsigned char)p[0];
	size_t len = c < 0x80                ? 1
	             : c >= 0xc2 && c < 0xe0 ? 2
	             : c >= 0xe0 && c < 0xf0 ? 3
	             : c >= 0xf0 && c < 0xf5 ? 4
	                                     : 0;

	if (len == 0 || len > n)
		return 0;
	*cp = len == 1 ? c : c & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if (((unsigned char)p[i] & 0xc0) != 0x80)
			return 0;
		*cp = *cp << 6 | ((unsigned char)p[i] & 0x3f);
	}
	if (*cp < least[len] || (*cp >= 0xd800 && *cp < 0xe000) ||
	    *cp > 0x10ffff)
		return 0;
	return len;
}

/* How much of it is ASCII, eight bytes at a time: most of most texts is. */
static size_t
ascii(const char *p, size_t n)
{
	size_t done = 0;
	uint64_t v;

	for (; n - done >= sizeof(v); done += sizeof(v)) {
		memcpy(&v, p + done, sizeof(v));
		if (v & 0x8080808080808080U)
			break;
	}
	return done;
}

bool
text_is_utf8(const char *p, size_t n)
{
	uint32_t cp;
	size_t len;

	for (; n > 0; p += len, n -= len)
		if ((len = ascii(p, n)) == 0 &&
		    (len = sequence(p, n, &cp)) == 0)
			return false;
	return true;
}

size_t
text_utf8_cut(const char *p, size_t len, size_t n)
{
	if (n >= len)
		return len;
	while (n > 0 && ((unsigned char)p[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/*
 * What shows nothing, shows as a blank, or moves what shows: a value could
 * hide or reorder itself by it.  From Unicode 16: White_Space but U+0020,
 * Default_Ignorable_Code_Point, categories Cc, Cf and Co, noncharacters, the
 * planes that hold no characters, and U+2800, a picture of no dots.
 */
static bool
deceives(uint32_t cp)
{
	static const struct {
		uint32_t from, to;
	} ranges[] = {
		{ 0x0000, 0x001f },
		{ 0x007f, 0x00a0 },
		{ 0x00ad, 0x00ad },
		{ 0x034f, 0x034f },
		{ 0x0600, 0x0605 },
		{ 0x061c, 0x061c },
		{ 0x06dd, 0x06dd },
		{ 0x070f, 0x070f },
		{ 0x0890, 0x0891 },
		{ 0x08e2, 0x08e2 },
		{ 0x115f, 0x1160 },
		{ 0x1680, 0x1680 },
		{ 0x17b4, 0x17b5 },
		{ 0x180b, 0x180f },
		{ 0x2000, 0x200f },
		{ 0x2028, 0x202f },
		{ 0x205f, 0x206f },
		{ 0x2800, 0x2800 },
		{ 0x3000, 0x3000 },
		{ 0x3164, 0x3164 },
		{ 0xe000, 0xf8ff },
		{ 0xfdd0, 0xfdef },
		{ 0xfe00, 0xfe0f },
		{ 0xfeff, 0xfeff },
		{ 0xffa0, 0xffa0 },
		{ 0xfff0, 0xfffb },
		{ 0x110bd, 0x110bd },
		{ 0x110cd, 0x110cd },
		{ 0x13430, 0x1343f },
		{ 0x1bca0, 0x1bca3 },
		{ 0x1d173, 0x1d17a },
		{ 0x40000, 0x10ffff },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (cp >= ranges[i].from && cp <= ranges[i].to)
			return true;
	return (cp & 0xfffe) == 0xfffe;
}

/* Marks that stand on the character before them, of scripts and none. */
static bool
is_mark(uint32_t cp)
{
	return (cp >= 0x300 && cp <= 0x36f) || (cp >= 0x483 && cp <= 0x489) ||
	       (cp >= 0x1ab0 && cp <= 0x1aff) ||
	       (cp >= 0x1dc0 && cp <= 0x1dff) ||
	       (cp >= 0x20d0 && cp <= 0x20ff) || (cp >= 0xfe20 && cp <= 0xfe2f);
}

/* One escape or one character of p into out (QUOTED_MAX bytes); gives how many
 * bytes of p it took.  *marks: how many more may stand on what is before. */
static size_t
quote_one(char *out, const char *p, size_t n, int *marks)
{
	uint32_t cp;
	size_t len = sequence(p, n, &cp);
	int left = *marks;

	*marks = 0;
	if (len == 0) {
		snprintf(out, QUOTED_MAX, "\\x%02x", (unsigned char)*p);
		return 1;
	}
	if (cp == '\n' || cp == '\t' || cp == '\r' || cp == '\\')
		snprintf(out, QUOTED_MAX, "\\%c",
		    cp == '\n'   ? 'n'
		    : cp == '\t' ? 't'
		    : cp == '\r' ? 'r'
				 : '\\');
	else if (cp < 0x20 || cp == 0x7f)
		snprintf(out, QUOTED_MAX, "\\x%02x", (unsigned)cp);
	else if (deceives(cp) || (is_mark(cp) && left == 0))
		snprintf(out, QUOTED_MAX, "\\u{%04x}", (unsigned)cp);
	else {
		memcpy(out, p, len);
		out[len] = '\0';
		*marks = is_mark(cp) ? left - 1 : MARKS_MAX;
	}
	return len;
}

void
text_quote(struct text *t, const char *p, size_t n)
{
	char one[QUOTED_MAX];
	int marks = 0;

	while (n > 0) {
		size_t took = quote_one(one, p, n, &marks);

		text_add(t, one);
		p += took;
		n -= took;
	}
}

void
text_quote_into(char *out, size_t size, const char *p, size_t n)
{
	char one[QUOTED_MAX];
	size_t used = 0;
	int marks = 0;

	while (n > 0) {
		size_t took = quote_one(one, p, n, &marks), len = strlen(one);

		if (used + len + 1 > size)
			break;
		memcpy(out + used, one, len);
		used += len;
		p += took;
		n -= took;
	}
	out[used] = '\0';
}

/* So that no two texts that differ in such bytes look alike. */
static void
add_stray_byte(struct text *t, char byte)
{
	text_addf(t, "\xef\xbf\xbd%02x", (unsigned)(unsigned char)byte);
}

/* Plain runs are copied at once: this is on the path of every row. */
void
text_add_json(struct text *t, const char *p, size_t n)
{
	text_addc(t, '"');
	while (n > 0) {
		size_t run = 0, len;
		uint32_t cp;

		while (run < n && (unsigned char)p[run] >= 0x20 &&
		       (unsigned char)p[run] < 0x80 && p[run] != '"' &&
		       p[run] != '\\')
			run++;
		if (run > 0) {
			text_addn(t, p, run);
			p += run;
			n -= run;
			continue;
		}
		len = sequence(p, n, &cp);
		if (len > 1)
			text_addn(t, p, len);
		else if (len == 0)
			add_stray_byte(t, *p);
		else if (cp == '"' || cp == '\\') {
			text_addc(t, '\\');
			text_addc(t, (char)cp);
		} else if (cp == '\n')
			text_add(t, "\\n");
		else
			text_addf(t, "\\u%04x", (unsigned)cp);
		p += len != 0 ? len : 1;
		n -= len != 0 ? len : 1;
	}
	text_addc(t, '"');
}

void
text_add_utf8(struct text *t, const char *p, size_t n)
{
	size_t len;
	uint32_t cp;

	for (; n > 0; p += len, n -= len) {
		len = sequence(p, n, &cp);
		if (len > 0) {
			text_addn(t, p, len);
			continue;
		}
		add_stray_byte(t, *p);
		len = 1;
	}
}

void
text_add_ident(struct text *t, const char *s)
{
	text_addc(t, '"');
	for (; *s != '\0'; s++) {
		if (*s == '"')
			text_addc(t, '"');
		text_addc(t, *s);
	}
	text_addc(t, '"');
}

void
text_add_item(struct text *array, const char *p, size_t n)
{
	text_addc(array, array->len > 0 ? ',' : '{');
	if (p == NULL) {
		text_add(array, "NULL");
		return;
	}
	text_addc(array, '"');
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '"' || p[i] == '\\')
			text_addc(array, '\\');
		text_addc(array, p[i]);
	}
	text_addc(array, '"');
}

void
text_add_string(struct text *array, const char *s)
{
	text_add_item(array, s, s != NULL ? strlen(s) : 0);
}

void
text_add_number(struct text *array, long long v)
{
	text_addc(array, array->len > 0 ? ',' : '{');
	text_addf(array, "%lld", v);
}

void
text_end_items(struct text *array)
{
	text_add(array, array->len > 0 ? "}" : "{}");
}

int
text_copy(char *dst, size_t size, const char *src, struct err *e)
{
	size_t n = strlen(src);

	if (n >= size)
		return err_set(e, ERR_LIMIT,
		    "'%.40s...' is %zu bytes long, %zu at most", src, n,
		    size - 1);
	memcpy(dst, src, n + 1);
	return 0;
}

bool
text_starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

int
text_to_long(const char *s, long long min, long long max, long long *out,
    struct err *e)
{
	const char *p = s + (*s == '-');
	size_t digits = strspn(p, "0123456789");
	long long v;

	if (digits == 0 || digits > 18 || p[digits] != '\0')
		return err_set(e, ERR_INPUT, "not a whole number: '%.40s'", s);
	v = strtoll(s, NULL, 10);
	if (v < min || v > max)
		return err_set(e, ERR_INPUT,
		    "%lld is not between %lld and %lld", v, min, max);
	*out = v;
	return 0;
}

void
text_hex(char *out, const unsigned char *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	static char pairs[256][2]; /* made once: each row stored has a hash */

	if (pairs[0][0] == '\0')
		for (size_t i = 0; i < 256; i++) {
			pairs[i][0] = digits[i >> 4];
			pairs[i][1] = digits[i & 15];
		}
	for (size_t i = 0; i < n; i++)
		memcpy(out + 2 * i, pairs[p[i]], sizeof(pairs[0]));
	out[2 * n] = '\0';
}
