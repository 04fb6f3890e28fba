/* cooloff: an agent that keeps being refused is made to wait */
#include "core/cooloff.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "rule/reasons.h"

/* What a statement was refused for, that the next one could do without. */
static const bool counts[REASON_N] = {
	[REASON_MULTIPLE_STATEMENTS] = true,
	[REASON_STATEMENT_TOO_LARGE] = true,
	[REASON_STATEMENT_TOO_COMPLEX] = true,
	[REASON_INVALID_ENCODING] = true,
	[REASON_TRANSACTION_CONTROL] = true,
	[REASON_SESSION_CONTROL] = true,
	[REASON_LOCKING] = true,
	[REASON_COPY] = true,
	[REASON_PROCEDURAL] = true,
	[REASON_SYSTEM] = true,
	[REASON_MAINTENANCE] = true,
	[REASON_SCHEMA_CHANGE] = true,
	[REASON_WRITE_IN_QUERY] = true,
	[REASON_READ_IN_EXECUTE] = true,
	[REASON_ACCESS] = true,
	[REASON_FUNCTION_OUTSIDE] = true,
	[REASON_FUNCTION_UNKNOWN] = true,
	[REASON_NOT_UNDERSTOOD] = true,
	[REASON_NOT_PROVED] = true,
	[REASON_PARAMETERS] = true,
	[REASON_CHANGE_UNKNOWN] = true,
	[REASON_CHANGE_TOO_LARGE] = true,
	[REASON_DIFF_TOO_LARGE] = true,
};

int64_t
cooloff_left(const struct cooloff *c, int64_t now)
{
	return c->until > now ? c->until - now : 0;
}

/* A ring of the size that the rule has now; a reload may have changed it. */
static void
fit(struct cooloff *c, size_t size)
{
	if (c->size == size)
		return;
	free(c->times);
	c->times = mem_array(size, sizeof(*c->times));
	c->size = size;
	c->next = 0;
}

bool
cooloff_count(struct cooloff *c, const struct cooloff_rule *rule,
    const char *code, int64_t now)
{
	enum reason r = reason_by_code(code);
	int64_t oldest;

	if (rule->refusals_max == 0 || r == REASON_N || !counts[r] ||
	    cooloff_left(c, now) > 0)
		return false;
	fit(c, rule->refusals_max);
	c->times[c->next] = now;
	c->next = (c->next + 1) % c->size;
	oldest = c->times[c->next];
	if (oldest == 0 || oldest < now - rule->window_ms)
		return false;
	memset(c->times, 0, c->size * sizeof(*c->times));
	c->until = now + rule->wait_ms;
	return true;
}

void
cooloff_release(struct cooloff *c)
{
	free(c->times);
	memset(c, 0, sizeof(*c));
}
