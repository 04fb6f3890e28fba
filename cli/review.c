/* review: fetches one change and recomputes the digest of what was sent */
#include "review.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "diff/image.h"
#include "diff/seal.h"

/* One fetch under way. */
struct fetch {
	const char *id;
	const struct review_sink *sink;
	struct review *out;
	struct digest *hash;
	struct seal *seal;
	struct err e; /* why it was stopped */
};

void
review_release(struct review *r)
{
	json_decref(r->header);
	memset(r, 0, sizeof(*r));
}

bool
review_is_pending(const json_t *header)
{
	const char *s = json_string_value(json_object_get(header, "status"));

	return s != NULL && strcmp(s, "pending") == 0;
}

uint64_t
review_changed(const json_t *header)
{
	static const char *const counts[] = { "inserted", "updated",
		"deleted" };
	json_t *tables = json_object_get(header, "tables"), *t;
	uint64_t sum = 0;
	size_t i;

	json_array_foreach (tables, i, t)
		for (size_t k = 0; k < 3; k++) {
			json_int_t n =
			    json_integer_value(json_object_get(t, counts[k]));

			sum += n > 0 ? (uint64_t)n : 0;
		}
	return sum;
}

static bool
is_digest(const char *s)
{
	return s != NULL && strlen(s) == DIGEST_HEX_SIZE - 1 &&
	       strspn(s, "0123456789abcdef") == DIGEST_HEX_SIZE - 1;
}

static bool
take_header(struct fetch *f, json_t *header)
{
	const char *id = json_string_value(json_object_get(header, "id"));
	const char *d = json_string_value(json_object_get(header, "digest"));

	if (!json_is_object(header) || id == NULL || strcmp(id, f->id) != 0) {
		err_set(&f->e, ERR_INPUT,
		    "the daemon answers for another change");
		return false;
	}
	if (is_digest(d))
		memcpy(f->out->digest, d, DIGEST_HEX_SIZE);
	if (review_is_pending(header) && !is_digest(d)) {
		err_set(&f->e, ERR_INPUT, "a pending change without a digest");
		return false;
	}
	f->out->header = json_incref(header);
	f->sink->header(f->sink->arg, header);
	return true;
}

static bool
take_row(struct fetch *f, const json_t *row)
{
	unsigned char hash[DIGEST_SIZE];

	if (image_hash_json(row, f->hash, hash, &f->e) == -1 ||
	    seal_add(f->seal, hash, &f->e) == -1)
		return false;
	f->out->rows++;
	f->sink->row(f->sink->arg, row);
	return true;
}

static bool
take(void *arg, json_t *data)
{
	struct fetch *f = arg;

	return f->out->header == NULL ? take_header(f, data)
	                              : take_row(f, data);
}

static json_t *
arguments(const char *id, const struct window *w)
{
	json_t *args = json_pack("{s:s}", "change", id);

	if (w->table != NULL)
		json_object_set_new(args, "table", json_string(w->table));
	if (w->offset >= 0)
		json_object_set_new(args, "offset", json_integer(w->offset));
	if (w->limit >= 0)
		json_object_set_new(args, "limit", json_integer(w->limit));
	return args;
}

/* The rows must give the digest that the daemon claims for them. */
static void
compare(struct fetch *f, struct reply *r)
{
	char digest[DIGEST_HEX_SIZE];
	int rc;

	while ((rc = seal_step(f->seal, f->out->header, digest, &f->e)) == 1)
		continue;
	if (rc == -1) {
		reply_fail(r, CTL_NO, "BROKEN_ANSWER",
		    "cannot compute the digest of '%s': %s", f->id, f->e.text);
		return;
	}
	if (strcmp(digest, f->out->digest) != 0) {
		reply_fail(r, CTL_NO, "DIGEST_MISMATCH",
		    "DO NOT TRUST THIS VIEW of %s: what the daemon sent has the "
		    "digest %s, but it claims %s",
		    f->id, digest, f->out->digest);
		return;
	}
	f->out->complete = true;
}

static void
finish(struct fetch *f, const struct window *w, struct reply *r)
{
	struct review *out = f->out;
	bool at_end; /* next is null */
	json_int_t total;

	if (f->e.code != ERR_NONE) {
		reply_fail(r, CTL_NO, "BROKEN_ANSWER",
		    "the daemon's answer about %s makes no sense: %s", f->id,
		    f->e.text);
		return;
	}
	if (r->exit != CTL_DONE)
		return;
	if (out->header == NULL) {
		reply_fail(r, CTL_UNREACHABLE, "BROKEN_ANSWER",
		    "the daemon said nothing about %s", f->id);
		return;
	}
	at_end = !json_is_integer(json_object_get(r->ok, "next"));
	total = json_integer_value(json_object_get(r->ok, "total"));
	out->total = total > 0 ? (uint64_t)total : out->rows;
	if (review_is_pending(out->header) && at_end && w->table == NULL &&
	    w->offset <= 0)
		compare(f, r);
}

enum ctl_exit
review_fetch(const struct client *c, const char *id, const struct window *w,
    const struct review_sink *sink, struct review *out, struct reply *r)
{
	struct fetch f = { .id = id, .sink = sink, .out = out };

	memset(out, 0, sizeof(*out));
	f.hash = digest_new();
	f.seal = seal_new(-1);
	client_ask(c, CTL_SHOW, arguments(id, w), take, &f, r);
	finish(&f, w, r);
	seal_free(f.seal);
	digest_free(f.hash);
	return r->exit;
}
