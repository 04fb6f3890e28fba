/* repair: what a crash left at the end of the journal */
#include "record/repair.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* *good is the length of what is whole. */
static int
check(struct chain_reader *r, struct chain_end *c, uint64_t *good,
    struct err *e)
{
	struct chain_line l;
	json_t *rec;
	int got;

	*good = 0;
	while ((got = chain_next(r, &l, e)) == 1) {
		if (!l.whole || memchr(l.s, '\0', l.len) != NULL)
			return 0;
		if (chain_parse(r, &l, &rec, e) == -1)
			return -1;
		got = chain_link(c, r, &l, rec, e);
		json_decref(rec);
		if (got == -1)
			return -1;
		*good = r->at;
	}
	return got;
}

static int
write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t w = write(fd, p, n);

		if (w == -1 && errno == EINTR)
			continue;
		if (w <= 0)
			return -1;
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

/* Copies what stands from `at` on. */
static int
save(int from, uint64_t at, int to)
{
	char buf[16384];
	ssize_t n;

	while ((n = pread(from, buf, sizeof(buf), (off_t)at)) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 || write_all(to, buf, (size_t)n) == -1)
			return -1;
		at += (uint64_t)n;
	}
	return fsync(to);
}

static int
cut(int dirfd, const char *name, uint64_t good, const struct repair *out,
    struct err *e)
{
	int fd = openat(dirfd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int to = openat(dirfd, out->saved,
	    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = 0;

	/* In this order: the bytes are safe before they are taken away. */
	if (fd == -1 || to == -1 || save(fd, good, to) == -1 ||
	    fsync(dirfd) == -1 || ftruncate(fd, (off_t)good) == -1 ||
	    fsync(fd) == -1)
		r = err_sys(e, "cannot move the torn end of 'journal/%s' away",
		    name);
	if (fd != -1)
		close(fd);
	if (to != -1)
		close(to);
	return r;
}

int
repair_file(int dirfd, unsigned number, struct chain_end *c, struct repair *out,
    struct err *e)
{
	struct repair found = { 0 };
	struct chain_reader r;
	uint64_t good = 0;
	struct stat st;
	int result = -1;

	if (chain_open(&r, dirfd, number, 0, e) == -1)
		return -1;
	if (check(&r, c, &good, e) == -1)
		goto out;
	if (fstat(r.fd, &st) == -1) {
		err_sys(e, "cannot read 'journal/%s'", r.name);
		goto out;
	}
	found.size = good;
	found.torn = (uint64_t)st.st_size - good;
	snprintf(found.saved, sizeof(found.saved), "torn-%llu",
	    (unsigned long long)c->seq + 1);
	if (found.torn > 0 && cut(dirfd, r.name, good, &found, e) == -1)
		goto out;
	*out = found;
	result = 0;
out:
	chain_close(&r);
	return result;
}
