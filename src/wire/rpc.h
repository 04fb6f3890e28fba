/* rpc: JSON-RPC 2.0: from a line to a classified message, and answers */
#ifndef AIRLOCK_WIRE_RPC_H
#define AIRLOCK_WIRE_RPC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

enum rpc_code {
	RPC_PARSE = -32700,
	RPC_INVALID = -32600,
	RPC_NO_METHOD = -32601,
	RPC_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	RPC_VERSION = -32022, /* MCP: a revision that is not served */
};

enum rpc_kind {
	RPC_REQUEST,      /* id and method are set */
	RPC_NOTIFICATION, /* method is set, never answered */
	RPC_RESPONSE,     /* to a request of ours; we send none */
	RPC_BATCH,        /* root is an array; see rpc_classify */
	RPC_BAD,          /* answer with rpc_error(id, code, text) */
	RPC_NKINDS
};

struct rpc_message {
	enum rpc_kind kind;
	json_t *root;       /* owned; NULL where it did not parse */
	json_t *id;         /* owned: a string or an integer, or NULL */
	const char *method; /* of root, without NUL characters */
	json_t *params;     /* of root: an object, or NULL */
	enum rpc_code code; /* RPC_BAD */
	char text[160];     /* RPC_BAD: UTF-8 */
};

/*
 * Pure.  Fills *m whatever the line is; rpc_release frees what it holds.
 * Duplicate members are refused.  The NUL character may stand in strings; a
 * byte that is not UTF-8 and half a surrogate pair are read as NUL, so that the
 * one text they stand in can be refused instead of the whole message.  Where a
 * line does not parse its id is scraped if it can be.
 */
void rpc_parse(const char *line, size_t len, struct rpc_message *m);
/* As rpc_parse for one element of a batch; takes a reference of its own. */
void rpc_classify(json_t *j, struct rpc_message *m);
void rpc_release(struct rpc_message *m);

/* Each gives a whole message.  id may be NULL: the member is left out. */
json_t *rpc_error(const json_t *id, enum rpc_code code, const char *text,
    json_t *data_new);
json_t *rpc_result(const json_t *id, json_t *result_new);
/* Appends an answer up to its result, which is to follow, and a brace. */
void rpc_add_answer(struct text *out, const json_t *id);
/* A string; what is not UTF-8 in it becomes U+FFFD. */
json_t *rpc_string(const char *s, size_t n);
/* The member's text, or NULL where it is absent, no string or holds NUL. */
const char *rpc_text(const json_t *object, const char *name);

#endif
