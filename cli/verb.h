/* verb: what the verbs of airlock share */
#ifndef AIRLOCK_CLI_VERB_H
#define AIRLOCK_CLI_VERB_H

#include "client.h"
#include "options.h"
#include "review.h"
#include "writer.h"

/* One run of airlock. */
struct run {
	const struct options *o;
	const struct client *client;
	const struct writer *w;
	struct term out, talk; /* stdout, stderr */
};

typedef enum ctl_exit verb_fn(struct run *run);
verb_fn verb_show, verb_pending, verb_commit, verb_rollback, verb_log;

/* Says on stderr why not; releases *r and gives its exit code. */
enum ctl_exit verb_refused(struct run *run, struct reply *r);
/* Says one line on stderr and gives `code`. */
enum ctl_exit verb_say(struct run *run, enum ctl_exit code, const char *fmt,
    ...) PRINTF_LIKE(3, 4);
/*
 * Splits o->arg into id and digest.  Where it is no id says so (a part of an id
 * lists what it fits and never acts) and gives false with *code set.
 */
bool verb_change(struct run *run, char id[15], char digest[65],
    enum ctl_exit *code);
/* Fetches a change and writes it on the page as it comes; see review_fetch. */
enum ctl_exit verb_fetch(struct run *run, const char *id,
    const struct window *w, struct page *page, struct review *out,
    struct reply *r);
/* Keeps every data value in the json array *arg. */
client_data verb_collect;

#endif
