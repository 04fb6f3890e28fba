/* verbs: what airlockd answers to each verb of the control channel */
#ifndef AIRLOCK_FRONT_VERBS_H
#define AIRLOCK_FRONT_VERBS_H

#include <jansson.h>
#include <stdbool.h>

#include "core/gate.h"
#include "wire/ctl.h"
#include "wire/lines.h"

/* A request that may be answered; all of it is lent for the call, but `out`
 * until the verb has ended or is dropped. */
struct verb_ask {
	struct gate *gate;
	struct lines *out;
	const struct operator_peer *who;
	const json_t *args;
	bool bare; /* status: the health part only */
};

/* A verb under way: a stream that is stepped, or a decision that is waited
 * for. */
struct verb;
typedef void verb_done(void *arg);

/* NULL: it is answered.  Otherwise a stream (verb_is_stream), or `done` is
 * called once from the loop when the answer is sent and the verb is freed. */
struct verb *verb_start(enum ctl_verb v, const struct verb_ask *a,
    verb_done *done, void *arg);
bool verb_is_stream(const struct verb *v);
/* Sends a piece of a stream, no more than `out` will take; to be called again
 * until it gives false: then all is sent and the verb is freed. */
bool verb_step(struct verb *v);
/* The peer is gone: a stream is freed, a decision runs on unheard. */
void verb_drop(struct verb *v);

/* {"ok":false,...} */
void verb_refuse(struct lines *out, enum ctl_exit code, const char *word,
    const char *fmt, ...) PRINTF_LIKE(4, 5);

#endif
