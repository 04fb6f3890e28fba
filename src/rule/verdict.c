/* verdict: what the rules say of a statement, and of what it did */
#include "rule/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rule/functions.h"

#define ROWS_HIGH 1000
#define ROWS_MEDIUM 100
#define SHARE_MIN 20

void
verdict_add(struct verdict *v, enum reason r, long position, const char *fmt,
    ...)
{
	struct finding *f;
	va_list ap;

	for (size_t i = 0; i < v->n; i++)
		if (v->v[i].reason == r)
			return;
	if (v->n == VERDICT_MAX)
		return;
	f = &v->v[v->n++];
	f->reason = r;
	f->position = position;
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

const struct finding *
verdict_refusal(const struct verdict *v)
{
	for (size_t i = 0; i < v->n; i++)
		if (reasons[v->v[i].reason].severity == SEVERITY_REFUSE)
			return &v->v[i];
	return NULL;
}

enum severity
verdict_risk(const struct verdict *v)
{
	enum severity worst = SEVERITY_LOW;

	for (size_t i = 0; i < v->n; i++) {
		enum severity s = reasons[v->v[i].reason].severity;

		if (s > worst && s < SEVERITY_REFUSE)
			worst = s;
	}
	return worst;
}

/* --- ask --------------------------------------------------------------- */

/* What each kind of statement is refused as, in each tool (REASON_N: not
 * refused for its kind), and what it would do. */
/* clang-format off */
static const struct {
	enum reason query, execute;
	const char *would;
} by_kind[STMT_NKINDS] = {
	[STMT_EMPTY]       = { REASON_NOTHING_TO_RUN, REASON_NOTHING_TO_RUN,
	    "do nothing: there is no statement in the text" },
	[STMT_SELECT]      = { REASON_N, REASON_READ_IN_EXECUTE,
	    "only read, and db_execute is for writes" },
	[STMT_INSERT]      = { REASON_WRITE_IN_QUERY, REASON_N, "write" },
	[STMT_UPDATE]      = { REASON_WRITE_IN_QUERY, REASON_N, "write" },
	[STMT_DELETE]      = { REASON_WRITE_IN_QUERY, REASON_N, "write" },
	[STMT_MERGE]       = { REASON_WRITE_IN_QUERY, REASON_N, "write" },
	[STMT_EXPLAIN]     = { REASON_N, REASON_READ_IN_EXECUTE,
	    "only show a plan, and db_execute is for writes" },
	[STMT_SHOW]        = { REASON_N, REASON_READ_IN_EXECUTE,
	    "only show a setting, and db_execute is for writes" },
	[STMT_COPY]        = { REASON_COPY, REASON_COPY,
	    "move rows by a file, a program or the connection itself" },
	[STMT_CALL]        = { REASON_PROCEDURAL, REASON_PROCEDURAL,
	    "run code that cannot be read from the statement" },
	[STMT_DO]          = { REASON_PROCEDURAL, REASON_PROCEDURAL,
	    "run code that cannot be read from the statement" },
	[STMT_TRANSACTION] = { REASON_TRANSACTION_CONTROL, REASON_TRANSACTION_CONTROL,
	    "begin, end or divide a transaction that is not the agent's" },
	[STMT_SESSION]     = { REASON_SESSION_CONTROL, REASON_SESSION_CONTROL,
	    "change or use the state of a session that is not the agent's" },
	[STMT_LOCK]        = { REASON_LOCKING, REASON_LOCKING,
	    "lock a table for other sessions" },
	[STMT_TRUNCATE]    = { REASON_SCHEMA_CHANGE, REASON_SCHEMA_CHANGE,
	    "empty a table at once, which no list of rows would show" },
	[STMT_DDL]         = { REASON_SCHEMA_CHANGE, REASON_SCHEMA_CHANGE,
	    "change the schema" },
	[STMT_GRANT]       = { REASON_SYSTEM, REASON_SYSTEM,
	    "change who may do what" },
	[STMT_SYSTEM]      = { REASON_SYSTEM, REASON_SYSTEM,
	    "change the server, its roles or its databases" },
	[STMT_MAINTENANCE] = { REASON_MAINTENANCE, REASON_MAINTENANCE,
	    "run where no transaction could take it back" },
	[STMT_OTHER]       = { REASON_NOT_UNDERSTOOD, REASON_NOT_UNDERSTOOD,
	    "do what cannot be told: its kind is not understood" },
};
/* clang-format on */

static enum reason
reason_of(enum stmt_kind kind, enum verdict_tool tool)
{
	return tool == TOOL_QUERY ? by_kind[kind].query : by_kind[kind].execute;
}

static bool
is_write(enum stmt_kind k)
{
	return k == STMT_INSERT || k == STMT_UPDATE || k == STMT_DELETE ||
	       k == STMT_MERGE;
}

/* Neither tool takes it as it is: it must not be sent from one to the other. */
static bool
runs_to_explain(enum verdict_tool tool, const struct facts *f)
{
	return tool == TOOL_EXECUTE && f->explain_analyze && f->writes.n > 0;
}

/* A SELECT with a write in a CTE is a write whatever its own kind; what is
 * written is told by ask_writes. */
static void
ask_kind(enum verdict_tool tool, const struct facts *f, struct verdict *v)
{
	enum reason r = reason_of(f->kind, tool);
	const char *tag =
	    f->tag != NULL && *f->tag != '\0' ? f->tag : "the text";

	if (f->statements > 1)
		verdict_add(v, REASON_MULTIPLE_STATEMENTS, f->second_position,
		    "the text would run %zu statements; one is sent at a time",
		    f->statements);
	if ((r == REASON_READ_IN_EXECUTE && f->writes.n > 0 && !f->explain) ||
	    r == REASON_WRITE_IN_QUERY)
		return;
	if (runs_to_explain(tool, f))
		verdict_add(v, r, f->position,
		    "EXPLAIN ANALYZE would write to %.64s only to show a plan: "
		    "here send the write itself, to db_query its EXPLAIN "
		    "without ANALYZE",
		    f->writes.v[0].name);
	else if (r != REASON_N)
		verdict_add(v, r, f->position, "%.64s would %s", tag,
		    by_kind[f->kind].would);
}

static void
ask_explain(enum verdict_tool tool, const struct facts *f, struct verdict *v)
{
	enum reason r;

	if (!f->explain)
		return;
	r = by_kind[f->explain_kind].query;
	if (is_write(f->explain_kind))
		r = REASON_N; /* planned, or told by ask_writes */
	if (tool == TOOL_QUERY && r != REASON_N)
		verdict_add(v, r, f->position, "%s, if run, would %s",
		    stmt_kind_name[f->explain_kind],
		    by_kind[f->explain_kind].would);
}

static void
ask_writes(enum verdict_tool tool, const struct facts *f, struct verdict *v)
{
	bool only_planned = f->explain && !f->explain_analyze;

	if (tool == TOOL_QUERY && f->writes.n > 0 && !only_planned)
		verdict_add(v, REASON_WRITE_IN_QUERY, f->writes.v[0].position,
		    "the statement would write to %.64s, and db_query only "
		    "reads",
		    f->writes.v[0].name);
	if (f->into)
		verdict_add(v, REASON_SCHEMA_CHANGE, f->into_position,
		    "the statement would create a table of its result");
	if (tool == TOOL_QUERY && f->locking)
		verdict_add(v, REASON_LOCKING, f->locking_position,
		    "the locking clause would lock rows for other sessions");
}

static void
ask_functions(const struct facts *f, struct verdict *v)
{
	for (size_t i = 0; i < f->functions.n; i++) {
		const struct facts_name *fn = &f->functions.v[i];

		if (function_reaches_out(fn->name))
			verdict_add(v, REASON_FUNCTION_OUTSIDE, fn->position,
			    "the statement would call %.64s(), which acts "
			    "outside the transaction, runs text as SQL or only "
			    "waits",
			    fn->name);
	}
	if (f->opaque)
		verdict_add(v, REASON_NOT_UNDERSTOOD, -1,
		    "the statement would do what cannot be told: a part of it "
		    "is not understood (%.64s)",
		    f->opaque_node != NULL ? f->opaque_node : "");
}

static const struct {
	char op;
	enum reason r;
	const char *why;
} careless[] = {
	{ 'n', REASON_NO_WHERE, "it has no condition" },
	{ 'v', REASON_VACUOUS_WHERE, "the condition is true for every row" },
	{ 'g', REASON_WHERE_IGNORES_TARGET,
	    "the condition never mentions the table" },
};
#define NCARELESS (sizeof(careless) / sizeof(careless[0]))

static void
ask_nested(const struct facts *f, struct verdict *v)
{
	for (size_t i = 0; i < f->careless.n; i++)
		for (size_t k = 0; k < NCARELESS; k++)
			if (careless[k].op == f->careless.v[i].op)
				verdict_add(v, careless[k].r,
				    f->careless.v[i].position,
				    "a write of every row of %.64s: %s",
				    f->careless.v[i].name, careless[k].why);
}

/* Conditions that select nothing make a write of the whole table; the diff
 * shows the rows, the reason says how it came about. */
static void
ask_where(const struct facts *f, struct verdict *v)
{
	const char *target = f->writes.n > 0 ? f->writes.v[0].name : "";

	if (f->kind != STMT_UPDATE && f->kind != STMT_DELETE)
		return;
	if (!f->has_where)
		verdict_add(v, REASON_NO_WHERE, -1,
		    "%s of every row of %s: it has no condition", f->tag,
		    target);
	else if (f->where_vacuous)
		verdict_add(v, REASON_VACUOUS_WHERE, -1,
		    "%s of %s: the condition is true for every row", f->tag,
		    target);
	else if (f->where_ignores_target)
		verdict_add(v, REASON_WHERE_IGNORES_TARGET, -1,
		    "%s of %s: the condition never mentions the table", f->tag,
		    target);
}

void
verdict_ask(enum verdict_tool tool, const struct facts *f, struct verdict *v)
{
	ask_kind(tool, f, v);
	ask_explain(tool, f, v);
	ask_writes(tool, f, v);
	ask_functions(f, v);
	if (tool == TOOL_EXECUTE) {
		ask_where(f, v);
		ask_nested(f, v);
	}
	for (size_t i = 0; i < v->n; i++)
		if (v->v[i].position == -1)
			v->v[i].position = f->position;
}

void
verdict_not_null(const struct facts *f, verdict_column *is_not_null,
    const void *arg, struct verdict *v)
{
	bool any = false, all = f->not_null_all.n > 0;

	if (f->kind != STMT_UPDATE && f->kind != STMT_DELETE)
		return;
	for (size_t i = 0; i < f->not_null_any.n; i++)
		any = any || is_not_null(arg, f->not_null_any.v[i]);
	for (size_t i = 0; i < f->not_null_all.n; i++)
		all = all && is_not_null(arg, f->not_null_all.v[i]);
	if (any || all)
		verdict_add(v, REASON_VACUOUS_WHERE, f->target_position,
		    "%s of %.64s: the condition is true for every row, since "
		    "%.64s is never NULL",
		    f->tag, f->writes.n > 0 ? f->writes.v[0].name : "",
		    f->not_null_all.v[0]);
}

/* --- effect ------------------------------------------------------------- */

static void
effect_shares(const struct effect *x, struct verdict *v)
{
	for (size_t i = 0; i < x->ntables; i++) {
		const struct effect_table *t = &x->tables[i];
		uint64_t changed = t->updated + t->deleted;

		if (t->rows_before >= SHARE_MIN &&
		    changed > (uint64_t)t->rows_before / 2)
			verdict_add(v, REASON_LARGE_SHARE, -1,
			    "%llu of %lld rows of %.128s change",
			    (unsigned long long)changed,
			    (long long)t->rows_before, t->table);
	}
}

static void
effect_collateral(const struct effect *x, struct verdict *v)
{
	for (size_t i = 0; i < x->ntables; i++) {
		const struct effect_table *t = &x->tables[i];

		if (t->collateral && t->deleted > 0)
			verdict_add(v, REASON_COLLATERAL_DELETE, -1,
			    "%llu rows of %.128s are deleted, which the "
			    "statement does not name",
			    (unsigned long long)t->deleted, t->table);
		else if (t->collateral)
			verdict_add(v, REASON_COLLATERAL, -1,
			    "%.128s changes, which the statement does not name",
			    t->table);
	}
}

static void
effect_rows(const struct effect *x, struct verdict *v)
{
	uint64_t rows = 0;
	size_t changed = 0;

	for (size_t i = 0; i < x->ntables; i++) {
		const struct effect_table *t = &x->tables[i];
		uint64_t n = t->inserted + t->updated + t->deleted;

		rows += n;
		changed += n > 0;
	}
	if (rows >= ROWS_HIGH)
		verdict_add(v, REASON_MANY_ROWS, -1, "%llu rows change",
		    (unsigned long long)rows);
	else if (rows >= ROWS_MEDIUM)
		verdict_add(v, REASON_HUNDRED_ROWS, -1, "%llu rows change",
		    (unsigned long long)rows);
	if (changed > 1)
		verdict_add(v, REASON_SEVERAL_TABLES, -1, "%zu tables change",
		    changed);
}

void
verdict_effect(const struct facts *f UNUSED, const struct effect *x,
    struct verdict *v)
{
	if (x->hidden_ddl)
		verdict_add(v, REASON_HIDDEN_DDL, -1,
		    "system catalogs changed though the statement does not "
		    "say so");
	if (!x->complete)
		verdict_add(v, REASON_INCOMPLETE, -1,
		    "not every row that changed is shown; the counts are the "
		    "server's own");
	effect_rows(x, v);
	effect_shares(x, v);
	effect_collateral(x, v);
}
