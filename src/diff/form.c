/* form: what all rows of one table have in common, encoded once */
#include "diff/form.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool
is_key(const struct image *im, size_t i)
{
	return im->key != NULL && im->key[i];
}

static bool
fits(const struct form *f, const struct image *im)
{
	if (!f->made || f->ncols != im->ncols ||
	    strcmp(form_bytes(f, f->table), im->table) != 0)
		return false;
	for (size_t i = 0; i < f->ncols; i++)
		if (f->key[i] != is_key(im, i) ||
		    strcmp(form_bytes(f, f->name[i]), im->names[i]) != 0)
			return false;
	return true;
}

static struct form_piece
add(struct form *f, const void *p, size_t n)
{
	struct form_piece piece = { f->bytes.len, n };

	text_addn(&f->bytes, p, n);
	return piece;
}

/* As digest_field has the text that a reader of the JSON form gets to see. */
static struct form_piece
add_field(struct form *f, const char *s)
{
	struct text shown = { 0 };
	unsigned char head[9] = { 's' };
	struct form_piece piece;
	uint64_t len;

	text_add_utf8(&shown, s, strlen(s));
	len = htobe64(shown.len);
	memcpy(head + 1, &len, sizeof(len));
	piece = add(f, head, sizeof(head));
	piece.len += add(f, text_str(&shown), shown.len).len;
	text_release(&shown);
	return piece;
}

static struct form_piece
add_json(struct form *f, const char *before, const char *s, const char *behind)
{
	struct form_piece piece = { f->bytes.len, 0 };

	text_add(&f->bytes, before);
	text_add_json(&f->bytes, s, strlen(s));
	text_add(&f->bytes, behind);
	piece.len = f->bytes.len - piece.at;
	return piece;
}

static void
grow(struct form *f, size_t n)
{
	if (n <= f->size)
		return;
	f->key = mem_grow(f->key, n, sizeof(*f->key));
	f->order = mem_grow(f->order, n, sizeof(*f->order));
	f->name = mem_grow(f->name, n, sizeof(*f->name));
	f->field = mem_grow(f->field, n, sizeof(*f->field));
	f->label = mem_grow(f->label, n, sizeof(*f->label));
	f->size = n;
}

static int
by_name(const void *a, const void *b, void *names)
{
	const size_t *i = a, *k = b;
	const char *const *n = names;

	return strcmp(n[*i], n[*k]);
}

static void
make(struct form *f, const struct image *im)
{
	text_reset(&f->bytes);
	grow(f, im->ncols);
	f->ncols = im->ncols;
	f->nkey = 0;
	f->table = add(f, im->table, strlen(im->table) + 1);
	f->table_field = add_field(f, im->table);
	f->table_json = add_json(f, "", im->table, "");
	for (size_t i = 0; i < im->ncols; i++) {
		const char *name = im->names[i];

		f->key[i] = is_key(im, i);
		f->nkey += f->key[i];
		f->order[i] = i;
		f->name[i] = add(f, name, strlen(name) + 1);
		f->field[i] = add_field(f, name);
		f->label[i] = add_json(f, ",", name, ":");
	}
	if (im->ncols > 1)
		qsort_r(f->order, im->ncols, sizeof(*f->order), by_name,
		    (void *)(uintptr_t)im->names);
	f->made = true;
}

void
form_fit(struct form *f, const struct image *im)
{
	if (im->shape != 0 && im->shape == f->shape)
		return;
	if (!fits(f, im))
		make(f, im);
	f->shape = im->shape;
}

void
form_release(struct form *f)
{
	text_release(&f->bytes);
	free(f->key);
	free(f->order);
	free(f->name);
	free(f->field);
	free(f->label);
	memset(f, 0, sizeof(*f));
}
