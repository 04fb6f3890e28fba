/* batch: statements that travel to the server together, and what came back */
#ifndef AIRLOCK_PG_BATCH_H
#define AIRLOCK_PG_BATCH_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * Statements run in order (libpq's pipeline mode).  One that fails makes the
 * server skip the rest of its segment, up to the next batch_sync; the batch
 * always ends in one.  Outside a transaction block a segment is a transaction.
 */
struct batch;

/* Each row of a statement as it arrives; lends res, which holds one row. */
typedef void batch_row(void *arg, const PGresult *res);

struct batch *batch_new(void);
void batch_free(struct batch *b);
/* Copies text and values (NULL is SQL NULL); returns the statement's number. */
size_t batch_add(struct batch *b, const char *sql, int n,
    const char *const *values);
/* A text that never changes, at the same address: a link that keeps what it is
 * asked (link_options) prepares it once, any other runs it as batch_add's. */
size_t batch_add_kept(struct batch *b, const char *sql, int n,
    const char *const *values);
/* A statement prepared by the session under this name. */
size_t batch_add_prepared(struct batch *b, const char *name, int n,
    const char *const *values);
/* The last statement's rows go to `row` one by one and are not kept. */
void batch_rows(struct batch *b, batch_row *row, void *arg);
/* The last statement may fail: it counts neither in batch_failed nor in
 * batch_is_ok.  It should stand in a segment of its own. */
void batch_optional(struct batch *b);
/* Ends a segment. */
void batch_sync(struct batch *b);
/* The same; `told` is called when all before it is answered, though the rest of
 * the batch is still under way.  It may not free the link. */
typedef void batch_told(void *arg, struct batch *b);
void batch_sync_tell(struct batch *b, batch_told *told, void *arg);

enum batch_state {
	BATCH_WAITING, /* not answered (the link was lost before) */
	BATCH_OK,
	BATCH_FAILED,
	BATCH_SKIPPED, /* behind a failed one of its segment */
};
enum batch_state batch_state(const struct batch *b, size_t i);
/* The last result of the statement; NULL while waiting. */
const PGresult *batch_result(const struct batch *b, size_t i);
/* The first statement that failed, or -1 as size_t. */
size_t batch_failed(const struct batch *b);
bool batch_is_ok(const struct batch *b); /* every statement succeeded */
/* The link went away before the batch was answered; why. */
bool batch_is_lost(const struct batch *b);
const struct err *batch_err(const struct batch *b);

/* Text of a cell, NULL for SQL NULL or a cell that is not there. */
const char *batch_cell(const struct batch *b, size_t i, int row, int col);
int batch_ntuples(const struct batch *b, size_t i);

/* For pg/link alone. */
struct batch_step {
	char *text; /* SQL, or a prepared statement's name; NULL: sync */
	bool prepared, optional;
	const char *kept; /* the text as it was given, or NULL */
	/* It is prepared first, under this number; whose answer is awaited, or
	 * there but for its end. */
	unsigned prepares;
	bool heard;
	int n;
	char **values;
	batch_row *row;
	batch_told *told; /* of a sync */
	void *arg;
	enum batch_state state;
	PGresult *result;
};
struct batch {
	struct batch_step *v;
	size_t n, size;
	struct err lost;
	bool is_lost;
};

#endif
