/* questions: batches that wait for one link, answered in the order asked */
#ifndef AIRLOCK_PG_QUESTIONS_H
#define AIRLOCK_PG_QUESTIONS_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/err.h"
#include "pg/link.h"

struct question;
struct questions {
	TAILQ_HEAD(, question) list; /* the first is under way if asking */
	bool asking;
	void (*answered)(void *arg); /* the next may be put, on an idle link */
	void *arg;
};

void questions_init(struct questions *q, void (*answered)(void *arg),
    void *arg);
/* Drops all that wait, without a call. */
void questions_release(struct questions *q);
/* Takes b; done may be NULL. */
void questions_add(struct questions *q, struct batch *b, link_done *done,
    void *arg);
/* Puts the next to l, an idle link; l NULL answers all as lost, with why. */
void questions_put(struct questions *q, struct link *l, const struct err *why);
/* Nobody of this arg is answered any more. */
void questions_forget(struct questions *q, const void *arg);

#endif
