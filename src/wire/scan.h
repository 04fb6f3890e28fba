/* scan: what a line's messages are called, read as it comes, however long */
#ifndef AIRLOCK_WIRE_SCAN_H
#define AIRLOCK_WIRE_SCAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * For a line that is only passed on, is too long to keep, or does not parse:
 * fed in any pieces, in bounded memory, it tells the id of each message (one,
 * or those of a batch).  It judges nothing; brackets, strings and commas are
 * all it knows.  A member that stands twice, that is longer than
 * SCAN_TOKEN_MAX, or that is no string or integer is told as NULL.
 */
#define SCAN_TOKEN_MAX 256
struct scan_found {
	const json_t *id; /* lent for the call, as the rest */
	const char *method;
	const json_t *cancels; /* params.requestId */
	bool is_answer;        /* has a result or an error */
};
typedef void scan_tell(void *arg, const struct scan_found *f);

enum scan_member {
	SCAN_ID,
	SCAN_METHOD,
	SCAN_CANCELS,
	SCAN_KEPT,
	SCAN_PARAMS = SCAN_KEPT,
	SCAN_ANSWER,
	SCAN_OTHER
};

/* Its fields are scan's own. */
struct scan {
	int depth, level; /* level: that of messages, 1, or 2 in a batch */
	bool in_string, escaped; /* where the next byte stands */
	bool in_key, in_value, in_params, in_message;
	bool is_answer, broken;
	enum scan_member member;
	char key[12];
	size_t key_len;
	struct {
		char s[SCAN_TOKEN_MAX];
		size_t len;
		int times;
	} kept[SCAN_KEPT];
};

/* Before each line. */
void scan_start(struct scan *s);
void scan_feed(struct scan *s, const char *p, size_t n, scan_tell *tell,
    void *arg);
/* The line has ended; a message that was left open is told too. */
void scan_end(struct scan *s, scan_tell *tell, void *arg);

#endif
