/* parcel: numbers and texts as they cross between two processes */
#include "sql/parcel.h"

#include <limits.h>
#include <string.h>

#include "base/mem.h"

#define DIGITS_MAX 18 /* of a number that is taken: none overflows */

void
parcel_add_number(struct text *out, long long v)
{
	char digits[24], *at = digits + sizeof(digits);
	unsigned long long rest =
	    v < 0 ? 0ULL - (unsigned long long)v : (unsigned long long)v;

	*--at = ' ';
	do
		*--at = (char)('0' + rest % 10);
	while ((rest /= 10) != 0);
	if (v < 0)
		*--at = '-';
	text_addn(out, at, (size_t)(digits + sizeof(digits) - at));
}

bool
parcel_add_text(struct text *out, const char *s)
{
	size_t n = s != NULL ? strlen(s) : 0;

	if (s == NULL) {
		parcel_add_number(out, -1);
		return true;
	}
	if (!text_is_utf8(s, n))
		return false;
	parcel_add_number(out, (long long)n);
	text_addn(out, s, n);
	return true;
}

static bool
take(struct parcel *p, char c)
{
	if (p->left == 0 || *p->at != c)
		return false;
	p->at++;
	p->left--;
	return true;
}

bool
parcel_number(struct parcel *p, long long min, long long max, long long *v)
{
	bool negative = take(p, '-');
	size_t n = 0;

	*v = 0;
	for (; n < p->left && p->at[n] >= '0' && p->at[n] <= '9'; n++) {
		if (n == DIGITS_MAX)
			return false;
		*v = *v * 10 + (p->at[n] - '0');
	}
	/* One number is told in one way alone. */
	if (n == 0 || (*p->at == '0' && (n > 1 || negative)))
		return false;
	if (negative)
		*v = -*v;
	p->at += n;
	p->left -= n;
	return take(p, ' ') && *v >= min && *v <= max;
}

bool
parcel_bool(struct parcel *p, bool *v)
{
	long long n;

	if (!parcel_number(p, 0, 1, &n))
		return false;
	*v = n == 1;
	return true;
}

bool
parcel_text(struct parcel *p, bool null, char **s)
{
	long long n;

	*s = NULL;
	if (!parcel_number(p, null ? -1 : 0, LLONG_MAX, &n))
		return false;
	if (n == -1)
		return true;
	if ((unsigned long long)n > p->left ||
	    memchr(p->at, '\0', (size_t)n) != NULL ||
	    !text_is_utf8(p->at, (size_t)n))
		return false;
	*s = mem_strndup(p->at, (size_t)n);
	p->at += n;
	p->left -= (size_t)n;
	return true;
}
