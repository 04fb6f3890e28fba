/* grid: rows of a result as an agent gets them, cut at stated sizes */
#ifndef AIRLOCK_CORE_GRID_H
#define AIRLOCK_CORE_GRID_H

#include <jansson.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pg/catalog.h"

/*
 * {"columns":[{"name","type"}],"rows":[[text|null]],"row_count":n,
 *  "truncated":bool,"cut":[{"row","column","bytes"}]?}
 * Row and byte caps end it (truncated); a cell above cell_max is cut at a
 * character and named in "cut" with its whole length.  Zeroed but for the three
 * limits is empty; at least one row is always taken.
 */
struct grid {
	long rows_max;
	size_t bytes_max, cell_max;
	bool truncated;
	json_t *rows, *cut;
	size_t bytes;
	int ncols;
	char **names;
	uint32_t *types;
};

void grid_release(struct grid *g);
/* Columns of the result; cols NULL takes all n, else these.  Once. */
void grid_columns(struct grid *g, const PGresult *res, const int *cols, int n);
/* The first row of res; false where it no longer fits (then truncated). */
bool grid_row(struct grid *g, const PGresult *res, const int *cols);
long grid_count(const struct grid *g);
/* Type oids that the catalog cannot name yet; returns how many, at most n. */
size_t grid_unknown_types(const struct grid *g, struct catalog *c,
    uint32_t *oids, size_t n);
/* Gives a new object. */
json_t *grid_json(const struct grid *g, struct catalog *c);

#endif
