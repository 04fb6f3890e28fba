/* verdict: what the rules say of a statement, and of what it did */
#ifndef AIRLOCK_RULE_VERDICT_H
#define AIRLOCK_RULE_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "rule/reasons.h"
#include "sql/facts.h"

#define VERDICT_MAX 24

/* A reason with the text that fits this statement, and where in it. */
struct finding {
	enum reason reason;
	long position; /* byte offset in the agent's text, -1 */
	char text[400];
};

/* Findings in the order they were made; a code stands once. */
struct verdict {
	struct finding v[VERDICT_MAX];
	size_t n;
};

void verdict_add(struct verdict *v, enum reason r, long position,
    const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The first finding that refuses, or NULL. */
const struct finding *verdict_refusal(const struct verdict *v);
/* The worst of the risk levels found, at least low. */
enum severity verdict_risk(const struct verdict *v);

enum verdict_tool { TOOL_QUERY, TOOL_EXECUTE };

/* Before the server sees it: from the parse tree alone. */
void verdict_ask(enum verdict_tool tool, const struct facts *f,
    struct verdict *v);

/* Adds VACUOUS_WHERE where the condition only asks what the table's definition
 * answers already. */
typedef bool verdict_column(const void *arg, const char *column);
void verdict_not_null(const struct facts *f, verdict_column *is_not_null,
    const void *arg, struct verdict *v);

/* After it ran: from what was measured. */
struct effect_table {
	const char *table;
	uint64_t inserted, updated, deleted, unchanged;
	bool collateral, complete;
	int64_t rows_before; /* -1 unknown */
};
struct effect {
	const struct effect_table *tables;
	size_t ntables;
	bool complete, hidden_ddl;
};
void verdict_effect(const struct facts *f, const struct effect *x,
    struct verdict *v);

#endif
