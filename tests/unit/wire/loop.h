/* loop: for tests: runs an event loop until something is so, never for long */
#ifndef AIRLOCK_TESTS_LOOP_H
#define AIRLOCK_TESTS_LOOP_H

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

#define LOOP_PATIENCE_S 30 /* a test that hangs fails */

static inline void
loop_gave_up(evutil_socket_t s UNUSED, short what UNUSED, void *arg)
{
	fprintf(stderr, "waited in vain for: %s\n", (const char *)arg);
	abort();
}

/* LOOP_UNTIL(base, cond): turns the loop until cond is true. */
#define LOOP_UNTIL(base, cond)                                                 \
	do {                                                                   \
		static char said[] = #cond;                                    \
		struct timeval in = { LOOP_PATIENCE_S, 0 };                    \
		struct event *ev = evtimer_new(base, loop_gave_up, said);      \
                                                                               \
		evtimer_add(ev, &in);                                          \
		while (!(cond))                                                \
			event_base_loop(base, EVLOOP_ONCE);                    \
		event_free(ev);                                                \
	} while (0)
/* All that is ready now, and no waiting. */
#define LOOP_SETTLE(base)                                                      \
	do {                                                                   \
		for (int turn_ = 0; turn_ < 20; turn_++)                       \
			event_base_loop(base, EVLOOP_NONBLOCK);                \
	} while (0)

#endif
