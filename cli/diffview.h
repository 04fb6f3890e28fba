/* diffview: one row image as lines that a person reads: column, old -> new */
#ifndef AIRLOCK_CLI_DIFFVIEW_H
#define AIRLOCK_CLI_DIFFVIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "term.h"

/* A value wider than this is cut, and its length said. */
#define DIFFVIEW_VALUE_MAX 160

/*
 * Appends a value as shown: NULL for null; the text itself where it is plain
 * (letters, digits, a few marks, single blanks); else "quoted", with \" for a
 * quote, so that no value reads like NULL, like an arrow or like two values.
 * `most` is the number of bytes shown, 0 for all.
 */
void diffview_value(struct text *out, const json_t *v, size_t most);
/* "old -> new"; long values are shown around the first byte that differs. */
void diffview_pair(struct text *out, const json_t *before, const json_t *after,
    size_t most);
/* Whether either image of a row object has the column. */
bool diffview_has(const json_t *row, const char *column);
/*
 * Prints a row object of `show`: a line that names it and one line a changed
 * column.  `column` NULL for all; otherwise that one, uncut.
 */
void diffview_row(const struct term *t, const json_t *row, const char *column);

#endif
