/* parcel: numbers and texts as they cross between two processes */
#ifndef AIRLOCK_SQL_PARCEL_H
#define AIRLOCK_SQL_PARCEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/*
 * One behind the other, nothing in between: a number is its decimal digits and
 * a space, a text the number of its bytes and these, no text the number -1. Who
 * takes them has to know what comes; what is not that is refused, and so is a
 * text that is not UTF-8 or that holds a NUL.
 */
struct parcel {
	const char *at;
	size_t left;
};

void parcel_add_number(struct text *out, long long v);
/* false: s is not UTF-8, and nothing has been added. */
bool parcel_add_text(struct text *out, const char *s);

bool parcel_number(struct parcel *p, long long min, long long max,
    long long *v);
bool parcel_bool(struct parcel *p, bool *v);
/* *s is new where it is true; null: there may be no text, *s is NULL then. */
bool parcel_text(struct parcel *p, bool null, char **s);

#endif
