/* mcp: one agent's connection: JSON-RPC in both eras over lines */
#ifndef AIRLOCK_FRONT_MCP_H
#define AIRLOCK_FRONT_MCP_H

#include <event2/event.h>

#include "base/err.h"
#include "core/gate.h"

/* One listener an agent, "agent-<name>.sock" in the runtime directory. */
struct mcp_server;
int mcp_server_open(struct event_base *base, struct gate *g, struct agent *a,
    struct mcp_server **out, struct err *e) MUST_CHECK;
/* Cancels what is under way and closes every connection. */
void mcp_server_close(struct mcp_server *s);

#endif
