/* guard: does this peer sit in a terminal of the operator's own? */
#ifndef AIRLOCK_CORE_GUARD_H
#define AIRLOCK_CORE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "wire/peer.h"

enum guard_mode { GUARD_ANCESTRY, GUARD_OFF };
struct guard_options {
	enum guard_mode mode;
	/* Programs that may hold a terminal, NULL-ended, copied; NULL: the
	 * built-in list.  A name, or a path with a slash. */
	char *const *hosts;
};

struct guard;
struct guard *guard_new(const struct guard_options *o);
void guard_free(struct guard *g);

/*
 * A process connected to an agent's socket: its chain of ancestors is recorded
 * and kept while any of it that may be the agent's lives.  False where that
 * could not be done (it has ended, cannot be read, or its uid has too many):
 * the connection must then be closed unread, as its client would be unknown.
 * Its uid counts as an agent's from then on.
 */
bool guard_saw_client(struct guard *g, const struct peer *p);
/* A uid that may open some agent's socket; peers of other uids are not asked.
 */
void guard_add_agent_uid(struct guard *g, uid_t uid);
bool guard_applies_to(const struct guard *g, uid_t uid);

/*
 * 0 where the peer may view and decide.  ERR_DENIED: the text names the rule
 * that denied and the ways out.  When in doubt it denies.  sender_pid is the
 * pid of the request's SCM_CREDENTIALS and must be the peer's.
 */
int guard_check(struct guard *g, const struct peer *p, pid_t sender_pid,
    struct err *e) MUST_CHECK;

#endif
