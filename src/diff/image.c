/* image: one row as it was and as it is, every value as the server's text */
#include "diff/image.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "diff/form.h"
#include "diff/sink.h"

const char *const image_op_name[] = {
	[IMAGE_INSERT] = "insert",
	[IMAGE_UPDATE] = "update",
	[IMAGE_DELETE] = "delete",
};
static_assert(sizeof(image_op_name) / sizeof(image_op_name[0]) == IMAGE_NOPS,
    "every operation has a name");

#define ONES 0x0101010101010101u
#define HIGHS 0x8080808080808080u
#define FIELD_HEAD 9   /* bytes of a field before its own: digest_field */
#define FEW_COLUMNS 64 /* of so many it is noted without allocating */
#define ROW_MEMBERS 6  /* table, op, collateral, key, before, after */

uint64_t
image_shape(void)
{
	static uint64_t last;

	return ++last;
}

/* The encodings of digest_u64, digest_null and digest_field. */
static void
put_tagged(struct sink *k, char tag, uint64_t v)
{
	unsigned char b[9] = { (unsigned char)tag };

	v = htobe64(v);
	memcpy(b + 1, &v, sizeof(v));
	sink_add(k, b, sizeof(b));
}

static void
put_null(struct sink *k)
{
	sink_add(k, "n", 1);
}

/* Eight bytes at a time, as every value of every row passes here: the word at
 * p, or what is left there, some of it twice, with blanks behind it. */
static inline uint64_t
word_at(const char *p, size_t left)
{
	uint64_t w = ONES * ' ';
	uint32_t half[2] = { 0 };

	if (left >= sizeof(w)) {
		memcpy(&w, p, sizeof(w));
	} else if (left >= sizeof(*half)) {
		memcpy(&half[0], p, sizeof(*half));
		memcpy(&half[1], p + left - sizeof(*half), sizeof(*half));
		w = (uint64_t)half[1] << 32 | half[0];
	} else if (left > 0) {
		half[0] = (unsigned char)p[0];
		half[0] |= (uint32_t)(unsigned char)p[left / 2] << 8;
		half[0] |= (uint32_t)(unsigned char)p[left - 1] << 16;
		w = (w & ~(uint64_t)0xffffff) | half[0];
	}
	return w;
}

static bool
is_ascii(const char *p, size_t n)
{
	uint64_t high = 0;

	for (size_t i = 0; i < n; i += sizeof(high))
		high |= word_at(p + i, n - i);
	return (high & HIGHS) == 0;
}

/* As a reader of the JSON form gets to see it; a database in SQL_ASCII may hold
 * anything. */
static void
put_mended(struct sink *k, const char *p, size_t n)
{
	struct text mended = { 0 };

	text_add_utf8(&mended, p, n);
	put_tagged(k, 's', mended.len);
	sink_add(k, text_str(&mended), mended.len);
	text_release(&mended);
}

static inline void
put_text(struct sink *k, const char *p, size_t n)
{
	if (!is_ascii(p, n) && !text_is_utf8(p, n)) {
		put_mended(k, p, n);
		return;
	}
	put_tagged(k, 's', n);
	sink_add(k, p, n);
}

static void
put_op(struct sink *k, enum image_op op, bool collateral)
{
	put_text(k, image_op_name[op], strlen(image_op_name[op]));
	put_tagged(k, 'u', collateral ? 1 : 0);
}

/* The values that the key is read from. */
static const struct value *
key_values(const struct image *im)
{
	return im->before != NULL ? im->before : im->after;
}

static inline void
put_piece(struct sink *k, const struct form *f, struct form_piece p)
{
	sink_add(k, form_bytes(f, p), p.len);
}

/* A column's name and its text in one piece; the rare ones one by one. */
static inline void
put_column(struct sink *k, const struct form *f, size_t i,
    const struct value *v)
{
	struct form_piece field = f->field[i];
	uint64_t len = htobe64(v->len);
	unsigned char *to;

	if (v->p == NULL || !is_ascii(v->p, v->len) ||
	    (to = sink_room(k, field.len + v->len + FIELD_HEAD)) == NULL) {
		put_piece(k, f, field);
		if (v->p != NULL)
			put_text(k, v->p, v->len);
		else
			put_null(k);
		return;
	}
	sink_copy(to, form_bytes(f, field), field.len);
	to += field.len;
	*to++ = 's';
	memcpy(to, &len, sizeof(len));
	sink_copy(to + sizeof(len), v->p, v->len);
	k->n += field.len + v->len + FIELD_HEAD;
}

static void
put_columns(struct sink *k, const struct form *f, const struct value *v,
    const bool *only)
{
	for (size_t i = 0; i < f->ncols; i++)
		if (only == NULL || only[f->order[i]])
			put_column(k, f, f->order[i], &v[f->order[i]]);
}

static void
put_part(struct sink *k, const struct form *f, const struct value *v, size_t n,
    const bool *only)
{
	if (v == NULL) {
		put_null(k);
		return;
	}
	put_tagged(k, 'u', n);
	put_columns(k, f, v, only);
}

static bool
is_filled(const json_t *filled, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach (filled, i, one)
		if (strcmp(json_string_value(one), name) == 0)
			return true;
	return false;
}

/* What stood there before is data, and no second run would find another. */
static void
put_without(struct sink *k, const struct form *f, const struct image *im,
    const json_t *filled)
{
	bool few[2 * FEW_COLUMNS], *many = NULL, *stays = few, *key;
	size_t n = 0, nkey = 0;

	if (f->ncols > FEW_COLUMNS)
		stays = many = mem_array(2 * f->ncols, sizeof(*many));
	key = stays + f->ncols;
	for (size_t i = 0; i < f->ncols; i++) {
		stays[i] = !is_filled(filled, im->names[i]);
		key[i] = f->key[i] && (stays[i] || im->op != IMAGE_INSERT);
		n += stays[i];
		nkey += key[i];
	}
	put_part(k, f, f->nkey != 0 ? key_values(im) : NULL, nkey, key);
	put_part(k, f, im->before, f->ncols, NULL);
	put_part(k, f, im->after, n, stays);
	free(many);
}

static void
hash_row(const struct image *im, struct form *f, const json_t *filled,
    struct digest *d, unsigned char out[DIGEST_SIZE])
{
	struct sink k;

	form_fit(f, im);
	sink_init(&k, d, NULL);
	digest_reset(d);
	put_piece(&k, f, f->table_field);
	put_op(&k, im->op, im->collateral);
	if (filled != NULL) {
		put_without(&k, f, im, filled);
	} else {
		put_part(&k, f, f->nkey != 0 ? key_values(im) : NULL, f->nkey,
		    f->key);
		put_part(&k, f, im->before, f->ncols, NULL);
		put_part(&k, f, im->after, f->ncols, NULL);
	}
	sink_drain(&k);
	digest_end(d, out);
}

void
image_hash(const struct image *im, struct form *f, struct digest *d,
    unsigned char out[DIGEST_SIZE])
{
	hash_row(im, f, NULL, d, out);
}

void
image_hash_replay(const struct image *im, struct form *f, const json_t *filled,
    struct digest *d, unsigned char out[DIGEST_SIZE])
{
	hash_row(im, f, filled, d, out);
}

static int
by_name(const void *a, const void *b)
{
	const char *const *p = a, *const *q = b;

	return strcmp(*p, *q);
}

static int
put_object(struct sink *k, json_t *part, const char **order, const char *what,
    struct err *e)
{
	size_t n = 0;
	const char *name;
	json_t *v;

	json_object_foreach (part, name, v) {
		if (!json_is_string(v) && !json_is_null(v))
			return err_set(e, ERR_INPUT,
			    "a value in '%s' is neither a string nor null",
			    what);
		order[n++] = name;
	}
	if (n > 1)
		qsort(order, n, sizeof(*order), by_name);
	put_tagged(k, 'u', n);
	for (size_t i = 0; i < n; i++) {
		v = json_object_get(part, order[i]);
		put_text(k, order[i], strlen(order[i]));
		if (json_is_string(v))
			put_text(k, json_string_value(v),
			    json_string_length(v));
		else
			put_null(k);
	}
	return 0;
}

static int
put_member(struct sink *k, const json_t *row, const char *what, struct err *e)
{
	json_t *part = json_object_get(row, what);
	const char **order;
	int r;

	if (json_is_null(part)) {
		put_null(k);
		return 0;
	}
	if (!json_is_object(part))
		return err_set(e, ERR_INPUT,
		    "'%s' of a row is neither an object nor null", what);
	order = mem_array(json_object_size(part), sizeof(*order));
	r = put_object(k, part, order, what, e);
	free(order);
	return r;
}

static int
find_op(const json_t *row, enum image_op *op, struct err *e)
{
	const char *name = json_string_value(json_object_get(row, "op"));
	bool before = json_is_object(json_object_get(row, "before"));
	bool after = json_is_object(json_object_get(row, "after"));
	int i = 0;

	while (i < IMAGE_NOPS &&
	       (name == NULL || strcmp(name, image_op_name[i]) != 0))
		i++;
	if (i == IMAGE_NOPS)
		return err_set(e, ERR_INPUT, "a row has no known 'op'");
	if (before != (i != IMAGE_INSERT) || after != (i != IMAGE_DELETE))
		return err_set(e, ERR_INPUT,
		    "'before' and 'after' of a row do not fit its op '%s'",
		    name);
	*op = (enum image_op)i;
	return 0;
}

int
image_hash_json(const json_t *row, struct digest *d,
    unsigned char out[DIGEST_SIZE], struct err *e)
{
	const json_t *table = json_object_get(row, "table");
	const json_t *collateral = json_object_get(row, "collateral");
	enum image_op op = IMAGE_INSERT;
	struct sink k;

	sink_init(&k, d, NULL);
	/* A member that the digest does not cover must not be shown. */
	if (!json_is_string(table) || !json_is_boolean(collateral) ||
	    json_object_size(row) != ROW_MEMBERS)
		return err_set(e, ERR_INPUT,
		    "a row is not {table, op, collateral, key, before, after}");
	if (find_op(row, &op, e) == -1)
		return -1;
	digest_reset(d);
	put_text(&k, json_string_value(table), json_string_length(table));
	put_op(&k, op, json_is_true(collateral));
	if (put_member(&k, row, "key", e) == -1 ||
	    put_member(&k, row, "before", e) == -1 ||
	    put_member(&k, row, "after", e) == -1)
		return -1;
	sink_drain(&k);
	digest_end(d, out);
	return 0;
}

static inline void
put_word(struct sink *k, const char *s)
{
	sink_add(k, s, strlen(s));
}

/* Has a high bit where a byte of w is 0 (and perhaps above it). */
static uint64_t
zeros(uint64_t w)
{
	return (w - ONES) & ~w & HIGHS;
}

/* True where JSON shows the bytes as they are. */
static bool
is_plain(const char *p, size_t n)
{
	uint64_t bad = 0;

	for (size_t i = 0; i < n; i += sizeof(bad)) {
		uint64_t w = word_at(p + i, n - i);

		bad |= w | ((w - ONES * ' ') & ~w) | zeros(w ^ ONES * '"') |
		       zeros(w ^ ONES * '\\');
	}
	return (bad & HIGHS) == 0;
}

/* ,"name":"value" in one piece, where that needs no escapes. */
static inline void
put_json(struct sink *k, const struct form *f, struct form_piece label,
    const struct value *v)
{
	unsigned char *to;

	if (v->p == NULL || !is_plain(v->p, v->len) ||
	    (to = sink_room(k, label.len + v->len + 2)) == NULL) {
		put_piece(k, f, label);
		if (v->p == NULL) {
			sink_add(k, "null", 4);
			return;
		}
		sink_drain(k);
		text_add_json(k->t, v->p, v->len);
		return;
	}
	sink_copy(to, form_bytes(f, label), label.len);
	to += label.len;
	*to++ = '"';
	sink_copy(to, v->p, v->len);
	to[v->len] = '"';
	k->n += label.len + v->len + 2;
}

static void
put_json_part(struct sink *k, const struct form *f, const struct value *v,
    const bool *only)
{
	bool first = true;

	if (v == NULL) {
		put_word(k, "null");
		return;
	}
	sink_add(k, "{", 1);
	for (size_t i = 0; i < f->ncols; i++) {
		struct form_piece label = f->label[i];

		if (only != NULL && !only[i])
			continue;
		label.at += first; /* its comma */
		label.len -= first;
		first = false;
		put_json(k, f, label, &v[i]);
	}
	sink_add(k, "}", 1);
}

void
image_json(const struct image *im, struct form *f, struct text *out)
{
	struct sink k;

	form_fit(f, im);
	sink_init(&k, NULL, out);
	put_word(&k, "{\"table\":");
	put_piece(&k, f, f->table_json);
	put_word(&k, ",\"op\":\"");
	put_word(&k, image_op_name[im->op]);
	put_word(&k, im->collateral ? "\",\"collateral\":true"
				    : "\",\"collateral\":false");
	put_word(&k, ",\"key\":");
	put_json_part(&k, f, f->nkey != 0 ? key_values(im) : NULL, f->key);
	put_word(&k, ",\"before\":");
	put_json_part(&k, f, im->before, NULL);
	put_word(&k, ",\"after\":");
	put_json_part(&k, f, im->after, NULL);
	sink_add(&k, "}", 1);
	sink_drain(&k);
}

bool
image_is_unchanged(const struct image *im)
{
	if (im->before == NULL || im->after == NULL)
		return false;
	for (size_t i = 0; i < im->ncols; i++) {
		const struct value *a = &im->before[i], *b = &im->after[i];

		if ((a->p == NULL) != (b->p == NULL))
			return false;
		if (a->p != NULL &&
		    (a->len != b->len ||
			(a->p != b->p && memcmp(a->p, b->p, a->len) != 0)))
			return false;
	}
	return true;
}

/* A decimal number of at most max behind `before`; NULL where there is none,
 * else what follows it. */
static const char *
number(const char *p, const char *before, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;
	size_t n = strlen(before);

	if (p == NULL || strncmp(p, before, n) != 0)
		return NULL;
	p += n;
	if (*p < '0' || *p > '9')
		return NULL;
	for (; *p >= '0' && *p <= '9'; p++) {
		v = v * 10 + (uint64_t)(*p - '0');
		if (v > max)
			return NULL;
	}
	*out = v;
	return p;
}

int
rowid_parse_ctid(const char *ctid, struct rowid *r, struct err *e)
{
	uint64_t block = 0, item = 0;
	const char *p = number(ctid, "(", UINT32_MAX, &block);

	p = number(p, ",", UINT16_MAX, &item);
	if (p == NULL || strcmp(p, ")") != 0)
		return err_set(e, ERR_INPUT,
		    "not the place of a row version: '%.40s'", ctid);
	r->block = (uint32_t)block;
	r->item = (uint16_t)item;
	return 0;
}

int
rowid_parse(const char *leaf, const char *ctid, struct rowid *r, struct err *e)
{
	uint64_t oid = 0;
	const char *end = number(leaf, "", UINT32_MAX, &oid);

	if (end == NULL || *end != '\0')
		return err_set(e, ERR_INPUT, "not the oid of a table: '%.20s'",
		    leaf);
	if (rowid_parse_ctid(ctid, r, e) == -1)
		return -1;
	r->leaf = (uint32_t)oid;
	return 0;
}

static char *
put_number(char *p, uint64_t v, char behind)
{
	char digits[20];
	size_t n = 0;

	do
		digits[n++] = (char)('0' + v % 10);
	while ((v /= 10) != 0);
	while (n > 0)
		*p++ = digits[--n];
	*p++ = behind;
	return p;
}

char *
rowid_put(char *p, const struct rowid *r)
{
	p = put_number(p, r->leaf, ' ');
	return rowid_put_ctid(p, r);
}

char *
rowid_put_ctid(char *p, const struct rowid *r)
{
	*p++ = '(';
	p = put_number(p, r->block, ',');
	return put_number(p, r->item, ')');
}

void
rowid_add_ctid(struct text *array, const struct rowid *r)
{
	char item[ROWID_SIZE], *p = item;

	*p++ = array->len > 0 ? ',' : '{';
	*p++ = '"';
	p = rowid_put_ctid(p, r);
	*p++ = '"';
	text_addn(array, item, (size_t)(p - item));
}
