/* writer: how answers are put down: for people, or as JSON */
#ifndef AIRLOCK_CLI_WRITER_H
#define AIRLOCK_CLI_WRITER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "review.h"
#include "term.h"

struct change_writer;

/* A change being written down, and which of its rows are shown. */
struct page {
	const struct change_writer *w;
	struct term term;
	bool brief;         /* one of several: long SQL is cut */
	const char *table;  /* only its rows are shown; NULL: all */
	const char *column; /* only this one; NULL: all */
	uint64_t skip;      /* rows not shown before the first one shown */
	uint64_t show;      /* at most so many */
	bool has_column;    /* a row that was shown has `column` */
	uint64_t seen, shown, listed;
};

/* header and row as they come; tail once all came and the digest is right. */
struct change_writer {
	void (*begin)(struct page *p);
	void (*header)(struct page *p, const json_t *header);
	void (*row)(struct page *p, const json_t *row);
	void (*tail)(struct page *p, const struct review *r);
	void (*end)(struct page *p);
};

/* One form of everything that is not a change. */
struct writer {
	const struct change_writer *list; /* pending */
	const struct change_writer *one;  /* show */
	void (*ping)(const struct term *t, const char *version);
	void (*version)(const struct term *t, const char *own,
	    const char *daemon);
	void (*status)(const struct term *t, const json_t *status);
	void (*agents)(const struct term *t, const json_t *agents);
	void (*record)(const struct term *t, const json_t *record);
	void (*verified)(const struct term *t, const json_t *ok);
	void (*decided)(const struct term *t, const json_t *change);
};

extern const struct writer writer_text, writer_json;

/* True where the row at hand is one that the page shows; counts it. */
bool page_takes(struct page *p, const json_t *row);
/* Statement i of a header behind prefix, its parameters below. */
void writer_statement(const struct term *t, const char *prefix,
    const json_t *header, size_t i, bool brief);
/* What differs between two views of a change, old -> new: `is` is a header,
 * `was` one too, or less: what a refused commit says that it was. */
void writer_compare(const struct term *t, const json_t *was, const json_t *is);
/* The lines before the question: how much, how bad. */
void writer_summary(const struct term *t, const json_t *header);

#endif
