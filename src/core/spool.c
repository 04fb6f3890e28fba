/* spool: rows that wait on the disk for the other half of their image */
#include "core/spool.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

#define CELL_NULL UINT32_MAX

struct spool {
	FILE *f;
	struct text row;
};

int
spool_open(int dirfd, struct spool **out, struct err *e)
{
	int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct spool *s;

	if (fd == -1)
		return err_sys(e, "cannot open a temporary file");
	s = mem_new(sizeof(*s));
	s->f = fdopen(fd, "w+");
	if (s->f == NULL) {
		close(fd);
		free(s);
		return err_sys(e, "cannot open a temporary file");
	}
	*out = s;
	return 0;
}

void
spool_close(struct spool *s)
{
	if (s == NULL)
		return;
	fclose(s->f);
	text_release(&s->row);
	free(s);
}

static bool
put(struct spool *s, const void *p, size_t n)
{
	return n == 0 || fwrite(p, n, 1, s->f) == 1;
}

int
spool_add(struct spool *s, const struct rowid *id, const struct value *v,
    size_t n, struct err *e)
{
	uint32_t whole[] = { id->leaf, id->block, id->item }; /* no padding */
	bool ok = put(s, whole, sizeof(whole));

	for (size_t i = 0; ok && i < n; i++) {
		uint32_t len = v[i].p != NULL ? (uint32_t)v[i].len : CELL_NULL;

		ok = put(s, &len, sizeof(len)) &&
		     (v[i].p == NULL || put(s, v[i].p, v[i].len));
	}
	return ok ? 0 : err_sys(e, "cannot write a temporary file");
}

int
spool_rewind(struct spool *s, struct err *e)
{
	if (fflush(s->f) != 0 || fseeko(s->f, 0, SEEK_SET) != 0)
		return err_sys(e, "cannot write a temporary file");
	return 0;
}

/* Appends n bytes of the file to the row's memory. */
static bool
get(struct spool *s, size_t n)
{
	char buf[4096];

	while (n > 0) {
		size_t piece = n < sizeof(buf) ? n : sizeof(buf);

		if (fread(buf, piece, 1, s->f) != 1)
			return false;
		text_addn(&s->row, buf, piece);
		n -= piece;
	}
	return true;
}

int
spool_next(struct spool *s, struct rowid *id, struct value *v, size_t n,
    struct err *e)
{
	uint32_t whole[3];
	size_t at = 0;

	if (fread(whole, sizeof(whole), 1, s->f) != 1)
		return feof(s->f) ? 0
		                  : err_sys(e, "cannot read a temporary file");
	*id = (struct rowid){ whole[0], whole[1], (uint16_t)whole[2] };
	text_reset(&s->row);
	for (size_t i = 0; i < n; i++) {
		uint32_t len;

		if (fread(&len, sizeof(len), 1, s->f) != 1 ||
		    (len != CELL_NULL && !get(s, len)))
			return err_sys(e, "cannot read a temporary file");
		v[i].p = len != CELL_NULL ? "" : NULL;
		v[i].len = len != CELL_NULL ? len : 0;
	}
	/* The memory has stopped moving. */
	for (size_t i = 0; i < n; i++)
		if (v[i].p != NULL) {
			v[i].p = text_str(&s->row) + at;
			at += v[i].len;
		}
	return 1;
}
