/* parser_spawn: starts the parser child, and buries it without waiting */
#ifndef AIRLOCK_CORE_PARSER_SPAWN_H
#define AIRLOCK_CORE_PARSER_SPAWN_H

#include <event2/event.h>
#include <stddef.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/err.h"

struct spawned {
	pid_t pid;   /* 0: none */
	int channel; /* our end, non-blocking; the caller's to close */
};

/* Killed children whose end has not been seen yet. */
struct dying;
LIST_HEAD(graves, dying);

/* A sanitizer needs more memory and more of the system than a cell leaves. */
#if defined(__SANITIZE_ADDRESS__)
#define SPAWN_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SPAWN_SANITIZED 1
#endif
#endif
#ifndef SPAWN_SANITIZED
#define SPAWN_SANITIZED 0
#endif

#define SPAWN_CHANNEL 3 /* the child's end */

/* Runs `program --parser` with nothing open but its channel, an empty
 * environment, 1 kB of stack for each byte of a statement, and so much address
 * space (0: no limit; a sanitizer needs more than a limit leaves). */
int spawn_parser(const char *program, size_t statement_bytes_max,
    size_t memory_max, struct spawned *out, struct err *e) MUST_CHECK;
/* Kills it; the loop collects what is left of it.  Accepts pid 0. */
void spawn_end(struct event_base *base, struct spawned *s, struct graves *g);
/* Waits for the killed ones, which takes no time worth a name. */
void spawn_bury_all(struct graves *g);

#endif
