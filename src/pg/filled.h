/* filled: the columns that sequences, the clock and random numbers fill */
#ifndef AIRLOCK_PG_FILLED_H
#define AIRLOCK_PG_FILLED_H

/*
 * Columns as enum filled_column: a row for each column of the table, and of
 * those that it is a partition of, which is an identity, has a default (its
 * own, else its domain's) that takes its value from nothing but a sequence, the
 * clock or chance, or is generated from such a column.  $1 is an array of oids,
 * or the name of one table; $2 names columns that are told as well.
 */
extern const char filled_sql[], filled_named_sql[];
enum filled_column {
	FILLED_TABLE, /* oid, as it was asked for */
	FILLED_COLUMN,
	FILLED_DOMAIN, /* by a domain, whose default can change without the
	                  table's definition doing so; where any column has a
	                  domain with a default there is a row that says so */
	FILLED_ASKED,  /* for no other reason than that $2 names it */
};

#endif
