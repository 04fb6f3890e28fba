/* errors as values: a code that callers branch on, and one line of text */
#ifndef AIRLOCK_BASE_ERR_H
#define AIRLOCK_BASE_ERR_H

/*
 * A function that can fail takes a `struct err *e` last and returns 0 or -1;
 * on -1 `*e` is filled, on 0 it is left alone.  Text: lower case, no full
 * stop, what failed first, the subject in quotes.  A code exists because some
 * caller branches on it.
 */
enum err_code {
	ERR_NONE,
	ERR_INPUT,    /* an outside byte was not what it must be */
	ERR_LIMIT,    /* a documented limit was reached */
	ERR_SYSTEM,   /* the operating system said no */
	ERR_DATABASE, /* PostgreSQL said no, or cannot be reached */
	ERR_GONE,     /* the thing named is not there (any more) */
	ERR_UNFIT,    /* not possible in the present state */
	ERR_DENIED,   /* the peer may not do that */
	ERR_BUG,      /* ours */
	ERR_NCODES
};

struct err {
	enum err_code code;
	char text[512];
};

#define ERR_INIT ((struct err){ 0 })
#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define UNUSED __attribute__((unused))

/* Fills *e and returns -1, so that one can `return err_set(...)`. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* As err_set with ERR_SYSTEM, and ": strerror(errno)" behind the text. */
int err_sys(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Puts "text: " before what *e says; returns -1. */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The code's name in lower case ("input"), for logs and tests. */
const char *err_name(enum err_code code);

#endif
