/* image: one row as it was and as it is, every value as the server's text */
#include "diff/image.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const char *const image_op_name[] = {
	[IMAGE_INSERT] = "insert",
	[IMAGE_UPDATE] = "update",
	[IMAGE_DELETE] = "delete",
};
static_assert(sizeof(image_op_name) / sizeof(image_op_name[0]) == IMAGE_NOPS,
    "every operation has a name");

#define FEW_COLUMNS 64 /* so many are sorted without allocating */
#define ROW_MEMBERS 6  /* table, op, collateral, key, before, after */

/*
 * What goes into a digest or a text, gathered so that the call behind is made
 * once for most rows: it costs more than the few bytes of a field do.
 */
struct sink {
	struct digest *d; /* or */
	struct text *t;
	size_t n;
	unsigned char b[4096];
};

static void
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

static void
drain(struct sink *k)
{
	put_through(k, k->b, k->n);
	k->n = 0;
}

static void
put_bytes(struct sink *k, const void *p, size_t n)
{
	if (n > sizeof(k->b) - k->n)
		drain(k);
	if (n > sizeof(k->b)) {
		put_through(k, p, n);
		return;
	}
	if (n > 0)
		memcpy(k->b + k->n, p, n);
	k->n += n;
}

/* The encodings of digest_u64, digest_null and digest_field. */
static void
put_tagged(struct sink *k, char tag, uint64_t v)
{
	unsigned char b[9] = { (unsigned char)tag };

	v = htobe64(v);
	memcpy(b + 1, &v, sizeof(v));
	put_bytes(k, b, sizeof(b));
}

static void
put_null(struct sink *k)
{
	put_bytes(k, "n", 1);
}

/* Eight bytes at a time: every value of every row passes here. */
static bool
is_ascii(const char *p, size_t n)
{
	uint64_t high = 0, word;
	size_t i = 0;

	for (; n - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, p + i, sizeof(word));
		high |= word;
	}
	for (; i < n; i++)
		high |= (unsigned char)p[i];
	return (high & 0x8080808080808080u) == 0;
}

static void
put_text(struct sink *k, const char *p, size_t n)
{
	struct text mended = { 0 };

	/* As a reader of the JSON form gets to see it; a database in SQL_ASCII
	 * may hold anything. */
	if (!is_ascii(p, n) && !text_is_utf8(p, n)) {
		text_add_utf8(&mended, p, n);
		p = text_str(&mended);
		n = mended.len;
	}
	put_tagged(k, 's', n);
	put_bytes(k, p, n);
	text_release(&mended);
}

static void
put_value(struct sink *k, const char *name, const struct value *v)
{
	put_text(k, name, strlen(name));
	if (v->p != NULL)
		put_text(k, v->p, v->len);
	else
		put_null(k);
}

static void
put_head(struct sink *k, const char *table, enum image_op op, bool collateral)
{
	put_text(k, table, strlen(table));
	put_text(k, image_op_name[op], strlen(image_op_name[op]));
	put_tagged(k, 'u', collateral ? 1 : 0);
}

/* A column and where it stands in the table. */
struct place {
	const char *name;
	size_t at;
};

static int
by_name(const void *a, const void *b)
{
	const struct place *p = a, *q = b;

	return strcmp(p->name, q->name);
}

/* Few columns come here once a row, so they are inserted in place. */
static void
sort_places(struct place *order, size_t n)
{
	if (n > FEW_COLUMNS) {
		qsort(order, n, sizeof(*order), by_name);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		struct place p = order[i];
		size_t j = i;

		for (; j > 0 && strcmp(order[j - 1].name, p.name) > 0; j--)
			order[j] = order[j - 1];
		order[j] = p;
	}
}

static size_t
count_key(const struct image *im)
{
	size_t n = 0;

	for (size_t i = 0; im->key != NULL && i < im->ncols; i++)
		n += im->key[i];
	return n;
}

/* The values that the key is read from. */
static const struct value *
key_values(const struct image *im)
{
	return im->before != NULL ? im->before : im->after;
}

static void
put_part(struct sink *k, const struct image *im, const struct place *order,
    const struct value *v)
{
	if (v == NULL) {
		put_null(k);
		return;
	}
	put_tagged(k, 'u', im->ncols);
	for (size_t i = 0; i < im->ncols; i++)
		put_value(k, order[i].name, &v[order[i].at]);
}

static void
put_key(struct sink *k, const struct image *im, const struct place *order)
{
	const struct value *v = key_values(im);
	size_t n = count_key(im);

	if (v == NULL || n == 0) {
		put_null(k);
		return;
	}
	put_tagged(k, 'u', n);
	for (size_t i = 0; i < im->ncols; i++)
		if (im->key[order[i].at])
			put_value(k, order[i].name, &v[order[i].at]);
}

void
image_hash(const struct image *im, struct digest *d,
    unsigned char out[DIGEST_SIZE])
{
	struct place few[FEW_COLUMNS], *many = NULL, *order = few;
	struct sink k;

	sink_init(&k, d, NULL);
	if (im->ncols > FEW_COLUMNS)
		order = many = mem_array(im->ncols, sizeof(*many));
	for (size_t i = 0; i < im->ncols; i++) {
		order[i].name = im->names[i];
		order[i].at = i;
	}
	sort_places(order, im->ncols);
	digest_reset(d);
	put_head(&k, im->table, im->op, im->collateral);
	put_key(&k, im, order);
	put_part(&k, im, order, im->before);
	put_part(&k, im, order, im->after);
	drain(&k);
	digest_end(d, out);
	free(many);
}

static int
put_object(struct sink *k, json_t *part, struct place *order, const char *what,
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
		order[n++].name = name;
	}
	sort_places(order, n);
	put_tagged(k, 'u', n);
	for (size_t i = 0; i < n; i++) {
		struct value cell;

		v = json_object_get(part, order[i].name);
		cell.p = json_string_value(v);
		cell.len = json_string_length(v);
		put_value(k, order[i].name, &cell);
	}
	return 0;
}

static int
put_member(struct sink *k, const json_t *row, const char *what, struct err *e)
{
	json_t *part = json_object_get(row, what);
	struct place *order;
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
	put_head(&k, json_string_value(table), op, json_is_true(collateral));
	if (put_member(&k, row, "key", e) == -1 ||
	    put_member(&k, row, "before", e) == -1 ||
	    put_member(&k, row, "after", e) == -1)
		return -1;
	drain(&k);
	digest_end(d, out);
	return 0;
}

static void
put_word(struct sink *k, const char *s)
{
	put_bytes(k, s, strlen(s));
}

#define ONES 0x0101010101010101u
#define HIGHS 0x8080808080808080u

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
	uint64_t bad = 0, w;

	for (size_t i = 0; i < n; i += sizeof(w)) {
		w = ONES * ' ';
		memcpy(&w, p + i, n - i < sizeof(w) ? n - i : sizeof(w));
		bad |= (w & HIGHS) | ((w - ONES * ' ') & ~w & HIGHS) |
		       zeros(w ^ ONES * '"') | zeros(w ^ ONES * '\\');
	}
	return bad == 0;
}

static void
put_json(struct sink *k, const char *p, size_t n)
{
	if (!is_plain(p, n)) {
		drain(k);
		text_add_json(k->t, p, n);
		return;
	}
	put_bytes(k, "\"", 1);
	put_bytes(k, p, n);
	put_bytes(k, "\"", 1);
}

static void
put_json_columns(struct sink *k, const struct image *im, const struct value *v,
    const bool *only)
{
	bool first = true;

	put_bytes(k, "{", 1);
	for (size_t i = 0; i < im->ncols; i++) {
		if (only != NULL && !only[i])
			continue;
		if (!first)
			put_bytes(k, ",", 1);
		first = false;
		put_json(k, im->names[i], strlen(im->names[i]));
		put_bytes(k, ":", 1);
		if (v[i].p != NULL)
			put_json(k, v[i].p, v[i].len);
		else
			put_bytes(k, "null", 4);
	}
	put_bytes(k, "}", 1);
}

static void
put_json_part(struct sink *k, const char *what, const struct image *im,
    const struct value *v, const bool *only)
{
	put_word(k, what);
	if (v == NULL)
		put_word(k, "null");
	else
		put_json_columns(k, im, v, only);
}

void
image_json(const struct image *im, struct text *out)
{
	struct sink k;

	sink_init(&k, NULL, out);
	put_word(&k, "{\"table\":");
	put_json(&k, im->table, strlen(im->table));
	put_word(&k, ",\"op\":\"");
	put_word(&k, image_op_name[im->op]);
	put_word(&k, im->collateral ? "\",\"collateral\":true"
				    : "\",\"collateral\":false");
	put_json_part(&k, ",\"key\":", im,
	    count_key(im) != 0 ? key_values(im) : NULL, im->key);
	put_json_part(&k, ",\"before\":", im, im->before, NULL);
	put_json_part(&k, ",\"after\":", im, im->after, NULL);
	put_bytes(&k, "}", 1);
	drain(&k);
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
		    (a->len != b->len || memcmp(a->p, b->p, a->len) != 0))
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
rowid_parse(const char *leaf, const char *ctid, struct rowid *r, struct err *e)
{
	uint64_t oid = 0, block = 0, item = 0;
	const char *end = number(leaf, "", UINT32_MAX, &oid), *p;

	p = number(ctid, "(", UINT32_MAX, &block);
	p = number(p, ",", UINT16_MAX, &item);
	if (end == NULL || *end != '\0' || p == NULL || strcmp(p, ")") != 0)
		return err_set(e, ERR_INPUT,
		    "not the place of a row version: '%.20s' '%.40s'", leaf,
		    ctid);
	r->leaf = (uint32_t)oid;
	r->block = (uint32_t)block;
	r->item = (uint16_t)item;
	return 0;
}
