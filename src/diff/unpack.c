/* unpack: a stored row taken apart again */
#include "diff/unpack.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/*
 * Each of these takes something that p begins with and returns what follows
 * it, or NULL where it is not there; all hand a NULL p on.  The text ends with
 * a NUL, which none of them passes.
 */
static char *
skip(char *p, const char *word)
{
	size_t n = strlen(word);

	return p != NULL && strncmp(p, word, n) == 0 ? p + n : NULL;
}

static int
hex(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *d = c != '\0' ? strchr(digits, c) : NULL;

	return d != NULL ? (int)(d - digits) : -1;
}

/* The escapes of text_add_json: \" \\ \n \u00XX; decoded to *to. */
static char *
escape(char *p, char *to)
{
	int high, low;

	if (p[1] == 'n' || p[1] == '"' || p[1] == '\\') {
		*to = p[1];
		if (p[1] == 'n')
			*to = '\n';
		return p + 2;
	}
	if (strncmp(p + 1, "u00", 3) != 0)
		return NULL;
	high = hex(p[4]);
	low = high >= 0 ? hex(p[5]) : -1;
	if (low < 0)
		return NULL;
	*to = (char)(high * 16 + low);
	return p + 6;
}

/* A string, decoded where it stands. */
static char *
string(char *p, const char **s, size_t *len)
{
	char *to;

	if ((p = skip(p, "\"")) == NULL)
		return NULL;
	*s = p;
	to = p += strcspn(p, "\"\\");
	while (*p != '"') {
		if (*p == '\0')
			return NULL;
		if (*p == '\\') {
			if ((p = escape(p, to++)) == NULL)
				return NULL;
		} else {
			*to++ = *p++;
		}
	}
	*len = (size_t)(to - *s);
	*to = '\0';
	return p + 1;
}

static void
grow(struct columns *c)
{
	c->size = c->size != 0 ? 2 * c->size : 16;
	c->names = mem_grow(c->names, c->size, sizeof(*c->names));
	c->values = mem_grow(c->values, c->size, sizeof(*c->values));
}

static char *
column(char *p, struct columns *c)
{
	struct value *v;
	size_t len;

	if (c->n == c->size)
		grow(c);
	v = &c->values[c->n];
	p = skip(string(p, &c->names[c->n], &len), ":");
	if (p == NULL)
		return NULL;
	c->n++;
	if (*p == '"')
		return string(p, &v->p, &v->len);
	v->p = NULL;
	v->len = 0;
	return skip(p, "null");
}

static char *
columns(char *p, const char *what, struct columns *c)
{
	c->n = 0;
	c->there = false;
	if ((p = skip(p, what)) == NULL)
		return NULL;
	if (*p == 'n')
		return skip(p, "null");
	p = skip(p, "{");
	c->there = true;
	if (c->size == 0)
		grow(c); /* a table may have no columns, but it has rows */
	if (p != NULL && *p == '}')
		return p + 1;
	while ((p = column(p, c)) != NULL) {
		if (*p == '}')
			return p + 1;
		p = skip(p, ",");
	}
	return NULL;
}

static char *
head(struct unpacked *u, const struct rowline *l)
{
	char *p, *q = NULL;
	size_t len;
	int i = 0;

	if (u->size <= l->json_len) {
		u->size = 2 * l->json_len + 1;
		u->text = mem_grow(u->text, u->size, 1);
	}
	memcpy(u->text, l->line, l->json_len);
	u->text[l->json_len] = '\0';
	p = string(skip(u->text, "{\"table\":"), &u->table, &len);
	p = skip(p, ",\"op\":\"");
	for (; i < IMAGE_NOPS && q == NULL; i++) {
		u->op = (enum image_op)i;
		q = skip(p, image_op_name[i]);
	}
	q = skip(q, "\",\"collateral\":");
	u->collateral = q != NULL && *q == 't';
	return skip(q, u->collateral ? "true" : "false");
}

static int
broken(struct err *e)
{
	return err_set(e, ERR_BUG, "a stored row cannot be read");
}

int
unpack_head(struct unpacked *u, const struct rowline *l, struct err *e)
{
	return head(u, l) != NULL ? 0 : broken(e);
}

int
unpack(struct unpacked *u, const struct rowline *l, struct err *e)
{
	char *p = head(u, l);

	p = columns(p, ",\"key\":", &u->key);
	p = columns(p, ",\"before\":", &u->before);
	p = columns(p, ",\"after\":", &u->after);
	p = skip(p, "}");
	return p != NULL && *p == '\0' ? 0 : broken(e);
}

static void
release(struct columns *c)
{
	free(c->names);
	free(c->values);
}

void
unpack_release(struct unpacked *u)
{
	free(u->text);
	release(&u->key);
	release(&u->before);
	release(&u->after);
	memset(u, 0, sizeof(*u));
}
