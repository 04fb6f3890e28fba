/* term: what may reach a terminal: quoted, wrapped and coloured text */
#ifndef AIRLOCK_CLI_TERM_H
#define AIRLOCK_CLI_TERM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/text.h"

enum colour { PLAIN, BOLD, RED, GREEN, YELLOW, DIM };

/* A stream that is written for people. */
struct term {
	FILE *out;
	bool coloured; /* a terminal, and NO_COLOR is not set */
	size_t width;  /* of the terminal, 0 where it is none: no wrapping */
};
void term_init(struct term *t, FILE *out);

/*
 * Prints prefix (short, ASCII) + text and a newline.  The text must have been
 * quoted; where it is wider than the terminal it goes on in lines of our own
 * that begin with as many blanks as prefix is long, 4 at least, so that a
 * terminal's own wrapping cannot make it begin a line.
 */
void term_line(const struct term *t, enum colour c, const char *prefix,
    const char *text);
/* Foreign text of several lines: each is quoted and put behind prefix. */
void term_block(const struct term *t, const char *prefix, const char *p,
    size_t n);

/* A JSON value's text, quoted; strings without their quotes.  Lends from a
 * ring of a few buffers, for printf; cut after about `most` bytes. */
const char *term_quote(const json_t *j, size_t most);
const char *term_quote_str(const char *s, size_t most);
/* A member of an object, "" where there is none. */
const char *term_member(const json_t *j, const char *name, size_t most);

/* One line of compact JSON in pure ASCII, so that not even a value's control
 * characters can do anything to a terminal. */
void term_json(FILE *out, const json_t *j);
char *term_json_text(const json_t *j);

#endif
