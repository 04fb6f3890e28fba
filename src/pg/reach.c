/* reach: what a statement would run on this server, and whether it still would
 */
#include "pg/reach.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "base/text.h"
#include "pg/reach_sql.h"

#define ENTRIES_MAX 512
#define FIRST_NORMAL_OID 16384

#define NOT_SAME "22P02" /* the stamp is no number */

const char reach_same_sql[] =
    "SELECT CASE WHEN s.s = $6 THEN " REACH_SNAPSHOT
    " ELSE ('airlock ' || s.s)::pg_catalog.int4::pg_catalog.text END"
    " FROM (SELECT " REACH_SAME " AS s OFFSET 0) s";
const char reach_now_sql[] =
    "SELECT CASE WHEN s.s = $1 THEN 1"
    " ELSE ('airlock ' || s.s)::pg_catalog.int4 END"
    " FROM (SELECT " REACH_SNAPSHOT " AS s OFFSET 0) s";

enum { RELATIONS, KINDS, SCHEMAS, NAMES, COUNTS, NARRAYS };

struct entry {
	TAILQ_ENTRY(entry) next;
	struct reach r; /* see entry_of */
	char *arrays[NARRAYS];
	bool write;
	char *classes, *procs, *types, *stamp;
	char *seen; /* the snapshot at which the stamp was right last */
	int uses;
	bool cached;
};

struct asker {
	TAILQ_ENTRY(asker) next;
	struct reach_list *list;
	struct entry *entry;
	reach_learned *learned;
	reach_verified *verified;
	void *arg;
};

struct reach_list {
	struct pool *pool;
	const struct reach_rules *rules;
	TAILQ_HEAD(entries_head, entry) entries; /* most recently used first */
	size_t nentries;
	unsigned generation; /* of the pool, when they were learned */
	bool quiet; /* two looks in a row were with the same snapshot */
	TAILQ_HEAD(, asker) askers;
};

static struct entry *
entry_of(const struct reach *r)
{
	return (struct entry *)(void *)((char *)(uintptr_t)r -
					offsetof(struct entry, r));
}

static void
entry_free(struct entry *n)
{
	for (int i = 0; i < NARRAYS; i++)
		free(n->arrays[i]);
	free(n->classes);
	free(n->procs);
	free(n->types);
	free(n->stamp);
	free(n->seen);
	free(n->r.function);
	free(n->r.name);
	free(n->r.through);
	free(n->r.temporary);
	free(n);
}

static void
uncache(struct reach_list *l, struct entry *n)
{
	if (n->cached) {
		TAILQ_REMOVE(&l->entries, n, next);
		l->nentries--;
		n->cached = false;
	}
	if (n->uses == 0)
		entry_free(n);
}

/* --- the question --- */

static void
add_names(struct text *arrays, const struct facts_names *v)
{
	for (size_t i = 0; i < v->n; i++) {
		char kind[] = { v->v[i].op, '\0' };

		text_add_string(&arrays[KINDS], kind);
		text_add_string(&arrays[SCHEMAS],
		    v->v[i].schema != NULL ? v->v[i].schema : "");
		text_add_string(&arrays[NAMES], v->v[i].name);
		text_add_number(&arrays[COUNTS], v->v[i].nargs);
	}
}

static struct entry *
entry_new(const struct facts *f, bool write)
{
	struct entry *n = mem_new(sizeof(*n));
	struct text arrays[NARRAYS];

	memset(arrays, 0, sizeof(arrays));
	facts_add_relations(&arrays[RELATIONS], &f->reads);
	facts_add_relations(&arrays[RELATIONS], &f->writes);
	add_names(arrays, &f->functions);
	add_names(arrays, &f->implied);
	for (int i = 0; i < NARRAYS; i++) {
		text_end_items(&arrays[i]);
		n->arrays[i] = text_take(&arrays[i]);
	}
	n->write = write;
	return n;
}

static bool
same_question(const struct entry *a, const struct entry *b)
{
	for (int i = 0; i < NARRAYS; i++)
		if (strcmp(a->arrays[i], b->arrays[i]) != 0)
			return false;
	return a->write == b->write;
}

bool
reach_is_empty(const struct facts *f)
{
	return f->reads.n + f->writes.n + f->functions.n + f->implied.n == 0;
}

const struct reach *
reach_cached(struct reach_list *l, const struct facts *f, bool write)
{
	struct entry *asked, *n;

	if (l->generation != pool_generation(l->pool)) {
		while ((n = TAILQ_FIRST(&l->entries)) != NULL)
			uncache(l, n);
		l->generation = pool_generation(l->pool);
	}
	asked = entry_new(f, write);
	TAILQ_FOREACH (n, &l->entries, next)
		if (same_question(n, asked))
			break;
	entry_free(asked);
	if (n == NULL)
		return NULL;
	TAILQ_REMOVE(&l->entries, n, next);
	TAILQ_INSERT_HEAD(&l->entries, n, next);
	n->uses++;
	return &n->r;
}

/* --- the answer --- */

static char *
copy(const struct batch *b, int col)
{
	const char *v = batch_cell(b, 0, 0, col);

	return v != NULL ? mem_strdup(v) : NULL;
}

/* Of an array of oids; what initdb makes is below FirstNormalObjectId. */
static bool
all_built_in(const char *oids)
{
	bool all = oids != NULL && oids[0] == '{';

	while (all && *oids != '\0') {
		oids += strcspn(oids, "0123456789");
		if (*oids != '\0')
			all = strtoul(oids, (char **)(uintptr_t)&oids, 10) <
			      FIRST_NORMAL_OID;
	}
	return all;
}

static void
read_answer(struct entry *n, const struct batch *b)
{
	const char *outside = batch_cell(b, 0, 0, 3);

	n->r.name = copy(b, 0);
	n->r.function = copy(b, 1);
	n->r.through = copy(b, 2);
	n->r.outside = outside != NULL && outside[0] == 't';
	n->r.temporary = copy(b, 4);
	n->classes = copy(b, 5);
	n->procs = copy(b, 6);
	n->r.own_code = all_built_in(n->procs);
	n->types = copy(b, 7);
	n->stamp = copy(b, 8);
	n->seen = copy(b, 9);
}

static void
remember(struct reach_list *l, struct entry *n)
{
	while (l->nentries >= ENTRIES_MAX)
		uncache(l, TAILQ_LAST(&l->entries, entries_head));
	TAILQ_INSERT_HEAD(&l->entries, n, next);
	l->nentries++;
	n->cached = true;
}

static struct asker *
asker_new(struct reach_list *l, struct entry *n, void *arg)
{
	struct asker *a = mem_new(sizeof(*a));

	a->list = l;
	a->entry = n;
	a->arg = arg;
	n->uses++;
	TAILQ_INSERT_TAIL(&l->askers, a, next);
	return a;
}

static void
asker_free(struct asker *a)
{
	TAILQ_REMOVE(&a->list->askers, a, next);
	free(a);
}

static int
check(const struct batch *b, struct err *e)
{
	if (batch_is_lost(b)) {
		*e = *batch_err(b);
		return -1;
	}
	if (!batch_is_ok(b) || batch_ntuples(b, 0) != 1)
		return err_set(e,
		    result_err(batch_result(b, 0)) == ERR_DENIED ? ERR_DENIED
								 : ERR_GONE,
		    "%s", result_message(batch_result(b, 0)));
	return 0;
}

static void
learned(void *arg, struct link *link UNUSED, struct batch *b)
{
	struct asker *a = arg;
	struct reach_list *l = a->list;
	struct entry *n = a->entry;
	reach_learned *done = a->learned;
	void *done_arg = a->arg;
	struct err e = ERR_INIT;

	asker_free(a);
	if (check(b, &e) == 0) {
		read_answer(n, b);
		if (n->stamp == NULL)
			err_set(&e, ERR_GONE, "its answer is not whole");
	}
	if (e.code == ERR_NONE && n->r.function == NULL &&
	    n->r.temporary == NULL)
		remember(l, n);
	if (done != NULL && e.code == ERR_NONE) {
		done(done_arg, &n->r, NULL); /* takes over the use */
		return;
	}
	reach_release(l, &n->r);
	if (done != NULL)
		done(done_arg, NULL, &e);
}

void
reach_learn(struct reach_list *l, const struct facts *f, bool write,
    reach_learned *done, void *arg)
{
	struct entry *n = entry_new(f, write);
	struct asker *a = asker_new(l, n, arg);
	struct batch *b = batch_new();
	const char *values[] = { n->arrays[RELATIONS], n->arrays[KINDS],
		n->arrays[SCHEMAS], n->arrays[NAMES], n->arrays[COUNTS],
		l->rules->harmless, l->rules->outside, l->rules->extensions,
		write ? "t" : "f" };

	a->learned = done;
	batch_add_kept(b, reach_judge_sql, 9, values);
	pool_ask(l->pool, b, learned, a);
}

void
reach_release(struct reach_list *l, const struct reach *r)
{
	struct entry *n;

	if (r == NULL)
		return;
	n = entry_of(r);
	n->uses--;
	if (!n->cached)
		uncache(l, n);
}

const char *
reach_functions(const struct reach *r)
{
	return entry_of(r)->procs;
}

void
reach_drop(struct reach_list *l, const struct reach *r)
{
	struct entry *n = entry_of(r);

	n->uses--;
	uncache(l, n);
}

/* --- whether it still holds --- */

static size_t
add_same(const struct entry *n, struct batch *b)
{
	const char *values[] = { n->arrays[RELATIONS], n->arrays[NAMES],
		n->classes, n->procs, n->types, n->stamp };

	return batch_add_prepared(b, REACH_SESSION, 6, values);
}

/* The stamp was right under this snapshot. */
static void
see(struct reach_list *l, struct entry *n, const char *snapshot)
{
	if (snapshot == NULL)
		return;
	l->quiet = n->seen != NULL && strcmp(n->seen, snapshot) == 0;
	free(n->seen);
	n->seen = mem_strdup(snapshot);
}

enum reach_way
reach_way(const struct reach_list *l, const struct reach *r)
{
	return l->quiet && entry_of(r)->seen != NULL ? REACH_SHORT : REACH_LONG;
}

size_t
reach_before(const struct reach *r, enum reach_way way, struct batch *b)
{
	const struct entry *n = entry_of(r);
	const char *values[] = { n->seen };

	if (way == REACH_LONG)
		return add_same(n, b);
	return batch_add_prepared(b, REACH_SESSION_NOW, 1, values);
}

void
reach_before_read(struct reach_list *l, const struct reach *r,
    enum reach_way way, const struct batch *b, size_t i)
{
	if (way == REACH_SHORT && batch_state(b, i) == BATCH_FAILED)
		l->quiet = false;
	else if (way == REACH_LONG && batch_state(b, i) == BATCH_OK)
		see(l, entry_of(r), batch_cell(b, i, 0, 0));
}

bool
reach_says_no(const struct batch *b, size_t i)
{
	return batch_state(b, i) == BATCH_FAILED &&
	       strcmp(result_sqlstate(batch_result(b, i)), NOT_SAME) == 0;
}

size_t
reach_after(struct batch *b)
{
	size_t i = batch_add(b, "SELECT " REACH_SNAPSHOT, 0, NULL);

	batch_optional(b);
	return i;
}

bool
reach_is_of(const struct reach *r, const char *snapshot)
{
	const char *seen = entry_of(r)->seen;

	return seen != NULL && snapshot != NULL && strcmp(snapshot, seen) == 0;
}

bool
reach_after_read(const struct reach *r, const struct batch *b, size_t i)
{
	return reach_is_of(r, batch_cell(b, i, 0, 0));
}

static void
verified(void *arg, struct link *link UNUSED, struct batch *b)
{
	struct asker *a = arg;
	struct reach_list *l = a->list;
	struct entry *n = a->entry;
	reach_verified *done = a->verified;
	void *done_arg = a->arg;
	struct err e = ERR_INIT;

	asker_free(a);
	if (!batch_is_lost(b) &&
	    strcmp(result_sqlstate(batch_result(b, 0)), NOT_SAME) == 0)
		err_set(&e, ERR_UNFIT, "the definitions have changed");
	else if (check(b, &e) == 0)
		see(l, n, batch_cell(b, 0, 0, 0));
	reach_release(l, &n->r);
	if (done != NULL)
		done(done_arg, &e);
}

void
reach_verify(struct reach_list *l, const struct reach *r, reach_verified *done,
    void *arg)
{
	struct asker *a = asker_new(l, entry_of(r), arg);
	struct batch *b = batch_new();

	a->verified = done;
	add_same(a->entry, b);
	pool_ask(l->pool, b, verified, a);
}

void
reach_forget(struct reach_list *l, const void *arg)
{
	struct asker *a;

	TAILQ_FOREACH (a, &l->askers, next)
		if (a->arg == arg) {
			a->learned = NULL;
			a->verified = NULL;
		}
}

struct reach_list *
reach_list_new(struct pool *p, const struct reach_rules *r)
{
	struct reach_list *l = mem_new(sizeof(*l));

	l->pool = p;
	l->rules = r;
	TAILQ_INIT(&l->entries);
	TAILQ_INIT(&l->askers);
	return l;
}

void
reach_list_free(struct reach_list *l)
{
	struct entry *n;
	struct asker *a;

	if (l == NULL)
		return;
	while ((a = TAILQ_FIRST(&l->askers)) != NULL) {
		pool_forget(l->pool, a);
		n = a->entry;
		asker_free(a);
		reach_release(l, &n->r);
	}
	while ((n = TAILQ_FIRST(&l->entries)) != NULL) {
		n->uses = 0;
		uncache(l, n);
	}
	free(l);
}
