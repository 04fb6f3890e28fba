/* cooloff: an agent that keeps being refused is made to wait */
#ifndef AIRLOCK_CORE_COOLOFF_H
#define AIRLOCK_CORE_COOLOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Refusals of what an agent asked, by the times when they were given; all zero
 * is none.  When refusals_max of them lie within refusals_window, the agent's
 * statements are refused for cool_off, and counting begins anew: what is
 * refused meanwhile neither counts nor makes it longer.  Nothing that is let
 * through takes a refusal back, else a harmless read behind each attempt would.
 * Each agent has its own, so that none is made to wait for another.
 */
struct cooloff {
	int64_t *times; /* a ring */
	size_t size, next;
	int64_t until;
};

struct cooloff_rule {
	size_t refusals_max; /* 0: never */
	int64_t window_ms, wait_ms;
};

/* Times are of CLOCK_BOOTTIME: nobody sets it. */
/* Milliseconds that are left, 0 where it does not wait. */
int64_t cooloff_left(const struct cooloff *c, int64_t now);
/* Counts a refusal by its code, if it is one that says what the statement was:
 * not that the server or Airlock was busy.  True where the wait begins. */
bool cooloff_count(struct cooloff *c, const struct cooloff_rule *rule,
    const char *code, int64_t now);
void cooloff_release(struct cooloff *c);

#endif
