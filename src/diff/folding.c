/* folding: the rows that stand and those of a new statement become one file */
#include "diff/folding.h"

#include <stdlib.h>

#include "base/mem.h"

#define PIECE_BYTES ((size_t)4 << 20)

/* Passes over the rows that stood and the new ones. */
struct folding {
	struct rowfile *now, *next, *to;
	struct placemap *places;
	struct placemap *went; /* rows unchanged so far, 1: gone on from */
	size_t pass;
	bool reading;
	struct rowcursor rows, others; /* of the pass; beside them, of next */
	struct fold fold;
};

/* Notes for each standing row that goes on where its new row is (offset + 1,
 * as 0 says that it does not). */
static int
link_row(struct folding *f, const struct rowline *l, struct err *e)
{
	uint64_t *at =
	    l->was.leaf == 0 ? NULL : placemap_at(f->places, &l->was, false);

	if (at != NULL && *at != 0)
		return err_set(e, ERR_BUG, "two new rows go on from one row");
	if (at != NULL)
		*at = l->at + 1;
	return 0;
}

static int
write_folded(struct rowfile *to, struct fold *f, const struct rowline *then,
    const struct rowline *now, struct err *e)
{
	enum fold_result result = FOLD_NOTHING;

	if (fold_rows(f, then, now, &result, e) == -1)
		return -1;
	if (result == FOLD_ROW)
		return rowfile_add(to, &f->im, UINT64_MAX, e);
	if (result == FOLD_UNCHANGED)
		rowfile_note_unchanged(to, f->im.table, &f->im.was, &f->im.is);
	return 0;
}

/* The rows that stood, each with what became of it, in their order. */
static int
write_standing(struct folding *f, const struct rowline *old, struct err *e)
{
	uint64_t *at =
	    old->is.leaf == 0 ? NULL : placemap_at(f->places, &old->is, false);
	struct rowline new;
	int r;

	if (at == NULL || *at == 0)
		return rowfile_copy(f->to, old, e);
	if (rowcursor_seek(&f->others, *at - 1, e) == -1 ||
	    (r = rowcursor_next(&f->others, &new, e)) == -1)
		return -1;
	return r == 1 ? write_folded(f->to, &f->fold, old, &new, e)
	              : err_set(e, ERR_BUG, "a new row is gone");
}

/* The rows that were met for the first time. */
static int
write_new(struct folding *f, const struct rowline *l, struct err *e)
{
	if (l->was.leaf != 0 && placemap_at(f->places, &l->was, false))
		return 0;
	return rowfile_copy(f->to, l, e);
}

static bool
has_gone_on(const void *arg, const struct rowid *is)
{
	uint64_t *at =
	    placemap_at((struct placemap *)(uintptr_t)arg, is, false);

	return at != NULL && *at != 0;
}

/* Rows that were unchanged are it no more where the new statement altered or
 * deleted them, or matched them once more (and noted that itself). */
static struct placemap *
map_unchanged(const struct folding *f)
{
	const struct same *same;
	size_t old = rowfile_sames(f->now, &same), new;
	struct placemap *went = placemap_new(old);
	uint64_t *at;

	for (size_t i = 0; i < old; i++)
		placemap_at(went, &same[i].is, true);
	new = rowfile_sames(f->next, &same);
	for (size_t i = 0; i < new; i++)
		if ((at = placemap_at(went, &same[i].was, false)) != NULL)
			*at = 1;
	return went;
}

static int
leave_unchanged(struct folding *f, const struct rowline *l,
    struct err *e UNUSED)
{
	uint64_t *at;

	if (l->was.leaf != 0 &&
	    (at = placemap_at(f->went, &l->was, false)) != NULL)
		*at = 1;
	return 0;
}

typedef int fold_pass(struct folding *f, const struct rowline *l,
    struct err *e);
static const struct {
	bool new; /* over the new rows, not those that stood */
	fold_pass *row;
} passes[] = {
	{ true, link_row },
	{ false, write_standing },
	{ true, write_new },
	{ true, leave_unchanged },
};
#define NPASSES (sizeof(passes) / sizeof(passes[0]))

/* 1 when enough was done for now, 0 when there is no more. */
static int
go_through(struct folding *f, struct err *e)
{
	const struct same *same;
	struct rowline l;
	size_t bytes = 0, n = NPASSES;
	int r;

	if (rowfile_sames(f->now, &same) == 0)
		n--; /* none that could be left */
	while (f->pass < n) {
		if (bytes > PIECE_BYTES)
			return 1;
		if (!f->reading)
			rowcursor_init(&f->rows,
			    passes[f->pass].new ? f->next : f->now);
		f->reading = true;
		if ((r = rowcursor_next(&f->rows, &l, e)) == -1)
			return -1;
		if (r == 0) {
			rowcursor_release(&f->rows);
			f->reading = false;
			f->pass++;
			continue;
		}
		bytes += l.len;
		if (passes[f->pass].row(f, &l, e) == -1)
			return -1;
	}
	return 0;
}

struct folding *
folding_new(struct rowfile *now, struct rowfile *next, struct placemap *places,
    struct rowfile *to)
{
	struct folding *f = mem_new(sizeof(*f));

	f->now = now;
	f->next = next;
	f->places = places;
	f->to = to;
	f->went = map_unchanged(f);
	rowcursor_init(&f->others, next);
	return f;
}

void
folding_free(struct folding *f)
{
	if (f == NULL)
		return;
	rowcursor_release(&f->rows);
	rowcursor_release(&f->others);
	fold_release(&f->fold);
	placemap_free(f->went);
	free(f);
}

int
folding_step(struct folding *f, struct err *e)
{
	int r = go_through(f, e);

	if (r != 0)
		return r;
	rowfile_carry_unchanged(f->to, f->now, NULL, has_gone_on, f->went);
	rowfile_carry_unchanged(f->to, f->next, NULL, NULL, NULL);
	return 0;
}
