/* tools: the agent's five tools: their definitions, arguments and answers */
#ifndef AIRLOCK_FRONT_TOOLS_H
#define AIRLOCK_FRONT_TOOLS_H

#include <jansson.h>
#include <stdbool.h>

#include "core/gate.h"

struct tool_call;
struct tool_answer {
	bool is_error;
	const char *text; /* lent; a compact JSON object, or the error */
};
typedef void tool_done(void *arg, const struct tool_answer *a);

/* Gives an array of tool definitions; with_titles from 2025-03-26 on
 * (annotations), output schemas from 2025-06-18 on. */
json_t *tools_list(bool annotations, bool titles);
extern const char tools_instructions[];
/*
 * Starts one call.  Returns NULL with ERR_INPUT for an unknown tool (a protocol
 * error); bad arguments are an answer with is_error.  `client` is what the
 * client says about itself, for the record; args may be NULL (then {}).
 * done is never called from inside, and not after tools_cancel.
 */
struct tool_call *tools_call(struct gate *g, struct agent *a,
    const char *client, const char *name, const json_t *args, tool_done *done,
    void *arg, struct err *e);
void tools_cancel(struct tool_call *c);

#endif
