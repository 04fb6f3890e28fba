/* rowcursor: the lines of a file of row images, one after the other */
#include "diff/rowcursor.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define CHUNK_BYTES ((size_t)64 << 10)
#define CHUNK_NEAR ((size_t)8 << 10) /* where one jumps about */
#define TAIL_MAX 160

void
rowcursor_init(struct rowcursor *c, struct rowfile *f)
{
	memset(c, 0, sizeof(*c));
	c->f = f;
	c->chunk = CHUNK_BYTES;
}

void
rowcursor_release(struct rowcursor *c)
{
	free(c->buf);
	memset(c, 0, sizeof(*c));
}

static int
broken(struct err *e)
{
	return err_set(e, ERR_BUG, "a stored row cannot be read");
}

/* A jump within what has been read costs nothing: rows are mostly asked for in
 * about the order in which they stand. */
int
rowcursor_seek(struct rowcursor *c, uint64_t offset, struct err *e)
{
	uint64_t from = c->at - c->start;
	size_t got = 0;
	char before;

	if (offset > from && offset <= c->at + (c->end - c->start)) {
		c->start = (size_t)(offset - from);
		c->at = offset;
		before = c->buf[c->start - 1];
	} else if (offset == 0) {
		c->start = c->end = 0;
		c->at = 0;
		return 0;
	} else {
		if (rowfile_read(c->f, offset - 1, &before, 1, &got, e) == -1)
			return -1;
		if (got == 0)
			before = '\0';
		c->start = c->end = 0;
		c->at = offset;
		c->chunk = CHUNK_NEAR;
	}
	if (before != '\n')
		return err_set(e, ERR_INPUT, "no row begins at offset %llu",
		    (unsigned long long)offset);
	return 0;
}

/* Reads more behind buf[end); *got is 0 at the end of the file. */
static int
more(struct rowcursor *c, size_t *got, struct err *e)
{
	uint64_t next = c->at + (c->end - c->start);

	if (c->start > 0) {
		if (c->end > c->start)
			memmove(c->buf, c->buf + c->start, c->end - c->start);
		c->end -= c->start;
		c->start = 0;
	}
	if (c->size - c->end < c->chunk) {
		c->size = 2 * c->size > c->end + c->chunk ? 2 * c->size
		                                          : c->end + c->chunk;
		c->buf = mem_grow(c->buf, c->size, 1);
	}
	if (rowfile_read(c->f, next, c->buf + c->end, c->chunk, got, e) == -1)
		return -1;
	c->end += *got;
	c->chunk = c->chunk < CHUNK_BYTES ? 2 * c->chunk : CHUNK_BYTES;
	return 0;
}

static int
parse_hex(const char *s, unsigned char *out, size_t n, struct err *e)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < 2 * n; i++) {
		const char *d = s[i] != '\0' ? strchr(digits, s[i]) : NULL;

		if (d == NULL)
			return broken(e);
		out[i / 2] =
		    (unsigned char)(i % 2 == 0 ? (d - digits) << 4
					       : out[i / 2] | (d - digits));
	}
	return s[2 * n] == '\0' ? 0 : broken(e);
}

static int
parse_tail(struct rowline *l, struct err *e)
{
	const char *tab = memrchr(l->line, '\t', l->len);
	char tail[TAIL_MAX], *field[5], *p = tail;
	size_t n;

	if (tab == NULL)
		return broken(e);
	l->json_len = (size_t)(tab - l->line);
	n = l->len - l->json_len - 2; /* without tab and newline */
	if (n >= sizeof(tail))
		return broken(e);
	memcpy(tail, tab + 1, n);
	tail[n] = '\0';
	for (size_t i = 0; i < 5; i++)
		if ((field[i] = strsep(&p, " ")) == NULL)
			return broken(e);
	if (p != NULL || rowid_parse(field[0], field[1], &l->was, e) == -1 ||
	    rowid_parse(field[2], field[3], &l->is, e) == -1)
		return broken(e);
	return parse_hex(field[4], l->hash, sizeof(l->hash), e);
}

/* The newline that ends the line at the start of the window; NULL with *r 0 at
 * the end of the file, -1 on error. */
static const char *
find_end(struct rowcursor *c, int *r, struct err *e)
{
	size_t seen = 0, got = 1;

	for (;;) {
		size_t have = c->end - c->start;
		const char *nl = NULL;

		if (have > seen)
			nl =
			    memchr(c->buf + c->start + seen, '\n', have - seen);
		if (nl != NULL)
			return nl;
		seen = have;
		if (got == 0)
			break;
		if (more(c, &got, e) == -1) {
			*r = -1;
			return NULL;
		}
	}
	*r = seen == 0 ? 0 : broken(e);
	return NULL;
}

int
rowcursor_next(struct rowcursor *c, struct rowline *l, struct err *e)
{
	int r = 0;
	const char *nl = find_end(c, &r, e);

	if (nl == NULL)
		return r;
	l->line = c->buf + c->start;
	l->len = (size_t)(nl - l->line) + 1;
	l->at = c->at;
	c->start += l->len;
	c->at += l->len;
	return parse_tail(l, e) == -1 ? -1 : 1;
}
