/* reasons: every code that a refusal or a risk can carry, in one table */
#ifndef AIRLOCK_RULE_REASONS_H
#define AIRLOCK_RULE_REASONS_H

#include <stddef.h>

enum severity {
	SEVERITY_NOTE,
	SEVERITY_LOW,
	SEVERITY_MEDIUM,
	SEVERITY_HIGH,
	SEVERITY_REFUSE,
	SEVERITY_N
};
extern const char *const severity_name[SEVERITY_N];

/* clang-format off */
#define REASONS(X) \
	/* code, severity, what it means (for docs and the operator), what is accepted instead (for the agent that is refused), or what to look at (for the operator who decides) */ \
	X(MULTIPLE_STATEMENTS, REFUSE, "the text holds more than one statement", "Send one statement a call.") \
	X(NOTHING_TO_RUN, REFUSE, "the text holds no statement", "Send one SQL statement.") \
	X(STATEMENT_TOO_LARGE, REFUSE, "the statement is longer than statement_bytes_max", "Send a shorter statement; split a large INSERT into several calls with the same change_id.") \
	X(STATEMENT_TOO_COMPLEX, REFUSE, "the statement is too deep or too costly to parse", "Send a simpler statement; use a list or a join instead of a long chain of operators.") \
	X(INVALID_ENCODING, REFUSE, "the text is not valid UTF-8, or holds a NUL character", "Send text as UTF-8 without NUL.") \
	X(TRANSACTION_CONTROL, REFUSE, "transaction control is not an agent's to use", "A write is held until an operator decides; see db_status, or db_withdraw to take it back.") \
	X(SESSION_CONTROL, REFUSE, "session state, prepared statements, cursors and notifications are not an agent's to use", "Send the statement itself; settings are fixed by the operator.") \
	X(LOCKING, REFUSE, "explicit locks are not taken for an agent", "Read without a locking clause; a write takes the locks that it needs.") \
	X(COPY, REFUSE, "COPY is not available", "Use SELECT to read and INSERT to write.") \
	X(PROCEDURAL, REFUSE, "DO and CALL run code that cannot be read from the statement", "Send the statements themselves, one a call.") \
	X(SYSTEM, REFUSE, "servers, roles, databases, extensions and replication are not changed through Airlock", "Ask the operator.") \
	X(MAINTENANCE, REFUSE, "the statement cannot run inside a transaction that may be rolled back", "Ask the operator.") \
	X(SCHEMA_CHANGE, REFUSE, "the statement changes or empties schema objects", "This agent may change rows only; ask the operator for the schema change.") \
	X(WRITE_IN_QUERY, REFUSE, "the statement writes, and db_query only reads", "Send it to db_execute, where it is held for an operator to decide.") \
	X(READ_IN_EXECUTE, REFUSE, "the statement only reads, and db_execute is for writes", "Send what only reads to db_query.") \
	X(ACCESS, REFUSE, "this agent's access does not include writing", "Only db_query and db_schema are open to this agent.") \
	X(FUNCTION_OUTSIDE, REFUSE, "the function acts outside the transaction, or runs text as SQL", "Leave the call out.") \
	X(FUNCTION_UNKNOWN, REFUSE, "the function may write or is not known to only read", "Use STABLE or IMMUTABLE functions in db_query.") \
	X(NOT_UNDERSTOOD, REFUSE, "the statement holds something that is not understood", "Write it in a plainer form.") \
	X(NOT_PROVED, REFUSE, "the statement could not be instrumented with proof", "Write it in a plainer form.") \
	X(ARGUMENTS, REFUSE, "the call has an argument that the tool does not take, or one of another kind or size", "Call it with the arguments that tools/list gives.") \
	X(PARAMETERS, REFUSE, "the parameters do not fit the statement", "Give one value, as text or null, for each of $1, $2, ...") \
	X(CHANGE_UNKNOWN, REFUSE, "no change of this agent has that id", "Use a change_id that db_execute returned and db_status lists.") \
	X(CHANGE_NOT_PENDING, REFUSE, "the change is already decided", "Start a new change without change_id.") \
	X(CHANGE_BUSY, REFUSE, "the change is being worked on", "Wait for the call under way to answer.") \
	X(CHANGE_TOO_LARGE, REFUSE, "the change holds more rows or longer statements than can be added to", "Start a new change.") \
	X(TOO_MANY_CHANGES, REFUSE, "as many changes are held as the limits allow", "Wait for a decision with db_status, or take one back with db_withdraw.") \
	X(TOO_MANY_CALLS, REFUSE, "too many calls of this agent are waiting", "Wait for answers before sending more.") \
	X(COOL_OFF, REFUSE, "too many statements of this agent were refused in a short time, and nothing is run for it", "Wait as long as is said; db_schema, db_status and db_withdraw go on answering. Tell the user what was refused.") \
	X(DIFF_TOO_LARGE, REFUSE, "the images of the changed rows exceed diff_bytes_max, or a single row exceeds row_bytes_max or what can be shown", "Change fewer rows at a time, or smaller values.") \
	X(LOST, REFUSE, "the database ended the transaction or the link to it", "Nothing was applied. Look at db_status, then try again.") \
	X(DATABASE_DOWN, REFUSE, "the database cannot be reached", "Airlock keeps trying; call db_status to see when it is back.") \
	X(UNAVAILABLE, REFUSE, "Airlock cannot serve the call now", "Try again; tell the operator if it goes on.") \
	X(DEFINITION_CHANGED, REFUSE, "a table, view, function or policy that the statement uses was defined anew while it ran", "Send the statement again.") \
	X(SETTING_CHANGED, REFUSE, "a function or trigger left a setting changed that decides what runs, as whom, or how it is written down", "Tell the operator: the function is to set it back before it returns.") \
	X(HOLDABLE_CURSOR, REFUSE, "a function or trigger left a cursor WITH HOLD open, whose query COMMIT would run", "Tell the operator: the function is to close its cursor before it returns.") \
	X(NO_WHERE, HIGH, "UPDATE or DELETE of a whole table: no condition", "Read the counts: was every row of the table meant?") \
	X(VACUOUS_WHERE, HIGH, "the condition is true for every row", "Read the counts: the condition chooses nothing, so every row of the table is written.") \
	X(WHERE_IGNORES_TARGET, HIGH, "the condition never mentions the table that is written", "Either all rows of the table are written or none; ask the agent which rows it means.") \
	X(MANY_ROWS, HIGH, "1,000 rows or more", "Look at the totals, and at samples of the rows with --offset and --limit.") \
	X(LARGE_SHARE, HIGH, "more than half of a table of 20 rows or more", "A condition that chooses most of a table is often one that was meant to choose few.") \
	X(INCOMPLETE, HIGH, "the diff does not show everything that the transaction did", "Do not commit what you cannot see: the reason beside the table says why its rows are not shown.") \
	X(COLLATERAL_DELETE, HIGH, "rows were deleted in tables that the statement does not name", "A foreign key with ON DELETE CASCADE or a trigger did it; look at those rows first.") \
	X(HIDDEN_DDL, HIGH, "system catalogs changed though the statement does not say so", "A function or trigger changed the schema, privileges or settings; roll back and look at its body.") \
	X(DEFERRED_FAILURE, HIGH, "a deferred constraint fails: COMMIT would be refused", "Roll back, or let the agent add the statement that makes the constraint hold.") \
	X(OUTSIDE_EFFECT, HIGH, "something was done that a rollback does not take back", "A rollback will not take it back: find out what was done before you decide.") \
	X(TRIGGERS_OFF, HIGH, "a function may turn triggers and foreign keys off while it runs, by its text", "Rows that break a foreign key are not noticed, nor do audit triggers act: look at the function's body.") \
	X(HUNDRED_ROWS, MEDIUM, "100 rows or more", "Look at the rows; --limit shows more of them.") \
	X(SEVERAL_TABLES, MEDIUM, "several tables change", "Look at each table.") \
	X(COLLATERAL, MEDIUM, "rows change in tables that the statement does not name", "A trigger, rule or foreign key did it; see that it is what you expect.") \
	X(SEQUENCE, NOTE, "a sequence moves; a rollback does not move it back", "Gaps in the numbers are all that a rollback leaves behind.") \
	X(NOTIFICATION, NOTE, "a function may send notifications, by its text", "They go out at COMMIT, and are dropped by a rollback; an undo does not take them back.") \
	X(STATEMENT_TEXT, NOTE, "a function reads the text of the statement that is running", "What it keeps of it (an audit trail does) is the agent's statement with Airlock's RETURNING in it; journal and diff have the agent's own.")
/* clang-format on */

enum reason {
#define X(code, severity, meaning, advice) REASON_##code,
	REASONS(X)
#undef X
	    REASON_N
};

struct reason_row {
	const char *code; /* "NO_WHERE" */
	enum severity severity;
	const char *meaning;
	const char *advice;
};
extern const struct reason_row reasons[REASON_N];

/* By its code in any case, or REASON_N. */
enum reason reason_by_code(const char *code);

#endif
