/* causes: what could have written a table that no statement names */
#ifndef AIRLOCK_PG_CAUSES_H
#define AIRLOCK_PG_CAUSES_H

/* What happened to a relation, as pg_trigger.tgtype has it. */
enum cause_event {
	CAUSE_INSERT = 4,
	CAUSE_DELETE = 8,
	CAUSE_UPDATE = 16,
	CAUSE_ANY = 28,
};

/*
 * $1, $2: oids of the relations that were written, and what happened to each;
 * $3, $4: names (quoted) that the statement writes to, and what it does there;
 * $5: names of the tables in question; $6, $7: schemas ('' where not said) and
 * names of the functions it calls.  Columns as enum cause_column; a table for
 * which nothing is found has no row.
 *
 * A constraint is a foreign key whose action follows from what happened to the
 * table that it refers to; a trigger is one that fires for what happened, but
 * for those of the table itself, which can only follow.  What a trigger's
 * function does cannot be known, so each that fires is one that could be it.
 */
extern const char causes_sql[];
enum cause_column {
	CAUSE_TABLE, /* as $5 has it */
	CAUSE_KIND,  /* "constraint", "trigger", "rule", "function"; "view": the
	                statement itself writes the table, through views */
	CAUSE_NAME,
	CAUSE_ON,       /* the table that it belongs to, or null */
	CAUSE_FUNCTION, /* a trigger's, or null */
};

#endif
