/* tree: libpg_query's protobuf trees, read by their descriptors, so that a node
 * of any version is walked whether it is known here or not */
#ifndef AIRLOCK_SQL_TREE_H
#define AIRLOCK_SQL_TREE_H

#include <pg_query/pg_query.pb-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Node and List: they hold others and mean nothing. */
bool tree_is_wrapper(const ProtobufCMessageDescriptor *d);
/* What a Node holds; NULL where it holds nothing or is NULL itself. */
ProtobufCMessage *tree_inner(const PgQuery__Node *n);
/* The same if it is of that type, else NULL. */
void *tree_as(const PgQuery__Node *n, const ProtobufCMessageDescriptor *d);

/* Tells each message below m, one level down, Nodes unwrapped; m is NULL for a
 * Node that holds nothing.  Stops at the first answer that is not 0. */
typedef int tree_visit(void *arg, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *field);
int tree_children(const ProtobufCMessage *m, tree_visit *visit, void *arg);

/* A field by its name; the default where the message has no such field. */
bool tree_bool(const ProtobufCMessage *m, const char *field);
const ProtobufCMessage *tree_message(const ProtobufCMessage *m,
    const char *field); /* or NULL; Nodes unwrapped */
/* The name of an enum field's value ("OBJECT_TABLE"), or NULL. */
const char *tree_enum(const ProtobufCMessage *m, const char *field);

/* The last two of a list of String nodes: [schema.]name; both lent. */
void tree_qualified(PgQuery__Node *const *v, size_t n, const char **schema,
    const char **name);

/* The same tree, wherever in a text its parts stand. */
bool tree_equal(const ProtobufCMessage *a, const ProtobufCMessage *b);

#endif
