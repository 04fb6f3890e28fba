/* reasons: every code that a refusal or a risk can carry, in one table */
#include "rule/reasons.h"

#include <strings.h>

const char *const severity_name[SEVERITY_N] = {
	[SEVERITY_NOTE] = "note",
	[SEVERITY_LOW] = "low",
	[SEVERITY_MEDIUM] = "medium",
	[SEVERITY_HIGH] = "high",
	[SEVERITY_REFUSE] = "refuse",
};

const struct reason_row reasons[REASON_N] = {
#define X(code, severity, meaning, advice)                                     \
	[REASON_##code] = { #code, SEVERITY_##severity, meaning, advice },
	REASONS(X)
#undef X
};

enum reason
reason_by_code(const char *code)
{
	for (int i = 0; i < REASON_N; i++)
		if (strcasecmp(code, reasons[i].code) == 0)
			return (enum reason)i;
	return REASON_N;
}
