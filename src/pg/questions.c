/* questions: batches that wait for one link, answered in the order asked */
#include "pg/questions.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

struct question {
	TAILQ_ENTRY(question) next;
	struct batch *batch; /* NULL while it is under way */
	link_done *done;
	void *arg;
};

void
questions_init(struct questions *q, void (*answered)(void *arg), void *arg)
{
	TAILQ_INIT(&q->list);
	q->asking = false;
	q->answered = answered;
	q->arg = arg;
}

static void
drop(struct questions *q, struct question *one)
{
	TAILQ_REMOVE(&q->list, one, next);
	batch_free(one->batch);
	free(one);
}

void
questions_release(struct questions *q)
{
	struct question *one;

	while ((one = TAILQ_FIRST(&q->list)) != NULL)
		drop(q, one);
}

void
questions_add(struct questions *q, struct batch *b, link_done *done, void *arg)
{
	struct question *one = mem_new(sizeof(*one));

	one->batch = b;
	one->done = done;
	one->arg = arg;
	TAILQ_INSERT_TAIL(&q->list, one, next);
}

static void
asked(void *arg, struct link *l, struct batch *b)
{
	struct questions *q = arg;
	struct question *one = TAILQ_FIRST(&q->list), copy = *one;

	q->asking = false;
	drop(q, one);
	if (copy.done != NULL)
		copy.done(copy.arg, l, b);
	if (!batch_is_lost(b))
		q->answered(q->arg);
}

void
questions_put(struct questions *q, struct link *l, const struct err *why)
{
	struct question *one;

	while ((one = TAILQ_FIRST(&q->list)) != NULL && !q->asking) {
		struct batch *b = one->batch;

		assert(b != NULL); /* only the one being asked has none */
		one->batch = NULL;
		if (l != NULL) {
			q->asking = true;
			link_run(l, b, asked, q);
			return;
		}
		b->is_lost = true;
		b->lost = *why;
		asked(q, NULL, b);
		batch_free(b);
	}
}

void
questions_forget(struct questions *q, const void *arg)
{
	struct question *one;

	TAILQ_FOREACH (one, &q->list, next)
		if (one->arg == arg)
			one->done = NULL;
}
