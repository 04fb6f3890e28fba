/* chain: the files of the journal, their lines, and the links between them */
#include "record/chain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define CHUNK_BYTES ((size_t)64 << 10)
#define NAME_DIGITS 8
#define SUFFIX ".jsonl"

void
chain_name(char out[CHAIN_NAME_SIZE], unsigned number)
{
	snprintf(out, CHAIN_NAME_SIZE, "%08u" SUFFIX, number % 100000000u);
}

static unsigned
number_of(const char *name)
{
	if (strspn(name, "0123456789") != NAME_DIGITS ||
	    strcmp(name + NAME_DIGITS, SUFFIX) != 0)
		return 0;
	return (unsigned)strtoul(name, NULL, 10);
}

static int
by_number(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

int
chain_list(int dirfd, unsigned **out, size_t *n, struct err *e)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd != -1 ? fdopendir(fd) : NULL;
	struct dirent *d;

	if (dir == NULL) {
		err_sys(e, "cannot list the journal");
		if (fd != -1)
			close(fd);
		return -1;
	}
	*out = NULL;
	*n = 0;
	while ((d = readdir(dir)) != NULL) {
		unsigned number = number_of(d->d_name);

		if (number == 0)
			continue;
		*out = mem_grow(*out, *n + 1, sizeof(**out));
		(*out)[(*n)++] = number;
	}
	closedir(dir);
	if (*n > 0)
		qsort(*out, *n, sizeof(**out), by_number);
	return 0;
}

int
chain_open(struct chain_reader *r, int dirfd, unsigned number, uint64_t offset,
    struct err *e)
{
	memset(r, 0, sizeof(*r));
	chain_name(r->name, number);
	r->at = offset;
	r->fd = openat(dirfd, r->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (r->fd == -1)
		return err_sys(e, "cannot open 'journal/%s'", r->name);
	return 0;
}

void
chain_close(struct chain_reader *r)
{
	if (r->fd != -1)
		close(r->fd);
	free(r->buf);
	memset(r, 0, sizeof(*r));
	r->fd = -1;
}

static int
more(struct chain_reader *r, size_t *got, struct err *e)
{
	ssize_t n;

	if (r->start > 0) {
		memmove(r->buf, r->buf + r->start, r->end - r->start);
		r->end -= r->start;
		r->start = 0;
	}
	if (r->end > CHAIN_LINE_MAX)
		return err_set(e, ERR_INPUT,
		    "journal/%s line %llu is longer than a record may be",
		    r->name, (unsigned long long)r->line + 1);
	if (r->size - r->end < CHUNK_BYTES) {
		r->size = 2 * r->size + CHUNK_BYTES;
		r->buf = mem_grow(r->buf, r->size, 1);
	}
	do
		n = pread(r->fd, r->buf + r->end, r->size - r->end,
		    (off_t)(r->at + r->end));
	while (n == -1 && errno == EINTR);
	if (n == -1)
		return err_sys(e, "cannot read 'journal/%s'", r->name);
	r->end += (size_t)n;
	*got = (size_t)n;
	return 0;
}

int
chain_next(struct chain_reader *r, struct chain_line *l, struct err *e)
{
	size_t seen = 0, got = 1;
	char *nl = NULL;

	while (nl == NULL && got > 0) {
		size_t have = r->end - r->start;

		if (have > seen)
			nl =
			    memchr(r->buf + r->start + seen, '\n', have - seen);
		seen = have;
		if (nl == NULL && more(r, &got, e) == -1)
			return -1;
	}
	if (nl == NULL && seen == 0)
		return 0;
	l->s = r->buf + r->start;
	l->len = nl != NULL ? (size_t)(nl - l->s) : seen;
	l->at = r->at;
	l->whole = nl != NULL;
	r->start += l->len + l->whole;
	r->at += l->len + l->whole;
	r->line++;
	return 1;
}

void
chain_begin(struct chain_end *c)
{
	c->seq = 0;
	memset(c->hash, '0', sizeof(c->hash) - 1);
	c->hash[sizeof(c->hash) - 1] = '\0';
}

static int
wrong(const struct chain_reader *r, struct err *e, const char *what)
{
	return err_set(e, ERR_INPUT, "journal/%s line %llu: %s", r->name,
	    (unsigned long long)r->line, what);
}

int
chain_parse(const struct chain_reader *r, const struct chain_line *l,
    json_t **rec, struct err *e)
{
	json_t *o;

	if (!l->whole)
		return wrong(r, e, "the record is cut short");
	o = json_loadb(l->s, l->len, JSON_REJECT_DUPLICATES, NULL);
	if (o == NULL)
		return wrong(r, e, "not JSON");
	if (!json_is_integer(json_object_get(o, "seq")) ||
	    !json_is_string(json_object_get(o, "at")) ||
	    !json_is_string(json_object_get(o, "kind")) ||
	    !json_is_string(json_object_get(o, "prev"))) {
		json_decref(o);
		return wrong(r, e, "not a record");
	}
	*rec = o;
	return 0;
}

int
chain_link(struct chain_end *c, const struct chain_reader *r,
    const struct chain_line *l, const json_t *rec, struct err *e)
{
	json_int_t seq = json_integer_value(json_object_get(rec, "seq"));
	const char *prev = json_string_value(json_object_get(rec, "prev"));

	if (seq < 0 || (uint64_t)seq != c->seq + 1)
		return err_set(e, ERR_INPUT,
		    "journal/%s line %llu: record %lld follows record %llu",
		    r->name, (unsigned long long)r->line, (long long)seq,
		    (unsigned long long)c->seq);
	if (strcmp(prev, c->hash) != 0)
		return wrong(r, e,
		    "'prev' is not the SHA-256 of the line before: that line, "
		    "or this one, has been changed");
	chain_advance(c, (uint64_t)seq, l->s, l->len);
	return 0;
}

void
chain_advance(struct chain_end *c, uint64_t seq, const char *line, size_t len)
{
	c->seq = seq;
	digest_hex(c->hash, line, len);
}
