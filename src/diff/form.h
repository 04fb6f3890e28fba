/* form: what all rows of one table have in common, encoded once */
#ifndef AIRLOCK_DIFF_FORM_H
#define AIRLOCK_DIFF_FORM_H

#include "diff/image.h"

/* A piece of form->bytes. */
struct form_piece {
	size_t at, len;
};

/*
 * The table's name and those of its columns, as the digest and as JSON have
 * them.  It is compared with each image by what those are, not by where they
 * lie, and made anew where they differ; so one form serves any row, and fast
 * those that come one after the other from one table.
 */
struct form {
	bool made;
	uint64_t shape;          /* of the last image, or 0 */
	struct text bytes;       /* of all pieces */
	struct form_piece table; /* as it is, with its NUL */
	struct form_piece table_field, table_json;
	size_t ncols, size, nkey;
	bool *key;
	size_t *order; /* columns by their names' bytes */
	struct form_piece *name, *field, *label; /* label: ,"name": */
};

/* Makes the form that of the image, whose texts it does not keep.  A zeroed
 * struct is a form of no table. */
void form_fit(struct form *f, const struct image *im);
void form_release(struct form *f);

/* Lends until the next form_fit. */
static inline const char *
form_bytes(const struct form *f, struct form_piece p)
{
	return f->bytes.s + p.at;
}

#endif
