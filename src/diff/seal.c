/* seal: the digest that binds a decision to what was shown */
#include "diff/seal.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "diff/header.h"

#define ROW DIGEST_SIZE
#define RUN_BYTES ((size_t)SEAL_MEMORY_ROWS * ROW)
#define MERGE_BYTES ((size_t)1 << 20) /* shared by all runs being merged */
#define STEP_ROWS 32768
#define BUCKETS 4096  /* by the first 12 bits */
#define BUCKET_FEW 24 /* so many are sorted in place */

/*
 * Sorted hashes.  A run in the file is read through a window; the last run is
 * the rows still in memory, whole.
 */
struct run {
	uint64_t at;         /* where the file goes on behind the window */
	size_t left;         /* rows in the file from there */
	unsigned char *rows; /* the window */
	size_t have, used;   /* rows in it, and how many are taken */
};

/* Runs by their next row, the smallest first (a binary heap). */
struct merge {
	struct run *runs;
	struct run **heap;
	size_t n;
	unsigned char *windows;
	size_t window; /* rows */
};

/*
 * rows[0..n) are unsorted until they are spilled or merged; fd holds nruns
 * sorted runs of SEAL_MEMORY_ROWS each.
 */
struct seal {
	int dirfd, fd;
	struct digest *d[SEAL_NDIGESTS]; /* NULL: never asked for */
	unsigned char *rows;
	size_t n, size, nruns;
	struct merge *merge; /* NULL between two digests */
	bool wanted[SEAL_NDIGESTS];
};

struct seal *
seal_new(int dirfd)
{
	struct seal *s = mem_new(sizeof(*s));

	s->dirfd = dirfd;
	s->fd = -1;
	return s;
}

static void
end_merge(struct seal *s)
{
	if (s->merge == NULL)
		return;
	free(s->merge->runs);
	free(s->merge->heap);
	free(s->merge->windows);
	free(s->merge);
	s->merge = NULL;
}

void
seal_free(struct seal *s)
{
	if (s == NULL)
		return;
	end_merge(s);
	if (s->fd != -1)
		close(s->fd);
	for (int i = 0; i < SEAL_NDIGESTS; i++)
		digest_free(s->d[i]);
	free(s->rows);
	free(s);
}

static int
by_bytes(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	if (x != y)
		return be64toh(x) < be64toh(y) ? -1 : 1;
	return memcmp(a, b, ROW);
}

static void
insert_in_place(unsigned char *rows, size_t n)
{
	unsigned char row[ROW];

	for (size_t i = 1; i < n; i++) {
		size_t k = i;

		while (
		    k > 0 && by_bytes(rows + (k - 1) * ROW, rows + i * ROW) > 0)
			k--;
		if (k == i)
			continue;
		memcpy(row, rows + i * ROW, ROW);
		memmove(rows + (k + 1) * ROW, rows + k * ROW, (i - k) * ROW);
		memcpy(rows + k * ROW, row, ROW);
	}
}

static size_t
bucket_of(const unsigned char *row)
{
	return (size_t)row[0] << 4 | row[1] >> 4;
}

/* What begins alike together, then each of those: hashes are spread so evenly
 * that few are left to compare, unless somebody chose the rows for it. */
static void
sort_rows(unsigned char *rows, size_t n)
{
	size_t end[BUCKETS] = { 0 }, at = 0;
	unsigned char *from;

	if (n == 0)
		return; /* rows may be NULL */
	from = mem_array(n, ROW);
	memcpy(from, rows, n * ROW);
	for (size_t i = 0; i < n; i++)
		end[bucket_of(from + i * ROW)]++;
	for (size_t b = 0; b < BUCKETS; b++) {
		size_t size = end[b];

		end[b] = at; /* its start, until its rows are there */
		at += size;
	}
	for (size_t i = 0; i < n; i++)
		memcpy(rows + end[bucket_of(from + i * ROW)]++ * ROW,
		    from + i * ROW, ROW);
	free(from);
	at = 0;
	for (size_t b = 0; b < BUCKETS; at = end[b++])
		if (end[b] - at <= BUCKET_FEW)
			insert_in_place(rows + at * ROW, end[b] - at);
		else
			qsort(rows + at * ROW, end[b] - at, ROW, by_bytes);
}

static const char *
tmpdir(void)
{
	const char *dir = getenv("TMPDIR");

	return dir != NULL && *dir == '/' ? dir : "/tmp";
}

/* A file without a name; where the file system has no such thing, one whose
 * name is gone at once. */
static int
open_unnamed(int dirfd)
{
	const char *dir = dirfd == -1 ? tmpdir() : ".";
	unsigned char r[8];
	char hex[2 * sizeof(r) + 1], *name;
	int fd;

	fd = openat(dirfd == -1 ? AT_FDCWD : dirfd, dir,
	    O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd != -1 ||
	    (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	mem_random(r, sizeof(r));
	text_hex(hex, r, sizeof(r));
	name = mem_printf("%s/seal-%s", dir, hex);
	fd = openat(dirfd == -1 ? AT_FDCWD : dirfd, name,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd != -1)
		unlinkat(dirfd == -1 ? AT_FDCWD : dirfd, name, 0);
	free(name);
	return fd;
}

/* Nothing has changed where this fails: the run is written at its place again
 * the next time. */
static int
spill(struct seal *s, struct err *e)
{
	uint64_t at = (uint64_t)s->nruns * RUN_BYTES;
	size_t done = 0;

	if (s->fd == -1 && (s->fd = open_unnamed(s->dirfd)) == -1)
		return err_sys(e, "cannot make a file for row hashes");
	sort_rows(s->rows, s->n);
	while (done < RUN_BYTES) {
		ssize_t w = pwrite(s->fd, s->rows + done, RUN_BYTES - done,
		    (off_t)(at + done));

		if (w == -1 && errno == EINTR)
			continue;
		if (w <= 0)
			return err_sys(e, "cannot write row hashes");
		done += (size_t)w;
	}
	s->nruns++;
	s->n = 0;
	return 0;
}

int
seal_add(struct seal *s, const unsigned char hash[DIGEST_SIZE], struct err *e)
{
	end_merge(s);
	if (s->n == SEAL_MEMORY_ROWS && spill(s, e) == -1)
		return -1;
	if (s->n == s->size) {
		s->size = s->size != 0 ? 2 * s->size : 16;
		s->rows = mem_grow(s->rows, s->size, ROW);
	}
	memcpy(s->rows + s->n * ROW, hash, ROW);
	s->n++;
	return 0;
}

/* Makes the next row of the run stand in its window; *more is false at the
 * run's end. */
static int
fill(struct seal *s, struct run *r, bool *more, struct err *e)
{
	size_t want = r->left < s->merge->window ? r->left : s->merge->window;
	size_t done = 0;

	*more = true;
	if (r->used < r->have)
		return 0;
	*more = want > 0;
	while (done < want * ROW) {
		ssize_t got = pread(s->fd, r->rows + done, want * ROW - done,
		    (off_t)(r->at + done));

		if (got == -1 && errno == EINTR)
			continue;
		if (got == -1)
			return err_sys(e, "cannot read row hashes");
		if (got == 0)
			return err_set(e, ERR_SYSTEM,
			    "the file of row hashes has been cut short");
		done += (size_t)got;
	}
	r->at += done;
	r->left -= want;
	r->have = want;
	r->used = 0;
	return 0;
}

static const unsigned char *
next_row(const struct run *r)
{
	return r->rows + r->used * ROW;
}

static void
sink(struct merge *m, size_t i)
{
	for (;;) {
		size_t least = i, child = 2 * i + 1;
		struct run *r;

		for (size_t c = child; c < m->n && c < child + 2; c++)
			if (by_bytes(next_row(m->heap[c]),
				next_row(m->heap[least])) < 0)
				least = c;
		if (least == i)
			return;
		r = m->heap[i];
		m->heap[i] = m->heap[least];
		m->heap[least] = r;
		i = least;
	}
}

static void
open_runs(struct seal *s, struct merge *m)
{
	for (size_t i = 0; i < s->nruns; i++) {
		m->runs[i].at = (uint64_t)i * RUN_BYTES;
		m->runs[i].left = SEAL_MEMORY_ROWS;
		m->runs[i].rows = m->windows + i * m->window * ROW;
	}
	m->runs[s->nruns].rows = s->rows;
	m->runs[s->nruns].have = s->n;
}

static int
begin_hash(struct seal *s, enum seal_digest i, const json_t *header,
    struct err *e)
{
	static int (*const hash[SEAL_NDIGESTS])(const json_t *header,
	    struct digest *d, struct err *e) = {
		[SEAL_DIGEST] = header_hash,
		[SEAL_REPLAY] = header_hash_replay,
	};

	if (s->d[i] == NULL)
		s->d[i] = digest_new();
	digest_reset(s->d[i]);
	if (hash[i](header, s->d[i], e) == -1)
		return -1;
	digest_u64(s->d[i], (uint64_t)s->nruns * SEAL_MEMORY_ROWS + s->n);
	return 0;
}

static int
begin_merge(struct seal *s, const json_t *header, struct err *e)
{
	struct merge *m;
	bool more;

	for (int i = 0; i < SEAL_NDIGESTS; i++)
		if (s->wanted[i] &&
		    begin_hash(s, (enum seal_digest)i, header, e) == -1)
			return -1;
	sort_rows(s->rows, s->n);
	s->merge = m = mem_new(sizeof(*m));
	m->runs = mem_array(s->nruns + 1, sizeof(*m->runs));
	m->heap = mem_array(s->nruns + 1, sizeof(struct run *));
	m->window = MERGE_BYTES / ROW / (s->nruns + 1) + 1;
	m->windows = mem_array(s->nruns * m->window, ROW);
	open_runs(s, m);
	for (size_t i = 0; i <= s->nruns; i++) {
		if (fill(s, &m->runs[i], &more, e) == -1)
			return -1;
		if (more)
			m->heap[m->n++] = &m->runs[i];
	}
	for (size_t i = m->n; i-- > 0;)
		sink(m, i);
	return 0;
}

/* Feeds at most STEP_ROWS rows, in order, into the digest. */
static int
merge_some(struct seal *s, struct err *e)
{
	struct merge *m = s->merge;

	for (size_t i = 0; i < STEP_ROWS && m->n > 0; i++) {
		struct run *r = m->heap[0];
		bool more;

		for (int k = 0; k < SEAL_NDIGESTS; k++)
			if (s->wanted[k])
				digest_bytes(s->d[k], next_row(r), ROW);
		r->used++;
		if (fill(s, r, &more, e) == -1)
			return -1;
		if (!more)
			m->heap[0] = m->heap[--m->n];
		sink(m, 0);
	}
	return 0;
}

int
seal_step_all(struct seal *s, const json_t *header,
    char *const out[SEAL_NDIGESTS], struct err *e)
{
	unsigned char sum[DIGEST_SIZE];

	for (int i = 0; s->merge == NULL && i < SEAL_NDIGESTS; i++)
		s->wanted[i] = out[i] != NULL;
	if ((s->merge == NULL && begin_merge(s, header, e) == -1) ||
	    merge_some(s, e) == -1) {
		end_merge(s);
		return -1;
	}
	if (s->merge->n > 0)
		return 1;
	end_merge(s);
	for (int i = 0; i < SEAL_NDIGESTS; i++)
		if (s->wanted[i]) {
			digest_end(s->d[i], sum);
			text_hex(out[i], sum, sizeof(sum));
		}
	return 0;
}

int
seal_step(struct seal *s, const json_t *header, char out[DIGEST_HEX_SIZE],
    struct err *e)
{
	char *const one[SEAL_NDIGESTS] = { [SEAL_DIGEST] = out };

	return seal_step_all(s, header, one, e);
}
