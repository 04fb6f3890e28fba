/* mark: what a held change was at each digest that it has had */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/internal.h"

/* Beyond either the oldest are forgotten; the last one never is. */
#define MARKS_MAX 100
#define MARK_COUNTS_MAX 10000 /* tables, of all marks */

/* Tables are only ever added to a change, so the first `ntables` of them are
 * those that it had then. */
struct mark {
	char digest[DIGEST_HEX_SIZE];
	size_t statements;
	enum severity risk;
	bool complete;
	struct mark_counts {
		uint64_t n[IMAGE_NOPS], unchanged;
		bool complete;
	} * tables;
	size_t ntables;
};

static void
forget_first(struct marks *m)
{
	m->ncounts -= m->v[0].ntables;
	free(m->v[0].tables);
	memmove(m->v, m->v + 1, --m->n * sizeof(m->v[0]));
	m->forgot = true;
}

void
marks_add(struct change *c)
{
	struct marks *m = &c->marks;
	struct mark *k;

	m->v = mem_grow(m->v, m->n + 1, sizeof(m->v[0]));
	k = &m->v[m->n++];
	memset(k, 0, sizeof(*k));
	memcpy(k->digest, c->digest, sizeof(k->digest));
	k->statements = json_array_size(c->statements);
	k->risk = c->risk;
	k->complete = c->complete;
	k->ntables = c->ntables;
	k->tables = mem_array(c->ntables + 1, sizeof(k->tables[0]));
	for (size_t i = 0; i < c->ntables; i++) {
		const struct change_table *t = &c->tables[i];

		memcpy(k->tables[i].n, t->n, sizeof(t->n));
		k->tables[i].unchanged = t->unchanged;
		k->tables[i].complete = t->complete;
	}
	m->ncounts += c->ntables;
	while (m->n > 1 && (m->n > MARKS_MAX || m->ncounts > MARK_COUNTS_MAX))
		forget_first(m);
}

void
marks_release(struct marks *m)
{
	while (m->n > 0)
		forget_first(m);
	free(m->v);
	m->v = NULL;
}

static const struct mark *
find(const struct marks *m, const char *digest)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->v[i].digest, digest) == 0)
			return &m->v[i];
	return NULL;
}

static json_t *
mark_json(const struct change *c, const struct mark *k)
{
	json_t *tables = json_array();

	for (size_t i = 0; i < k->ntables; i++) {
		const struct mark_counts *t = &k->tables[i];

		json_array_append_new(tables,
		    json_pack("{s:o, s:I, s:I, s:I, s:I, s:b}", "table",
			shown_json(c->tables[i].name), "inserted",
			(json_int_t)t->n[IMAGE_INSERT], "updated",
			(json_int_t)t->n[IMAGE_UPDATE], "deleted",
			(json_int_t)t->n[IMAGE_DELETE], "unchanged",
			(json_int_t)t->unchanged, "complete", t->complete));
	}
	return json_pack("{s:s, s:I, s:s, s:b, s:o}", "digest", k->digest,
	    "statements", (json_int_t)k->statements, "risk",
	    severity_name[k->risk], "complete", k->complete, "tables", tables);
}

void
marks_tell(struct change *c, const char *digest, outcome_done *done, void *arg)
{
	const struct mark *k = find(&c->marks, digest);
	struct outcome o = { .code = "DIGEST_MOVED",
		.text = "the diff is not the one that was seen: look at it "
			"again" };
	json_t *header = change_header(c);
	json_t *was = k != NULL ? mark_json(c, k) : NULL;
	char text[160];

	if (was == NULL) {
		snprintf(text, sizeof(text), "that %s digest%s of %s",
		    c->marks.forgot ? "is not among the last" : "never was the",
		    c->marks.forgot ? "s" : "", c->id);
		o.code = "DIGEST_UNKNOWN";
		o.text = text;
	}
	o.json = header;
	o.was = was;
	done(arg, &o);
	json_decref(header);
	json_decref(was);
}
