/* rowfile: one file of row images, appended to and read from where one likes */
#include "diff/rowfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "diff/beside.h"
#include "diff/form.h"
#include "diff/rowcursor.h"
#include "diff/unpack.h"

#define BUFFER_BYTES ((size_t)64 << 10)
#define BUFFER_KEPT ((size_t)1 << 20) /* a larger one is given back */
#define INDEX_ROWS 1024

struct rowfile {
	int fd;
	struct text buf;  /* what follows `flushed` */
	uint64_t flushed; /* bytes of whole rows in the file */
	uint64_t rows;
	uint64_t *index; /* where row 0, 1024, 2048 ... begins */
	size_t nindex, index_size;
	struct store_count *counts;
	size_t ncounts, last; /* the count used last, most often the next */
	uint64_t last_shape;  /* of the image that it was of, or 0 */
	struct same *sames;
	size_t nsames, sames_size;
	struct digest *d;
	struct form form; /* of the last row added */
	struct seal *seal;
	struct beside beside;
	int dirfd;
	struct unpacked row; /* the one being copied */
};

int
rowfile_open(int dirfd, const char *name, struct rowfile **out, struct err *e)
{
	int fd = openat(dirfd, name,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct rowfile *f;

	if (fd == -1)
		return err_sys(e, "cannot make '%s'", name);
	f = mem_new(sizeof(*f));
	f->fd = fd;
	f->d = digest_new();
	f->seal = seal_new(dirfd);
	f->dirfd = dirfd;
	*out = f;
	return 0;
}

void
rowfile_close(struct rowfile *f)
{
	if (f == NULL)
		return;
	close(f->fd);
	text_release(&f->buf);
	free(f->index);
	for (size_t i = 0; i < f->ncounts; i++)
		free(f->counts[i].table);
	free(f->counts);
	free(f->sames);
	digest_free(f->d);
	form_release(&f->form);
	seal_free(f->seal);
	beside_release(&f->beside);
	unpack_release(&f->row);
	free(f);
}

static struct store_count *
count_of(struct rowfile *f, const char *table)
{
	size_t i = f->last;

	f->last_shape = 0;
	if (i < f->ncounts && strcmp(f->counts[i].table, table) == 0)
		return &f->counts[i];
	for (i = 0; i < f->ncounts; i++)
		if (strcmp(f->counts[i].table, table) == 0)
			break;
	if (i == f->ncounts) {
		f->counts =
		    mem_grow(f->counts, ++f->ncounts, sizeof(*f->counts));
		memset(&f->counts[i], 0, sizeof(f->counts[i]));
		f->counts[i].table = mem_strdup(table);
	}
	f->last = i;
	return &f->counts[i];
}

static void
count_row(struct rowfile *f, const char *table, uint64_t shape,
    enum image_op op, bool collateral)
{
	struct store_count *c = shape != 0 && shape == f->last_shape
	                            ? &f->counts[f->last]
	                            : count_of(f, table);

	f->last_shape = shape;
	c->n[op]++;
	c->collateral += collateral;
}

/* The row appended to the buffer behind `before` bytes is here to stay. */
static void
keep(struct rowfile *f, size_t before)
{
	if (f->rows % INDEX_ROWS == 0) {
		if (f->nindex == f->index_size) {
			f->index_size =
			    f->index_size != 0 ? 2 * f->index_size : 4;
			f->index = mem_grow(f->index, f->index_size,
			    sizeof(*f->index));
		}
		f->index[f->nindex++] = f->flushed + before;
	}
	f->rows++;
}

static void
undo(struct rowfile *f, size_t before)
{
	f->buf.len = before;
	if (f->buf.s != NULL)
		f->buf.s[before] = '\0';
}

static char *
add_rowid(char *p, const struct rowid *r)
{
	p = rowid_put(p, r);
	*p++ = ' ';
	return p;
}

#define TAIL_MAX (2 * ROWID_SIZE + DIGEST_HEX_SIZE + 8)

static void
add_tail(struct rowfile *f, const struct image *im,
    const unsigned char hash[DIGEST_SIZE])
{
	char tail[TAIL_MAX], *p = tail;

	*p++ = '\t';
	p = add_rowid(p, &im->was);
	p = add_rowid(p, &im->is);
	text_hex(p, hash, DIGEST_SIZE);
	p += DIGEST_HEX_SIZE - 1;
	*p++ = '\n';
	text_addn(&f->buf, tail, (size_t)(p - tail));
}

/* Nobody could be shown it, nor what comes behind it. */
static int
too_wide(const struct image *im, size_t line, struct err *e)
{
	return err_set(e, ERR_LIMIT,
	    "a row of %.128s takes %zu bytes written down, before and after, "
	    "and %zu can be shown",
	    im->table, line, STORE_LINE_MAX);
}

int
rowfile_add(struct rowfile *f, const struct image *im, uint64_t bytes_max,
    struct err *e)
{
	unsigned char hash[DIGEST_SIZE];
	size_t before, line;

	if (f->buf.len >= BUFFER_BYTES && rowfile_flush(f, e) == -1)
		return -1;
	before = f->buf.len;
	image_hash(im, &f->form, f->d, hash);
	image_json(im, &f->form, &f->buf);
	line = f->buf.len - before;
	add_tail(f, im, hash);
	if (line > STORE_LINE_MAX || rowfile_bytes(f) > bytes_max) {
		undo(f, before);
		return line > STORE_LINE_MAX
		           ? too_wide(im, line, e)
		           : err_set(e, ERR_LIMIT,
				 "the rows changed take more than %llu bytes "
				 "(diff_bytes_max)",
				 (unsigned long long)bytes_max);
	}
	if (seal_add(f->seal, hash, e) == -1) {
		undo(f, before);
		return -1;
	}
	beside_add(&f->beside, im, f->rows, hash, &f->form, f->d, f->dirfd);
	keep(f, before);
	count_row(f, im->table, im->shape, im->op, im->collateral);
	return 0;
}

void
rowfile_note_unchanged(struct rowfile *f, const char *table,
    const struct rowid *was, const struct rowid *is)
{
	struct store_count *c = count_of(f, table);

	c->unchanged++;
	if (f->nsames == SAMES_MAX)
		return;
	if (f->nsames == f->sames_size) {
		f->sames_size = f->sames_size != 0 ? 2 * f->sames_size : 16;
		f->sames = mem_grow(f->sames, f->sames_size, sizeof(*f->sames));
	}
	f->sames[f->nsames].was = *was;
	f->sames[f->nsames].is = *is;
	f->sames[f->nsames++].count = (uint32_t)(c - f->counts);
}

size_t
rowfile_sames(const struct rowfile *f, const struct same **out)
{
	*out = f->sames;
	return f->nsames;
}

void
rowfile_carry_unchanged(struct rowfile *f, const struct rowfile *from,
    const char *but, rowfile_gone *gone, const void *arg)
{
	for (size_t i = 0; i < from->ncounts; i++) {
		const struct store_count *c = &from->counts[i];
		uint64_t known = 0;

		if (c->unchanged == 0 ||
		    (but != NULL && strcmp(c->table, but) == 0))
			continue;
		for (size_t k = 0; k < from->nsames; k++) {
			const struct same *s = &from->sames[k];

			if (s->count != i)
				continue;
			known++;
			if (gone == NULL || !gone(arg, &s->is))
				rowfile_note_unchanged(f, c->table, &s->was,
				    &s->is);
		}
		if (c->unchanged > known)
			count_of(f, c->table)->unchanged +=
			    c->unchanged - known;
	}
}

int
rowfile_copy(struct rowfile *f, const struct rowline *l, struct err *e)
{
	size_t before;

	if (f->buf.len >= BUFFER_BYTES && rowfile_flush(f, e) == -1)
		return -1;
	if (unpack_head(&f->row, l, e) == -1 ||
	    seal_add(f->seal, l->hash, e) == -1)
		return -1;
	beside_give_up(&f->beside);
	before = f->buf.len;
	text_addn(&f->buf, l->line, l->len);
	keep(f, before);
	count_row(f, f->row.table, 0, f->row.op, f->row.collateral);
	return 0;
}

int
rowfile_flush(struct rowfile *f, struct err *e)
{
	size_t done = 0;

	while (done < f->buf.len) {
		ssize_t w = pwrite(f->fd, f->buf.s + done, f->buf.len - done,
		    (off_t)(f->flushed + done));

		if (w == -1 && errno == EINTR)
			continue;
		if (w <= 0) {
			err_sys(e, "cannot write the rows of a change");
			/* Gives back what a full disk had taken; the length
			 * that counts is `flushed`. */
			if (ftruncate(f->fd, (off_t)f->flushed) == -1)
				return -1;
			return -1;
		}
		done += (size_t)w;
	}
	f->flushed += done;
	if (f->buf.size > BUFFER_KEPT)
		text_release(&f->buf);
	else
		text_reset(&f->buf);
	return 0;
}

int
rowfile_sync(struct rowfile *f, struct err *e)
{
	if (rowfile_flush(f, e) == -1)
		return -1;
	if (fdatasync(f->fd) == -1)
		return err_sys(e, "cannot sync the rows of a change");
	return 0;
}

int
rowfile_read(struct rowfile *f, uint64_t offset, void *p, size_t n, size_t *got,
    struct err *e)
{
	ssize_t r;

	if (f->buf.len > 0 && rowfile_flush(f, e) == -1)
		return -1;
	if (offset >= f->flushed) {
		*got = 0;
		return 0;
	}
	if (n > f->flushed - offset)
		n = (size_t)(f->flushed - offset);
	do
		r = pread(f->fd, p, n, (off_t)offset);
	while (r == -1 && errno == EINTR);
	if (r == -1)
		return err_sys(e, "cannot read the rows of a change");
	if (r == 0)
		return err_set(e, ERR_SYSTEM,
		    "the rows of a change have been cut short");
	*got = (size_t)r;
	return 0;
}

uint64_t
rowfile_rows(const struct rowfile *f)
{
	return f->rows;
}

uint64_t
rowfile_bytes(const struct rowfile *f)
{
	return f->flushed + f->buf.len;
}

struct seal *
rowfile_seal(struct rowfile *f)
{
	return f->seal;
}

struct seal *
rowfile_seal_replay(struct rowfile *f, const json_t *header)
{
	return beside_seal(&f->beside, header);
}

size_t
rowfile_counts(const struct rowfile *f, const struct store_count **out)
{
	*out = f->counts;
	return f->ncounts;
}

int
rowfile_find(struct rowfile *f, uint64_t n, uint64_t *offset, struct err *e)
{
	struct rowcursor c;
	struct rowline l;
	int r;

	if (n >= f->rows) {
		*offset = rowfile_bytes(f);
		return 0;
	}
	rowcursor_init(&c, f);
	r = rowcursor_seek(&c, f->index[n / INDEX_ROWS], e);
	for (uint64_t i = n % INDEX_ROWS; r == 0 && i > 0; i--)
		r = rowcursor_next(&c, &l, e) == 1 ? 0 : -1;
	if (r == 0)
		*offset = c.at;
	rowcursor_release(&c);
	return r;
}
