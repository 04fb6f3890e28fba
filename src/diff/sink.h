/* sink: what goes into a digest or a text, gathered */
#ifndef AIRLOCK_DIFF_SINK_H
#define AIRLOCK_DIFF_SINK_H

#include <stdint.h>
#include <string.h>

#include "base/digest.h"
#include "base/text.h"

/*
 * The call behind is made once for most rows: it costs more than the few bytes
 * of a field do.  Nothing has arrived before sink_drain.
 */
struct sink {
	struct digest *d; /* or */
	struct text *t;
	size_t n;
	unsigned char b[4096];
};

void sink_init(struct sink *k, struct digest *d, struct text *t);
void sink_drain(struct sink *k);
/* Of what does not fit behind what is there. */
void sink_far(struct sink *k, const void *p, size_t n);

#define SINK_WORDS 8 /* of eight bytes: more are memcpy's */

/* memcpy for what is mostly a few bytes, where a call costs more than they do:
 * whole words, the last of which may overlap the one before. */
static inline void
sink_copy(unsigned char *to, const void *p, size_t n)
{
	const unsigned char *from = p;
	uint64_t w, last;
	uint32_t half, end;

	if (n > SINK_WORDS * sizeof(w)) {
		memcpy(to, from, n);
	} else if (n >= sizeof(w)) {
		memcpy(&last, from + n - sizeof(w), sizeof(w));
		for (size_t i = 0; i + sizeof(w) < n; i += sizeof(w)) {
			memcpy(&w, from + i, sizeof(w));
			memcpy(to + i, &w, sizeof(w));
		}
		memcpy(to + n - sizeof(w), &last, sizeof(w));
	} else if (n >= sizeof(half)) {
		memcpy(&half, from, sizeof(half));
		memcpy(&end, from + n - sizeof(end), sizeof(end));
		memcpy(to, &half, sizeof(half));
		memcpy(to + n - sizeof(end), &end, sizeof(end));
	} else {
		for (size_t i = 0; i < n; i++)
			to[i] = from[i];
	}
}

/* Room for n bytes at one place, NULL where they are too many for that. */
static inline unsigned char *
sink_room(struct sink *k, size_t n)
{
	if (n > sizeof(k->b) - k->n)
		sink_drain(k);
	return n > sizeof(k->b) ? NULL : k->b + k->n;
}

static inline void
sink_add(struct sink *k, const void *p, size_t n)
{
	if (n > sizeof(k->b) - k->n) {
		sink_far(k, p, n);
		return;
	}
	sink_copy(k->b + k->n, p, n);
	k->n += n;
}

#endif
