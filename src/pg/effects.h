/* effects: what the functions behind a change may do beside writing rows */
#ifndef AIRLOCK_PG_EFFECTS_H
#define AIRLOCK_PG_EFFECTS_H

/*
 * $1, $2: oids of the relations that were written, and bits of what happened to
 * each, as pg_trigger.tgtype has them; $3: oids of the functions that the
 * statement calls (reach_functions); $4: extensions whose functions reach
 * outside.  Columns as enum effect_column.
 *
 * Nothing on the server tells of a NOTIFY before COMMIT, nor of what a function
 * does elsewhere, so that the texts of the functions are read: those of
 * triggers that fire, those behind defaults, checks, indexes, rules and
 * policies of what is written, those that the statement calls, and those that
 * these name in turn.  What a text says may not have been done; what is done by
 * a text that is put together at run time, or in C, is not found.
 */
extern const char effects_sql[];
/* $1 oids of relations: whether a trigger of theirs makes a setting of a name
 * of its own, by its function's text. */
extern const char effects_setting_sql[];
enum effect_column {
	/* "NOTIFICATION", "STATEMENT_TEXT", "TRIGGERS_OFF", "COUNTERS_OFF",
	 * "OUTSIDE_EFFECT" */
	EFFECT_KIND,
	EFFECT_FUNCTION, /* "public.f(integer)", "lo_export()" */
	EFFECT_VIA,      /* "trigger t of public.t"; null: the statement */
	EFFECT_HOW, /* OUTSIDE_EFFECT: what it calls, or how it is written */
};

#endif
