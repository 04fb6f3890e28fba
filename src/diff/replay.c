/* replay: the digest of what a second run of a change would show as well */
#include "diff/replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "diff/fold.h"
#include "diff/form.h"

#define STEP_ROWS 8192

struct replay {
	struct rowfile *f;
	json_t *header;
	bool read; /* or need not be */
	struct rowcursor cursor;
	struct fold row;
	struct form form;
	struct digest *d;
	struct seal *seal, *own; /* NULL: seal is the file's */
};

bool
replay_leaves_out(const json_t *header)
{
	json_t *tables = json_object_get(header, "tables"), *t;
	size_t i;

	json_array_foreach (tables, i, t)
		if (json_array_size(json_object_get(t, "filled")) > 0)
			return true;
	return false;
}

const json_t *
replay_filled(const json_t *header, const char *table, bool collateral)
{
	json_t *tables = json_object_get(header, "tables"), *t;
	size_t i;

	json_array_foreach (tables, i, t) {
		const char *name =
		    json_string_value(json_object_get(t, "table"));

		if (name != NULL && strcmp(name, table) == 0 &&
		    json_is_true(json_object_get(t, "collateral")) ==
			collateral)
			return json_object_get(t, "filled");
	}
	return NULL;
}

struct replay *
replay_new(struct rowfile *f, json_t *header)
{
	struct replay *r = mem_new(sizeof(*r));

	r->f = f;
	r->header = json_incref(header);
	r->d = digest_new();
	r->seal = rowfile_seal_replay(f, header);
	r->read = r->seal != NULL;
	if (r->seal == NULL)
		r->seal = r->own = seal_new(-1);
	rowcursor_init(&r->cursor, f);
	return r;
}

void
replay_free(struct replay *r)
{
	if (r == NULL)
		return;
	rowcursor_release(&r->cursor);
	fold_release(&r->row);
	form_release(&r->form);
	seal_free(r->own);
	digest_free(r->d);
	json_decref(r->header);
	free(r);
}

/* 1 where there are more rows. */
static int
hash_some(struct replay *r, struct err *e)
{
	unsigned char hash[DIGEST_SIZE];
	struct rowline l;
	int rc = 1;

	for (int i = 0; i < STEP_ROWS; i++) {
		const json_t *filled;

		if ((rc = rowcursor_next(&r->cursor, &l, e)) != 1)
			return rc;
		if (fold_none(&r->row, &l, e) == -1)
			return -1;
		filled = replay_filled(r->header, r->row.im.table,
		    r->row.im.collateral);
		if (json_array_size(filled) > 0)
			image_hash_replay(&r->row.im, &r->form, filled, r->d,
			    hash);
		else
			memcpy(hash, l.hash, sizeof(hash));
		if (seal_add(r->seal, hash, e) == -1)
			return -1;
	}
	return rc;
}

int
replay_step(struct replay *r, char out[DIGEST_HEX_SIZE], struct err *e)
{
	char *const one[SEAL_NDIGESTS] = { [SEAL_REPLAY] = out };
	int rc;

	if (r->read)
		return seal_step_all(r->seal, r->header, one, e);
	if ((rc = hash_some(r, e)) == -1)
		return -1;
	r->read = rc == 0;
	return 1;
}
