/* text: a growing string, and the escapes that foreign bytes must pass */
#ifndef AIRLOCK_BASE_TEXT_H
#define AIRLOCK_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * struct text owns its bytes; s is NUL-terminated whenever it is not NULL and
 * len does not count the NUL.  A zeroed struct is an empty text.
 */
struct text {
	char *s;
	size_t len, size;
};

void text_init(struct text *t);
void text_release(struct text *t);
/* Empties without giving the memory back. */
void text_reset(struct text *t);
/* Removes the first n bytes. */
void text_drop(struct text *t, size_t n);
void text_add(struct text *t, const char *s);
void text_addn(struct text *t, const void *p, size_t n);
void text_addc(struct text *t, char c);
void text_addf(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The string, never NULL; lends until the next change. */
const char *text_str(const struct text *t);
/* Gives the string away and leaves *t empty. */
char *text_take(struct text *t);

/* Appends p as a JSON string with its quotes (RFC 8259, section 7).  Bytes
 * that are not UTF-8 become U+FFFD and their two hexadecimal digits. */
void text_add_json(struct text *t, const char *p, size_t n);
/* Appends p, with those bytes as text_add_json has them. */
void text_add_utf8(struct text *t, const char *p, size_t n);
/* Appends s as a quoted SQL identifier, inner quotes doubled. */
void text_add_ident(struct text *t, const char *s);
/* Appends one item of an array literal, quoted, behind what opens the array or
 * parts it from the item before; p NULL is NULL. */
void text_add_item(struct text *array, const char *p, size_t n);
/* The same of a string, and of a number. */
void text_add_string(struct text *array, const char *s);
void text_add_number(struct text *array, long long v);
/* Ends an array literal; one without items is {}. */
void text_end_items(struct text *array);

/*
 * Appends p fit for a terminal or a log line: control characters, blanks other
 * than the space, separators, bidirectional controls, fillers and whatever
 * else shows nothing, and bytes that are not UTF-8, as \n, \t, \xNN or
 * \u{NNNN}; a backslash as \\.  So are combining marks that would stand on what
 * is before p or on an escape, or pile up: more than three on one character.
 */
void text_quote(struct text *t, const char *p, size_t n);
/* The same into a fixed buffer, cut at a whole escape; allocates nothing. */
void text_quote_into(char *out, size_t size, const char *p, size_t n);

/* RFC 3629: no overlong forms, no surrogates, at most U+10FFFF. */
bool text_is_utf8(const char *p, size_t n);
/* Length in bytes of the longest prefix of at most n bytes that does not cut
 * a UTF-8 sequence in two. */
size_t text_utf8_cut(const char *p, size_t len, size_t n);
/* Copies with its NUL; ERR_LIMIT when src does not fit. */
int text_copy(char *dst, size_t size, const char *src,
    struct err *e) MUST_CHECK;
bool text_starts_with(const char *s, const char *prefix);
/* A whole decimal number within [min, max]; nothing else around it. */
int text_to_long(const char *s, long long min, long long max, long long *out,
    struct err *e) MUST_CHECK;
void text_hex(char *out, const unsigned char *p, size_t n); /* 2n + 1 bytes */

#endif
