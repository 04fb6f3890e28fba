/* journal: what happened, one JSON record a line, chained by SHA-256 */
#include "record/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "record/chain.h"
#include "record/repair.h"
#include "record/reserve.h"

#define DIRECTORY "journal"

/* A file and the number of its first record (that of the next record where
 * the file is still empty). */
struct file {
	unsigned number;
	uint64_t first;
};

/* The last of files is the one that fd appends to; size is its length as far
 * as whole records go. */
struct journal {
	struct journal_options o;
	int dirfd, fd;
	struct file *files;
	size_t nfiles;
	uint64_t size;
	struct chain_end end;
	bool dirty;  /* something is not synced yet */
	bool broken; /* what the file ends with is not known */
	bool low;    /* the reserve is not there */
	struct {     /* where the last page ended: most go on from there */
		uint64_t seq, offset;
		unsigned number;
	} page;
};

/* After a failed sync the kernel may have dropped what it could not write, and
 * says so only once: nothing more can be promised. */
static int
sync_now(struct journal *j, struct err *e)
{
	if (j->dirty && fdatasync(j->fd) == -1) {
		j->broken = true;
		return err_sys(e, "cannot sync the journal");
	}
	j->dirty = false;
	return 0;
}

static int
open_directory(int statefd, bool make, struct err *e)
{
	int fd;

	if (make && mkdirat(statefd, DIRECTORY, 0700) == -1 && errno != EEXIST)
		return err_sys(e, "cannot make '" DIRECTORY "'");
	fd = openat(statefd, DIRECTORY,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return err_sys(e, "cannot open '" DIRECTORY "'");
	if (make && fsync(statefd) == -1) {
		close(fd);
		return err_sys(e, "cannot sync the state directory");
	}
	return fd;
}

static void
add_file(struct journal *j, unsigned number, uint64_t first)
{
	j->files = mem_grow(j->files, j->nfiles + 1, sizeof(*j->files));
	j->files[j->nfiles].number = number;
	j->files[j->nfiles++].first = first;
}

static unsigned
last_number(const struct journal *j)
{
	return j->nfiles > 0 ? j->files[j->nfiles - 1].number : 0;
}

/* A file that is new is only there once its directory has been synced. */
static int
make_file(struct journal *j, int *out, struct err *e)
{
	unsigned number = last_number(j) + 1;
	char name[CHAIN_NAME_SIZE];
	int fd;

	if (number > CHAIN_FILES_MAX)
		return err_set(e, ERR_LIMIT, "the journal has too many files");
	chain_name(name, number);
	fd = openat(j->dirfd, name,
	    O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
	    0600);
	if (fd == -1)
		return err_sys(e, "cannot make '" DIRECTORY "/%s'", name);
	if (fsync(j->dirfd) == -1) {
		err_sys(e, "cannot sync '" DIRECTORY "'");
		unlinkat(j->dirfd, name, 0);
		close(fd);
		return -1;
	}
	*out = fd;
	add_file(j, number, j->end.seq + 1);
	return 0;
}

/* Goes over an older file to learn where it begins and ends. */
static int
skim_file(struct journal *j, unsigned number, struct err *e)
{
	struct text last = { 0 };
	struct chain_reader r;
	struct chain_line l = { 0 };
	uint64_t first = j->end.seq + 1;
	json_t *rec = NULL;
	int got;

	if (chain_open(&r, j->dirfd, number, 0, e) == -1)
		return -1;
	while ((got = chain_next(&r, &l, e)) == 1) {
		text_reset(&last);
		text_addn(&last, l.s, l.len);
	}
	if (got == 0 && last.len > 0) {
		l.s = text_str(&last);
		l.len = last.len;
		got = chain_parse(&r, &l, &rec, e);
	}
	if (rec != NULL)
		chain_advance(&j->end,
		    (uint64_t)json_integer_value(json_object_get(rec, "seq")),
		    text_str(&last), last.len);
	add_file(j, number, first);
	json_decref(rec);
	chain_close(&r);
	text_release(&last);
	return got;
}

static int
load_files(struct journal *j, struct repair *found, struct err *e)
{
	unsigned *numbers = NULL;
	size_t n = 0;
	int r = -1;

	chain_begin(&j->end);
	if (chain_list(j->dirfd, &numbers, &n, e) == -1)
		return -1;
	for (size_t i = 0; i + 1 < n; i++)
		if (skim_file(j, numbers[i], e) == -1)
			goto out;
	if (n == 0) {
		r = make_file(j, &j->fd, e);
		goto out;
	}
	add_file(j, numbers[n - 1], j->end.seq + 1);
	if (repair_file(j->dirfd, numbers[n - 1], &j->end, found, e) == -1)
		goto out;
	j->size = found->size;
	r = 0;
out:
	free(numbers);
	return r;
}

static int
open_last(struct journal *j, struct err *e)
{
	char name[CHAIN_NAME_SIZE];

	if (j->fd != -1)
		return 0;
	j->dirty = true; /* who wrote it may have died before its sync */
	chain_name(name, last_number(j));
	j->fd = openat(j->dirfd, name,
	    O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	if (j->fd == -1)
		return err_sys(e, "cannot open '" DIRECTORY "/%s'", name);
	return 0;
}

static void
try_reserve(struct journal *j)
{
	struct err e = ERR_INIT;
	bool was = j->low;

	j->low = reserve_make(j->dirfd, j->o.reserve_bytes, &e) == -1;
	if (j->low && !was)
		log_warnx("%s", e.text);
}

static int
say_repaired(struct journal *j, const struct repair *found, struct err *e)
{
	char name[CHAIN_NAME_SIZE];

	chain_name(name, last_number(j));
	log_warnx("the journal ended in %llu torn bytes, now in '" DIRECTORY
		  "/%s'",
	    (unsigned long long)found->torn, found->saved);
	return journal_append(j,
	    json_pack("{s:s, s:s, s:I, s:s}", "kind", "repaired", "file", name,
		"bytes", (json_int_t)found->torn, "saved", found->saved),
	    true, e);
}

int
journal_open(int statefd, const struct journal_options *o, struct journal **out,
    struct err *e)
{
	struct repair found = { 0 };
	struct journal *j;

	if (o->record_bytes_max > CHAIN_LINE_MAX)
		return err_set(e, ERR_INPUT,
		    "a journal record cannot be longer than %zu bytes",
		    CHAIN_LINE_MAX);
	j = mem_new(sizeof(*j));
	j->o = *o;
	j->fd = -1;
	if ((j->dirfd = open_directory(statefd, true, e)) == -1)
		goto fail;
	if (load_files(j, &found, e) == -1 || open_last(j, e) == -1)
		goto fail;
	try_reserve(j);
	if (found.torn > 0 && say_repaired(j, &found, e) == -1)
		goto fail;
	*out = j;
	return 0;
fail:
	journal_close(j);
	return -1;
}

void
journal_close(struct journal *j)
{
	struct err e = ERR_INIT;

	if (j == NULL)
		return;
	if (j->fd != -1 && !j->broken && sync_now(j, &e) == -1)
		log_warnx("%s", e.text);
	if (j->fd != -1)
		close(j->fd);
	if (j->dirfd != -1)
		close(j->dirfd);
	free(j->files);
	free(j);
}

/* seq, at, kind and prev lead, so that a line can be read by eye. */
static json_t *
complete(const struct journal *j, json_t *rec)
{
	char at[CLOCK_ISO_SIZE];
	json_t *o = json_object(), *v;
	const char *name;

	clock_iso(at, clock_wall_ms());
	json_object_set_new(o, "seq",
	    json_integer((json_int_t)(j->end.seq + 1)));
	json_object_set_new(o, "at", json_string(at));
	json_object_set(o, "kind", json_object_get(rec, "kind"));
	json_object_set_new(o, "prev", json_string(j->end.hash));
	json_object_foreach (rec, name, v)
		json_object_set(o, name, v);
	return o;
}

/* Takes rec; gives the line without its newline. */
static char *
make_line(const struct journal *j, json_t *rec, struct err *e)
{
	static const char *const ours[] = { "seq", "at", "prev" };
	char *line = NULL;
	json_t *o;

	if (!json_is_string(json_object_get(rec, "kind"))) {
		err_set(e, ERR_BUG, "a journal record has no kind");
		goto out;
	}
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (json_object_get(rec, ours[i]) != NULL) {
			err_set(e, ERR_BUG,
			    "a journal record brings its own "
			    "'%s'",
			    ours[i]);
			goto out;
		}
	o = complete(j, rec);
	line = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (line == NULL)
		err_set(e, ERR_INPUT, "a journal record is not text");
	else if (strlen(line) > j->o.record_bytes_max) {
		err_set(e, ERR_LIMIT,
		    "a journal record of %zu bytes, %zu at most", strlen(line),
		    j->o.record_bytes_max);
		free(line);
		line = NULL;
	}
out:
	json_decref(rec);
	return line;
}

static bool
is_full(int error)
{
	return error == ENOSPC || error == EDQUOT;
}

/* Writes it whole or, where the disk refuses, not at all. */
static int
write_line(struct journal *j, const char *line, size_t n, struct err *e)
{
	ssize_t w;

	do
		w = write(j->fd, line, n);
	while (w == -1 && errno == EINTR);
	if (w == (ssize_t)n)
		return 0;
	if (w != -1)
		errno = ENOSPC; /* what a short write comes from */
	err_sys(e, "cannot write to the journal");
	if (w > 0 && ftruncate(j->fd, (off_t)j->size) == -1) {
		j->broken = true;
		log_warn("cannot take half a journal record back");
	}
	if (w != -1)
		errno = ENOSPC;
	return -1;
}

static void
give_up_reserve(struct journal *j)
{
	if (!j->low)
		log_warnx("the disk is full: the journal goes on in the space "
			  "kept for it; new proposals are refused");
	j->low = true;
	reserve_give_up(j->dirfd);
}

/* The older file is synced first: no record may outlive the ones before it. */
static int
rotate(struct journal *j, struct err *e)
{
	int fd = -1;

	if (sync_now(j, e) == -1)
		return -1;
	if (make_file(j, &fd, e) == -1) {
		if (!is_full(errno) || j->low)
			return -1;
		give_up_reserve(j);
		if (make_file(j, &fd, e) == -1)
			return -1;
	}
	close(j->fd);
	j->fd = fd;
	j->size = 0;
	return 0;
}

static int
append_line(struct journal *j, char *line, struct err *e)
{
	size_t n = strlen(line);

	if (j->size > 0 && j->size + n + 1 > j->o.file_bytes_max &&
	    rotate(j, e) == -1)
		return -1;
	line[n] = '\n'; /* in place of the NUL: one write */
	if (write_line(j, line, n + 1, e) == -1) {
		if (j->broken || j->low || !is_full(errno))
			return -1;
		give_up_reserve(j);
		if (write_line(j, line, n + 1, e) == -1)
			return -1;
	}
	j->size += n + 1;
	j->dirty = true;
	chain_advance(&j->end, j->end.seq + 1, line, n);
	return 0;
}

static int
refuse(struct err *e)
{
	return err_set(e, ERR_SYSTEM,
	    "the journal takes no records since its disk failed");
}

int
journal_append(struct journal *j, json_t *rec, bool sync, struct err *e)
{
	char *line;
	int r;

	if (j->broken) {
		json_decref(rec);
		return refuse(e);
	}
	if ((line = make_line(j, rec, e)) == NULL)
		return -1;
	r = append_line(j, line, e);
	free(line);
	return r == 0 && sync ? sync_now(j, e) : r;
}

int
journal_sync(struct journal *j, struct err *e)
{
	if (j->broken)
		return refuse(e);
	if (sync_now(j, e) == -1)
		return -1;
	if (j->low)
		try_reserve(j);
	return 0;
}

bool
journal_is_low(const struct journal *j)
{
	return j->low;
}

uint64_t
journal_seq(const struct journal *j)
{
	return j->end.seq;
}

/* The file that holds record `seq`. */
static size_t
file_of(const struct journal *j, uint64_t seq)
{
	size_t i = j->nfiles - 1;

	while (i > 0 && j->files[i].first > seq)
		i--;
	return i;
}

/* Opens file i so that record `seq` is the next line. */
static int
seek(struct journal *j, struct chain_reader *r, size_t i, uint64_t seq,
    struct err *e)
{
	bool near = j->page.number == j->files[i].number && j->page.seq == seq;
	struct chain_line l;
	int got = 1;

	if (chain_open(r, j->dirfd, j->files[i].number,
		near ? j->page.offset : 0, e) == -1)
		return -1;
	if (near) {
		r->line = seq - j->files[i].first;
		return 0;
	}
	for (uint64_t at = j->files[i].first; at < seq && got == 1; at++)
		got = chain_next(r, &l, e);
	if (got == 1)
		return 0;
	if (got == 0)
		err_set(e, ERR_INPUT, DIRECTORY "/%s has lost records",
		    r->name);
	chain_close(r);
	return -1;
}

/* Gives at most n records of file i from *seq on; *seq moves on. */
static int
give(struct journal *j, size_t i, uint64_t *seq, size_t *n, journal_each *each,
    void *arg, struct err *e)
{
	struct chain_reader r;
	struct chain_line l;
	json_t *rec = NULL;
	int got = 0;

	if (seek(j, &r, i, *seq, e) == -1)
		return -1;
	while (*n > 0 && (got = chain_next(&r, &l, e)) == 1) {
		if ((got = chain_parse(&r, &l, &rec, e)) == -1)
			break;
		++*seq;
		*n = each(arg, rec, l.s, l.len) ? *n - 1 : 0;
		json_decref(rec);
	}
	j->page.number = j->files[i].number;
	j->page.seq = *seq;
	j->page.offset = r.at;
	chain_close(&r);
	return got;
}

int
journal_page(struct journal *j, uint64_t from, size_t n, journal_each *each,
    void *arg, uint64_t *next, struct err *e)
{
	uint64_t seq = from > 0 ? from : 1;

	while (n > 0 && seq <= j->end.seq) {
		uint64_t was = seq;
		size_t i = file_of(j, seq);

		if (give(j, i, &seq, &n, each, arg, e) == -1)
			return -1;
		if (seq == was)
			return err_set(e, ERR_INPUT,
			    DIRECTORY " has lost record %llu",
			    (unsigned long long)seq);
	}
	*next = seq <= j->end.seq ? seq : 0;
	return 0;
}
