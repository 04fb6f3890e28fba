/* rows: what a statement returns, row by row: the agent's part and the images
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/run.h"

static struct leaf *
leaf_of(struct run *r, uint32_t oid)
{
	size_t lo = 0, hi = r->nleaves;

	if (r->last_leaf < r->nleaves && r->leaves[r->last_leaf].oid == oid)
		return &r->leaves[r->last_leaf];
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (r->leaves[mid].oid < oid)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == r->nleaves || r->leaves[lo].oid != oid) {
		r->leaves =
		    mem_grow(r->leaves, r->nleaves + 1, sizeof(*r->leaves));
		memmove(&r->leaves[lo + 1], &r->leaves[lo],
		    (r->nleaves - lo) * sizeof(*r->leaves));
		memset(&r->leaves[lo], 0, sizeof(r->leaves[lo]));
		r->leaves[lo].oid = oid;
		r->nleaves++;
	}
	r->last_leaf = lo;
	return &r->leaves[lo];
}

/* As the server counts: a row that moves to another partition is a delete there
 * and an insert here. */
static void
count(struct run *r, const struct image *im)
{
	if (im->before != NULL && im->after != NULL &&
	    im->was.leaf == im->is.leaf) {
		leaf_of(r, im->is.leaf)->n[IMAGE_UPDATE]++;
		return;
	}
	if (im->before != NULL)
		leaf_of(r, im->was.leaf)->n[IMAGE_DELETE]++;
	if (im->after != NULL)
		leaf_of(r, im->is.leaf)->n[IMAGE_INSERT]++;
}

/* A row that the statement leaves as it was need not be stored, unless an
 * earlier statement of the change altered it: its version has moved on. */
int
run_take_image(struct run *r, const struct image *im, struct err *e)
{
	struct image filling;

	count(r, im);
	if (image_is_unchanged(im) &&
	    !store_knows(r->change->store, &im->was)) {
		store_note_unchanged(r->change->store, im);
		return 0;
	}
	filling = *im;
	filling.filled = filled_target(r);
	return store_add(r->change->store, &filling, e);
}

static int
take(struct run *r, const PGresult *res, struct err *e)
{
	struct image im;

	if (capture_lay_out(&r->plan, res, e) == -1)
		return -1;
	if (r->plan.nagent > 0) {
		grid_columns(&r->returned, res, r->plan.agent, r->plan.nagent);
		(void)grid_row(&r->returned, res, r->plan.agent);
	}
	if (r->plan.path == CAPTURE_PLAIN)
		return 0;
	if (capture_image(&r->plan, res, &im, e) == -1)
		return -1;
	if (r->plan.path == CAPTURE_CONFLICT)
		return spool_add(r->spool, &im.is, im.after, im.ncols, e);
	return run_take_image(r, &im, e);
}

/* A row that cannot be taken ends the statement; the rest is read and let go.
 * One row too many does not: the counters are to say how many there are. */
void
run_row(void *arg, const PGresult *res)
{
	struct run *r = arg;

	if (r->row_err.code != ERR_NONE)
		return;
	if (take(r, res, &r->row_err) == -1 && r->row_err.code != ERR_LIMIT)
		pool_stop(r->change->login->pool, r->change->link);
}
