/* client: one request to airlockd over its control socket, blocking */
#ifndef AIRLOCK_CLI_CLIENT_H
#define AIRLOCK_CLI_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "options.h"
#include "wire/ctl.h"
#include "wire/place.h"

/* The longest line a daemon may send; more is a broken daemon. */
#define CLIENT_LINE_MAX ((size_t)80 << 20)

/* Where the daemon is and whose it must be. */
struct client {
	struct place place;
	int timeout_s; /* of one line of an answer */
};

/* How a request ended. */
struct reply {
	enum ctl_exit exit;
	char code[64];    /* exit is not CTL_DONE: the daemon's reason word, or
	                     UNREACHABLE, WRONG_OWNER, BROKEN_ANSWER */
	char error[2048]; /* not CTL_DONE: fit for a terminal */
	json_t *ok;       /* CTL_DONE: the last line; owned */
	json_t *refusal;  /* not CTL_DONE: the last line, where the daemon said
	                     no, else NULL; owned */
};
void reply_release(struct reply *r);
/* Fills a reply that says no. */
void reply_fail(struct reply *r, enum ctl_exit code, const char *word,
    const char *fmt, ...) PRINTF_LIKE(4, 5);

void client_init(struct client *c, const struct options *o);
void client_release(struct client *c);

/* Lends each "data" value; false stops (the reply is then left for the caller
 * to fill). */
typedef bool client_data(void *arg, json_t *data);

/*
 * Connects, checks who owns the other end, sends one request (takes args, may
 * be NULL) and reads the answer to its end.  Fills *r; gives r->exit.
 */
enum ctl_exit client_ask(const struct client *c, enum ctl_verb verb,
    json_t *args, client_data *data, void *arg, struct reply *r);
/* The version in the greeting of the last answered request. */
const char *client_daemon_version(void);

#endif
