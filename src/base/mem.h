/* memory: allocation that cannot fail quietly, and wiping of secrets */
#ifndef AIRLOCK_BASE_MEM_H
#define AIRLOCK_BASE_MEM_H

#include <stddef.h>

/*
 * Out of memory is fatal: the database ends our transactions and the journal
 * tells the next start what happened, which is better than going on half
 * done.  So none of these returns NULL, and no outside number may reach them
 * unchecked.  Memory is zeroed.
 */
void *mem_new(size_t size);
/* n things of `size` bytes; fatal on overflow. */
void *mem_array(size_t n, size_t size);
/* As reallocarray(3); new bytes are not zeroed. */
void *mem_grow(void *p, size_t n, size_t size);
char *mem_strdup(const char *s);
/* n bytes and a NUL behind them. */
char *mem_strndup(const char *s, size_t n);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Wipes the string, then frees it; accepts NULL. */
void mem_free_secret(char *s);
/* Overwrites n bytes so that no compiler leaves it out. */
void mem_wipe(void *p, size_t n);
/* n random bytes from the kernel (getrandom(2)). */
void mem_random(void *p, size_t n);

#endif
