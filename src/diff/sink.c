/* sink: what goes into a digest or a text, gathered */
#include "diff/sink.h"

void
sink_init(struct sink *k, struct digest *d, struct text *t)
{
	k->d = d;
	k->t = t;
	k->n = 0;
}

static void
put_through(struct sink *k, const void *p, size_t n)
{
	if (k->d != NULL)
		digest_bytes(k->d, p, n);
	else
		text_addn(k->t, p, n);
}

void
sink_drain(struct sink *k)
{
	put_through(k, k->b, k->n);
	k->n = 0;
}

void
sink_far(struct sink *k, const void *p, size_t n)
{
	sink_drain(k);
	if (n > sizeof(k->b)) {
		put_through(k, p, n);
		return;
	}
	memcpy(k->b, p, n);
	k->n = n;
}
