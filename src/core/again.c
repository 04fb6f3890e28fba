/* again: a statement whose splice was made from a definition that has changed
 * is taken back and run anew */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/run.h"

static void
forget_plan(struct run *r)
{
	struct agent_logins *l = r->agent->links;

	catalog_release(l->writer->catalog, r->relation);
	r->relation = NULL;
	json_decref(r->filled);
	r->filled = NULL;
	r->filled_ready = false;
	capture_release(&r->plan);
	rewrite_result_release(&r->rewrite);
	memset(&r->rewrite, 0, sizeof(r->rewrite));
	grid_release(&r->returned);
	reply_release(&r->reply);
	memset(&r->reply, 0, sizeof(r->reply));
	memset(&r->row_err, 0, sizeof(r->row_err));
	r->nleaves = 0;
}

static void
taken_back(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct run *r = arg;
	struct err e = ERR_INIT;
	struct counts now = { 0 };

	r->in_batch = false;
	if (batch_is_lost(b)) {
		(void)run_link_failed(r, batch_err(b), true);
		return;
	}
	if (!batch_is_ok(b) ||
	    (r->adding && counts_read(b, 2, &now, &e) == -1)) {
		(void)run_refuse(r, REASON_UNAVAILABLE,
		    "the statement could not be taken back to be run anew");
		return;
	}
	r->executed = r->executed && !r->adding; /* no savepoint is left */
	if (r->adding) { /* rolled-back rows stay counted */
		counts_put_back(r->change, &now);
		store_fold_abort(r->change->store);
	}
	forget_plan(r);
	run_from_catalog(r);
}

void
run_again(struct run *r)
{
	struct batch *b = batch_new();

	r->again = true;
	run_look_cancel(r);
	if (r->adding) {
		batch_add(b, "ROLLBACK TO SAVEPOINT airlock_s", 0, NULL);
		batch_add(b, "RELEASE SAVEPOINT airlock_s", 0, NULL);
		(void)counts_ask(b, r->change);
	} else {
		batch_add(b, "ROLLBACK", 0, NULL);
	}
	r->in_batch = true;
	link_run(r->change->link, b, taken_back, r);
}

static void
blamed(void *arg, const struct err *e)
{
	struct run *r = arg;
	struct reply reply = r->reply;

	if (e->code == ERR_UNFIT) {
		run_again(r);
		return;
	}
	memset(&r->reply, 0, sizeof(r->reply));
	(void)run_reply(r, &reply);
}

/* Our own text may name a column that is no more: the agent is to be told of
 * its statement, not of that. */
enum run_next
run_blame_splice(struct run *r)
{
	catalog_verify(r->change->login->catalog, r->relation, blamed, r);
	return RUN_WAIT;
}
