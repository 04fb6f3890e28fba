/* gate: owns the links, the changes, the journal and the agents */
#ifndef AIRLOCK_CORE_GATE_H
#define AIRLOCK_CORE_GATE_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "core/cooloff.h"
#include "core/options.h"
#include "record/journal.h"

struct gate;
struct reply;
struct change;

/* An agent as configured; identity is the socket a call came by. */
struct agent {
	const struct agent_options *o;
	int calls; /* under way */
	struct cooloff cooloff;
	void *links; /* core/gate's own */
};

/* Who decides, from the kernel's peer credentials. */
struct operator_peer {
	const char *name; /* lent */
	uid_t uid;
	pid_t pid;
	enum role role;
};

/* o is lent until gate_free.  Recovers what the journal left open, then begins
 * to connect; the database may be down. */
int gate_new(struct event_base *base, const struct gate_options *o,
    struct gate **out, struct err *e) MUST_CHECK;
/* Rolls back what is held (journaled as "shutdown"), then calls done. */
void gate_stop(struct gate *g, void (*done)(void *arg), void *arg);
void gate_free(struct gate *g);

struct event_base *gate_base(const struct gate *g);
const struct gate_options *gate_get_options(const struct gate *g);
struct agent *gate_agent(struct gate *g, const char *name); /* or NULL */
struct guard *gate_guard(struct gate *g);
struct journal *gate_journal(struct gate *g);
/* Tells in *reply, and gives true, where the agent has to wait. */
bool gate_cools_off(const struct agent *a, struct reply *reply);
/* A refusal was given: the agent may have to wait from now on. */
void gate_refused(struct gate *g, struct agent *a, const char *code);
/* Appends a record (takes); false, after a log line, where it could not. */
bool gate_record(struct gate *g, json_t *rec, bool sync);

/* Each gives a new object or array. */
json_t *gate_health(
    const struct gate *g); /* {"daemon":"up","database":"up|down"} */
json_t *gate_status(
    const struct gate *g); /* health, versions, links, limits, warnings */
json_t *gate_agents(
    const struct gate *g); /* [{name, access, calls, pending}] */
/* change_header of each change that is held or in doubt, oldest first; of one
 * in doubt since an earlier run, what the journal has of it. */
json_t *gate_pending(const struct gate *g);
/* That of one in doubt since an earlier run; NULL where there is none. */
json_t *gate_doubted(const struct gate *g, const char *id);
/* A change of this run, in any state; NULL where there is none. */
struct change *gate_change(struct gate *g, const char *id);
/* The end of a change of an earlier run, as change_status would give it, from
 * the journal; NULL where there is none. */
json_t *gate_ended(struct gate *g, const char *id, const char **agent);

#endif
