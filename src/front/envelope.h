/* envelope: the revisions of MCP, and what each wants around a result */
#ifndef AIRLOCK_FRONT_ENVELOPE_H
#define AIRLOCK_FRONT_ENVELOPE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "wire/rpc.h"

enum era { ERA_LEGACY = 1, ERA_MODERN = 2, ERA_BOTH = 3 };

struct revision {
	const char *name;
	enum era era;
	bool batches;     /* an array of messages is one line */
	bool annotations; /* of tools */
	bool titles;      /* of tools and servers, and output schemas */
	bool structured;  /* structuredContent beside the text */
};
#define REVISIONS 5
extern const struct revision revisions[REVISIONS]; /* oldest first */

/* NULL where it is not served. */
const struct revision *revision_by_name(const char *name);
/* What initialize is answered with: the one asked for, or the newest legacy
 * one, which is also that of a connection that never said. */
const struct revision *revision_agree(const char *asked);

/*
 * Pure.  The revision that a request is to be served by, decided from itself;
 * `agreed` is the connection's, NULL before initialize.  NULL: *refusal is the
 * answer (gives).
 */
const struct revision *envelope_open(const struct rpc_message *m,
    const struct revision *agreed, json_t **refusal);
/* "name/version" of a clientInfo object, cut at a whole character; empty where
 * it names nothing.  It is what a client says, and for records only. */
#define ENVELOPE_CLIENT_SIZE 129
void envelope_client(char out[ENVELOPE_CLIENT_SIZE], const json_t *info);
/* The clientInfo of a modern request, or NULL. */
const json_t *envelope_client_info(const struct rpc_message *m);

/* Results.  Each gives one. */
json_t *envelope_hello(const struct revision *r, const char *instructions);
json_t *envelope_discovery(const char *instructions);
json_t *envelope_tools(const struct revision *r, json_t *tools_new);
/* Of a call that was refused or failed. */
json_t *envelope_failure(const struct revision *r, const char *text);
/* Of one that was not, appended as it is sent: `object` is compact JSON, told
 * as text and, where the revision has that, as structured content. */
void envelope_success(struct text *out, const struct revision *r,
    const char *object);

#endif
