/* sealing: the digests of a change, made in pieces between other work */
#include "core/run.h"
#include "diff/replay.h"

static void
step_again(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct run *r = arg;

	r->step--;
	run_go(r);
}

enum run_next
run_piece(struct run *r, int rc)
{
	static const struct timeval now = { 0, 0 };

	if (rc == 0)
		return RUN_GO;
	event_assign(r->tick, r->gate->base, -1, 0, step_again, r);
	evtimer_add(r->tick, &now);
	return RUN_WAIT;
}

/* rc: of a piece of the work, as seal_step has it. */
static enum run_next
go_on(struct run *r, int rc, const struct err *e)
{
	if (rc == -1)
		return run_refuse(r, REASON_UNAVAILABLE,
		    "the digest could not be made: %s", e->text);
	return run_piece(r, rc);
}

/* Both at once where nothing is left out of the replay digest. */
enum run_next
run_seal(struct run *r)
{
	struct change *c = r->change;
	json_t *header = change_header(c);
	char *const out[SEAL_NDIGESTS] = {
		[SEAL_DIGEST] = c->digest,
		[SEAL_REPLAY] = replay_leaves_out(header) ? NULL : c->replay,
	};
	struct err e = ERR_INIT;
	int rc = store_seal_step(c->store, header, out, &e);

	json_decref(header);
	return go_on(r, rc, &e);
}

enum run_next
run_seal_replay(struct run *r)
{
	struct change *c = r->change;
	json_t *header = change_header(c);
	struct err e = ERR_INIT;
	int rc = 0;

	if (r->replay == NULL && replay_leaves_out(header))
		r->replay = store_replay(c->store, header);
	if (r->replay != NULL)
		rc = replay_step(r->replay, c->replay, &e);
	json_decref(header);
	return go_on(r, rc, &e);
}
