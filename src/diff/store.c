/* store: the file of row images of one change, written as they stream in */
#include "diff/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "diff/fold.h"
#include "diff/folding.h"
#include "diff/net.h"
#include "diff/replay.h"
#include "diff/rowcursor.h"
#include "diff/rowfile.h"

#define ID_PREFIX "chg_"
#define ID_DIGITS 10
#define ROWS "rows.ndjson"
#define ROWS_NEXT "rows.next"     /* what is to be folded in */
#define ROWS_FOLDED "rows.folded" /* what is to be the store */
#define ROWS_NET "rows.net"       /* what the rows come to */

/*
 * now: the rows that stand; next and places: only while folding.  net: what is
 * shown in place of now, where that has been settled and something came of it.
 * It is made anew after each statement and never gone on from: which rows are
 * one is a question to the change as a whole.
 */
struct store {
	char *id;
	int dirfd; /* changes/<id>/ */
	uint64_t bytes_max;
	bool named; /* the directories are on the disk as they are */
	struct rowfile *now, *next, *net;
	struct placemap *places; /* `is` of each row of now */
	struct folding *folding; /* the fold's end, while it is made */
	struct rowfile *folded;  /* what it is written to */
};

/* It becomes a path component. */
static bool
is_id(const char *id)
{
	size_t n = strlen(ID_PREFIX);

	return text_starts_with(id, ID_PREFIX) &&
	       strspn(id + n, "0123456789abcdef") == ID_DIGITS &&
	       id[n + ID_DIGITS] == '\0';
}

int
store_open(int dirfd, const char *id, uint64_t bytes_max, struct store **out,
    struct err *e)
{
	struct rowfile *rows = NULL;
	struct store *s;
	int fd = -1;

	if (!is_id(id))
		return err_set(e, ERR_INPUT, "not the id of a change: '%.40s'",
		    id);
	if (mkdirat(dirfd, id, 0700) == -1)
		return err_sys(e, "cannot make the directory of '%s'", id);
	fd = openat(dirfd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1) {
		err_sys(e, "cannot open the directory of '%s'", id);
		goto fail;
	}
	if (rowfile_open(fd, ROWS, &rows, e) == -1)
		goto fail;
	s = mem_new(sizeof(*s));
	s->id = mem_strdup(id);
	s->dirfd = fd;
	s->bytes_max = bytes_max;
	s->now = rows;
	*out = s;
	return 0;
fail:
	if (fd != -1)
		close(fd);
	unlinkat(dirfd, id, AT_REMOVEDIR);
	return -1;
}

static struct rowfile *
shown(const struct store *s)
{
	return s->net != NULL ? s->net : s->now;
}

static int
open_parent(const struct store *s)
{
	return openat(s->dirfd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void
remove_name(int dirfd, const char *name, int flags)
{
	if (unlinkat(dirfd, name, flags) == -1 && errno != ENOENT)
		log_warn("cannot remove '%s'", name);
}

static void
drop_net(struct store *s)
{
	if (s->net == NULL)
		return;
	rowfile_close(s->net);
	s->net = NULL;
	remove_name(s->dirfd, ROWS_NET, 0);
}

void
store_close(struct store *s, bool remove)
{
	struct err e = ERR_INIT;
	int parent;

	if (s == NULL)
		return;
	store_fold_abort(s);
	if (!remove && (rowfile_flush(s->now, &e) == -1 ||
			   rowfile_flush(shown(s), &e) == -1))
		log_warnx("%s: %s", s->id, e.text);
	rowfile_close(s->now);
	if (remove)
		drop_net(s);
	else
		rowfile_close(s->net);
	if (remove && (parent = open_parent(s)) != -1) {
		remove_name(s->dirfd, ROWS, 0);
		remove_name(parent, s->id, AT_REMOVEDIR);
		close(parent);
	}
	close(s->dirfd);
	free(s->id);
	free(s);
}

int
store_add(struct store *s, const struct image *im, struct err *e)
{
	uint64_t standing;

	if (s->next == NULL) {
		drop_net(s);
		return rowfile_add(s->now, im, s->bytes_max, e);
	}
	standing = rowfile_bytes(s->now);
	return rowfile_add(s->next, im,
	    s->bytes_max > standing ? s->bytes_max - standing : 0, e);
}

uint64_t
store_rows(const struct store *s)
{
	return rowfile_rows(shown(s));
}

uint64_t
store_bytes(const struct store *s)
{
	return rowfile_bytes(shown(s));
}

/* A file is there after a crash only if its directory has been synced too. */
static int
sync_names(struct store *s, struct err *e)
{
	int parent = open_parent(s), r = 0;

	if (parent == -1)
		return err_sys(e, "cannot open the directory of changes");
	if (fsync(s->dirfd) == -1 || fsync(parent) == -1)
		r = err_sys(e, "cannot sync the directory of '%s'", s->id);
	close(parent);
	s->named = r == 0;
	return r;
}

int
store_flush(struct store *s, bool sync, struct err *e)
{
	if (!sync)
		return rowfile_flush(s->now, e) == -1
		           ? -1
		           : rowfile_flush(shown(s), e);
	if (rowfile_sync(s->now, e) == -1 || rowfile_sync(shown(s), e) == -1)
		return -1;
	return s->named ? 0 : sync_names(s, e);
}

int
store_seal_step(struct store *s, const json_t *header,
    char *const out[SEAL_NDIGESTS], struct err *e)
{
	return seal_step_all(rowfile_seal(shown(s)), header, out, e);
}

struct replay *
store_replay(struct store *s, json_t *header)
{
	return replay_new(shown(s), header);
}

size_t
store_counts(const struct store *s, const struct store_count **out)
{
	return rowfile_counts(shown(s), out);
}

int
store_find(struct store *s, uint64_t n, uint64_t *offset, struct err *e)
{
	return rowfile_find(shown(s), n, offset, e);
}

int
store_read(struct store *s, uint64_t offset, store_row *row, void *arg,
    uint64_t *next, struct err *e)
{
	struct rowcursor c;
	struct rowline l;
	int r;

	rowcursor_init(&c, shown(s));
	if ((r = rowcursor_seek(&c, offset, e)) == 0) {
		while ((r = rowcursor_next(&c, &l, e)) == 1)
			if (!row(arg, l.line, l.json_len))
				break;
	}
	if (r != -1)
		*next = c.at;
	rowcursor_release(&c);
	return r == -1 ? -1 : 0;
}

/* Remembers where each row that stands has ended up. */
static int
map_places(struct store *s, struct err *e)
{
	struct rowcursor c;
	struct rowline l;
	int r;

	rowcursor_init(&c, s->now);
	while ((r = rowcursor_next(&c, &l, e)) == 1)
		if (l.is.leaf != 0)
			placemap_at(s->places, &l.is, true);
	rowcursor_release(&c);
	return r;
}

int
store_fold_begin(struct store *s, uint64_t rows_max, struct err *e)
{
	if (s->next != NULL)
		return err_set(e, ERR_BUG, "a fold is open");
	if (rowfile_rows(s->now) > rows_max)
		return err_set(e, ERR_LIMIT,
		    "the change holds %llu rows, and a statement can be added "
		    "to %llu at most",
		    (unsigned long long)rowfile_rows(s->now),
		    (unsigned long long)rows_max);
	if (rowfile_open(s->dirfd, ROWS_NEXT, &s->next, e) == -1)
		return -1;
	s->places = placemap_new(rowfile_rows(s->now));
	if (map_places(s, e) == -1) {
		store_fold_abort(s);
		return -1;
	}
	return 0;
}

static void
drop_folded(struct store *s, struct rowfile *to)
{
	if (to == NULL)
		return;
	rowfile_close(to);
	remove_name(s->dirfd, ROWS_FOLDED, 0);
}

static void
drop_folding(struct store *s)
{
	folding_free(s->folding);
	s->folding = NULL;
	drop_folded(s, s->folded);
	s->folded = NULL;
}

void
store_fold_abort(struct store *s)
{
	drop_folding(s);
	if (s->next == NULL)
		return;
	rowfile_close(s->next);
	s->next = NULL;
	placemap_free(s->places);
	s->places = NULL;
	remove_name(s->dirfd, ROWS_NEXT, 0);
}

void
store_note_unchanged(struct store *s, const struct image *im)
{
	if (s->next == NULL)
		drop_net(s);
	rowfile_note_unchanged(s->next != NULL ? s->next : s->now, im->table,
	    &im->was, &im->is);
}

bool
store_knows(const struct store *s, const struct rowid *was)
{
	return s->places != NULL && was->leaf != 0 &&
	       placemap_at(s->places, was, false) != NULL;
}

/* Makes a file that was written beside the rows the rows. */
static int
replace(struct store *s, struct rowfile *to, struct err *e)
{
	if (rowfile_flush(to, e) == -1)
		return -1;
	if (renameat(s->dirfd, ROWS_FOLDED, s->dirfd, ROWS) == -1)
		return err_sys(e, "cannot rename the folded rows");
	rowfile_close(s->now);
	s->now = to;
	s->named = false;
	drop_net(s);
	return 0;
}

static int
write_others(struct store *s, struct rowfile *to, const char *table,
    struct err *e)
{
	struct text prefix = { 0 };
	struct rowcursor c;
	struct rowline l;
	int r;

	text_add(&prefix, "{\"table\":");
	text_add_json(&prefix, table, strlen(table));
	text_addc(&prefix, ',');
	rowcursor_init(&c, s->now);
	while ((r = rowcursor_next(&c, &l, e)) == 1)
		if ((l.len < prefix.len ||
			memcmp(l.line, prefix.s, prefix.len) != 0) &&
		    rowfile_copy(to, &l, e) == -1) {
			r = -1;
			break;
		}
	rowcursor_release(&c);
	text_release(&prefix);
	return r;
}

static bool
knows_table(const struct store *s, const char *table)
{
	const struct store_count *c;
	size_t n = rowfile_counts(s->now, &c);

	for (size_t i = 0; i < n; i++)
		if (strcmp(c[i].table, table) == 0)
			return true;
	return false;
}

int
store_forget(struct store *s, const char *table, struct err *e)
{
	struct rowfile *to = NULL;

	if (s->next != NULL)
		return err_set(e, ERR_BUG, "a fold is open");
	if (!knows_table(s, table))
		return 0;
	if (rowfile_open(s->dirfd, ROWS_FOLDED, &to, e) == -1 ||
	    write_others(s, to, table, e) == -1) {
		drop_folded(s, to);
		return -1;
	}
	rowfile_carry_unchanged(to, s->now, table, NULL, NULL);
	if (replace(s, to, e) == -1) {
		drop_folded(s, to);
		return -1;
	}
	return 0;
}

int
store_settle(struct store *s, store_flag *collateral, const void *arg,
    struct err *e)
{
	struct net *n = NULL;
	int r;

	if (s->next != NULL)
		return err_set(e, ERR_BUG, "a fold is open");
	drop_net(s);
	if ((r = net_find(s->now, collateral, arg, &n, e)) != 1)
		return r;
	if (rowfile_open(s->dirfd, ROWS_NET, &s->net, e) == -1 ||
	    net_write(n, s->net, e) == -1) {
		net_free(n);
		drop_net(s);
		return -1;
	}
	rowfile_carry_unchanged(s->net, s->now, NULL, NULL, NULL);
	s->named = false;
	net_free(n);
	return 0;
}

int
store_fold_step(struct store *s, struct err *e)
{
	int r = -1;

	if (s->next == NULL)
		return err_set(e, ERR_BUG, "no fold is open");
	if (s->folding == NULL) {
		if (rowfile_open(s->dirfd, ROWS_FOLDED, &s->folded, e) == -1)
			goto fail;
		s->folding = folding_new(s->now, s->next, s->places, s->folded);
	}
	if ((r = folding_step(s->folding, e)) == 1)
		return 1;
	if (r == -1 || (r = replace(s, s->folded, e)) == -1)
		goto fail;
	s->folded = NULL; /* it is s->now */
fail:
	store_fold_abort(s);
	return r;
}
