/* memory: allocation that cannot fail quietly, and wiping of secrets */
#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"

void *
mem_new(size_t size)
{
	return mem_array(1, size);
}

void *
mem_array(size_t n, size_t size)
{
	void *p = calloc(n != 0 ? n : 1, size != 0 ? size : 1);

	if (p == NULL)
		fatalx("out of memory");
	return p;
}

void *
mem_grow(void *p, size_t n, size_t size)
{
	void *q = reallocarray(p, n != 0 ? n : 1, size);

	if (q == NULL)
		fatalx("out of memory");
	return q;
}

char *
mem_strdup(const char *s)
{
	return mem_strndup(s, strlen(s));
}

char *
mem_strndup(const char *s, size_t n)
{
	char *copy = mem_array(n + 1, 1);

	memcpy(copy, s, n);
	return copy;
}

char *
mem_printf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) == -1)
		fatalx("out of memory");
	va_end(ap);
	return s;
}

void
mem_free_secret(char *s)
{
	if (s == NULL)
		return;
	mem_wipe(s, strlen(s));
	free(s);
}

void
mem_wipe(void *p, size_t n)
{
	explicit_bzero(p, n);
}

void
mem_random(void *p, size_t n)
{
	unsigned char *at = p;

	while (n > 0) {
		ssize_t got = getrandom(at, n, 0);

		if (got == -1 && errno == EINTR)
			continue;
		if (got <= 0)
			fatal("getrandom");
		at += got;
		n -= (size_t)got;
	}
}
