/* lines: a connection that carries one message a line, bounded both ways */
#ifndef AIRLOCK_WIRE_LINES_H
#define AIRLOCK_WIRE_LINES_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Input: lines end at '\n', a '\r' before it is dropped, blank lines are
 * skipped.  A line above line_max is told once as `too_long` (then the rest of
 * it is discarded).  Output is queued; while more than out_high bytes wait no
 * input is read (a peer that stops reading stops being served, and costs no
 * more memory); `drained` is told when the queue falls below out_low.  Above
 * out_max the connection is closed.
 */
struct lines;
struct lines_options {
	size_t line_max, out_low, out_high, out_max;
	bool credentials; /* ask for SCM_CREDENTIALS with each read */
};
struct lines_events {
	/* Lends the line (NUL-terminated, len without it).  `pid` is that of
	 * the sender's credentials, 0 where none came.  May close. */
	void (*line)(void *arg, char *line, size_t len, pid_t pid);
	void (*too_long)(void *arg);
	/* May be NULL.  After too_long, that line's bytes as they come; `last`
	 * with the end of the line.  May close. */
	void (*piece)(void *arg, const char *p, size_t n, bool last);
	void (*drained)(void *arg); /* may be NULL */
	/* Once, at end of file, error or overflow - not after lines_close. */
	void (*closed)(void *arg, const char *why);
};

/* Takes fd (made non-blocking). */
struct lines *lines_new(struct event_base *base, int fd,
    const struct lines_options *o, const struct lines_events *events,
    void *arg);
/* Frees at once, whatever is queued; NULL is fine. */
void lines_close(struct lines *l);
/* Frees when all that is queued is written, or after 5 s; no more events. */
void lines_finish(struct lines *l);
/* A newline is added. */
void lines_send(struct lines *l, const char *p, size_t n);
/* Takes a reference of its own; compact form. */
void lines_send_json(struct lines *l, const json_t *j);
bool lines_is_full(const struct lines *l); /* above out_high */
/* Stop and go on reading input. */
void lines_pause(struct lines *l);
void lines_resume(struct lines *l);

#endif
