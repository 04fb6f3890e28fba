/* guard_rules: the guard's rules 3 to 5, over chains that were already read */
#ifndef AIRLOCK_CORE_GUARD_RULES_H
#define AIRLOCK_CORE_GUARD_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/proctree.h"

/*
 * The words of the rules.
 *   anchor   going up, the first process that the agent cannot have made into
 *            what it is: pid 1, a root-owned one, or a user's service manager
 *   top      the process just below the anchor
 *   client   some process between a bridge and its anchor; which one is not
 *            knowable, so what is said of it must hold for each
 */
enum guard_rule {
	GUARD_PASS,
	GUARD_PEER,
	GUARD_CHAIN,
	GUARD_TERMINAL,
	GUARD_CLIENT,
	GUARD_FRESH,
	GUARD_NRULES
};
extern const char *const guard_rule_name[GUARD_NRULES];

/* The programs that may hold a terminal where none are configured. */
extern const char *const guard_default_hosts[];

/* A bridge's chain as it was when it connected.  v[0] is the bridge. */
struct client {
	struct chain chain;
	bool lives[CHAIN_DEPTH_MAX]; /* that member or its session does */
	size_t anchor;  /* index; chain.n where the anchor is out of sight */
	uint64_t since; /* start of the oldest that may be the client */
};

/* Fills anchor and since; all of it lives. */
void client_measure(struct client *c, const char *const *hosts);
/* Member i may be the agent's client or something that it started. */
bool client_is_suspect(const struct client *c, size_t i,
    const char *const *hosts);
/* By the file it runs; where that cannot be read, by its own name (comm), which
 * the kernel cuts at 15 bytes.  An entry with a slash is a whole path. */
bool guard_is_host(const struct proc *p, const char *const *hosts);

/* Rule 3, for the chain of a peer. */
int guard_judge_terminal(const struct chain *peer, const char *const *hosts,
    struct err *e) MUST_CHECK;
/* Rules 4 and 5, against one client. */
int guard_judge_client(const struct chain *peer, const struct client *c,
    const char *const *hosts, struct err *e) MUST_CHECK;
/* ERR_DENIED: rule, what was found, the ways out.  Returns -1. */
int guard_deny(struct err *e, enum guard_rule rule, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

#endif
