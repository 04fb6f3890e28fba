/* journal_walk: all records, oldest first, with or without proof of the chain
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/chain.h"
#include "record/journal.h"

struct walk {
	bool check, stopped;
	journal_each *each;
	void *arg;
	struct chain_end end;
};

static int
walk_line(struct walk *w, const struct chain_reader *r,
    const struct chain_line *l, struct err *e)
{
	json_t *rec;
	int result;

	if (chain_parse(r, l, &rec, e) == -1)
		return -1;
	result = w->check ? chain_link(&w->end, r, l, rec, e) : 0;
	if (result == 0)
		w->stopped = !w->each(w->arg, rec, l->s, l->len);
	json_decref(rec);
	return result;
}

/* Of the last file a torn end is left out unless it is to be found: the daemon
 * moves it away at its next start. */
static int
walk_file(struct walk *w, int dirfd, unsigned number, bool last, struct err *e)
{
	struct chain_reader r;
	struct chain_line l;
	int got;

	if (chain_open(&r, dirfd, number, 0, e) == -1)
		return -1;
	while ((got = chain_next(&r, &l, e)) == 1) {
		if (!l.whole && last && !w->check)
			break;
		if ((got = walk_line(w, &r, &l, e)) == -1 || w->stopped)
			break;
	}
	chain_close(&r);
	return got == -1 ? -1 : 0;
}

static int
walk_files(struct walk *w, int dirfd, struct err *e)
{
	unsigned *numbers = NULL;
	size_t n = 0;
	int r = 0;

	if (chain_list(dirfd, &numbers, &n, e) == -1)
		return -1;
	for (size_t i = 0; i < n && r == 0 && !w->stopped; i++) {
		if (w->check && numbers[i] != i + 1)
			r = err_set(e, ERR_INPUT,
			    "journal/%08zu.jsonl is missing", i + 1);
		else
			r = walk_file(w, dirfd, numbers[i], i + 1 == n, e);
	}
	free(numbers);
	return r;
}

int
journal_walk(int statefd, bool check, journal_each *each, void *arg,
    struct err *e)
{
	struct walk w = { .check = check, .each = each, .arg = arg };
	int dirfd, r;

	dirfd = openat(statefd, "journal",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dirfd == -1 && errno == ENOENT)
		return 0;
	if (dirfd == -1)
		return err_sys(e, "cannot open 'journal'");
	chain_begin(&w.end);
	r = walk_files(&w, dirfd, e);
	close(dirfd);
	return r;
}
