/* image: one row as it was and as it is, every value as the server's text */
#ifndef AIRLOCK_DIFF_IMAGE_H
#define AIRLOCK_DIFF_IMAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/text.h"

enum image_op { IMAGE_INSERT, IMAGE_UPDATE, IMAGE_DELETE, IMAGE_NOPS };
extern const char *const image_op_name[IMAGE_NOPS]; /* "insert" ... */

struct value {
	const char *p; /* NULL is SQL NULL */
	size_t len;
};

/* Where a row version lives: leaf table's oid and ctid. */
struct rowid {
	uint32_t leaf; /* 0: none */
	uint32_t block;
	uint16_t item;
};

/*
 * Lends everything.  `names` are column names in table order, `key[i]` is true
 * for the columns that name the row (none where the table has no key).
 * before is NULL for an insert, after is NULL for a delete.
 */
struct image {
	const char *table; /* "schema.name" of the table as shown */
	enum image_op op;
	bool collateral;
	size_t ncols;
	const char *const *names;
	const bool *key;
	const struct value *before;
	const struct value *after;
	struct rowid was, is;
	uint64_t shape;       /* image_shape() of those with the same table,
	                         names and key; 0: these must be compared */
	const json_t *filled; /* what a replay leaves out, where it is known
	                         before the row is stored, or NULL */
};

/* A number that no image has yet. */
uint64_t image_shape(void);

/* What is the same for all rows of a table is kept there from one call to the
 * next; any form does, a zeroed one too. */
struct form;

/*
 * Appends the row as one line of JSON without a newline:
 * {"table":..,"op":..,"collateral":..,"key":{..}|null,"before":{..}|null,
 *  "after":{..}|null} - values as text or null; key from before, for an insert
 * from after.
 */
void image_json(const struct image *im, struct form *f, struct text *out);
/* True where before and after are there and every value's text is equal. */
bool image_is_unchanged(const struct image *im);
/* The row's part in the digest: SHA-256 of its encoding (docs/digest.md). */
void image_hash(const struct image *im, struct form *f, struct digest *d,
    unsigned char out[DIGEST_SIZE]);
/* The same for the replay digest: without the columns of the array `filled`
 * where the change itself wrote them. */
void image_hash_replay(const struct image *im, struct form *f,
    const json_t *filled, struct digest *d, unsigned char out[DIGEST_SIZE]);
/* image_hash from the JSON form, for whoever was sent rows. ERR_INPUT. */
int image_hash_json(const json_t *row, struct digest *d,
    unsigned char out[DIGEST_SIZE], struct err *e) MUST_CHECK;

/* "(block,item)" as the server writes a ctid; leaf as it writes an oid. */
int rowid_parse(const char *leaf, const char *ctid, struct rowid *r,
    struct err *e) MUST_CHECK;
/* The place alone. */
int rowid_parse_ctid(const char *ctid, struct rowid *r,
    struct err *e) MUST_CHECK;
/* The same written: "leaf (block,item)", and the place alone, without a NUL;
 * each gives the end of what it wrote, of less than ROWID_SIZE bytes. */
#define ROWID_SIZE 40
char *rowid_put(char *p, const struct rowid *r);
char *rowid_put_ctid(char *p, const struct rowid *r);
/* Appends the place as an item of an array literal (text_add_item). */
void rowid_add_ctid(struct text *array, const struct rowid *r);

#endif
