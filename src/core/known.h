/* known: what the parser said of statements that came before */
#ifndef AIRLOCK_CORE_KNOWN_H
#define AIRLOCK_CORE_KNOWN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "sql/facts.h"
#include "sql/rewrite.h"

/*
 * The facts of a text, and its rewriting by an edit, depend on nothing else, so
 * that the child need not be asked again.  Only what it could read is
 * remembered; the least recently used goes first, and what is remembered takes
 * no more than `bytes`.
 */
struct known;
struct known *known_new(size_t bytes);
void known_free(struct known *k);
/* What is asked; edit NULL: for the facts, else for the rewriting. */
void known_key(struct text *key, const char *sql,
    const struct rewrite_edit *edit);
/* What is found is copied, the caller releases it. */
bool known_find(struct known *k, const struct text *key, struct facts *f,
    struct rewrite_result *r);
/* Takes the key, copies what is not NULL; size is about what that takes.  Large
 * ones are let go. */
void known_add(struct known *k, struct text *key, const struct facts *f,
    const struct rewrite_result *r, size_t size);

#endif
