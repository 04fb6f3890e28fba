/* catalog: what the server's catalogs say of the things a statement names */
#include "pg/catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "pg/catalog_sql.h"
#include "pg/filled.h"

#define RELATIONS_MAX 256
#define TYPES_MAX 16384

struct entry {
	TAILQ_ENTRY(entry) next;
	struct relation r; /* first but for the links: see entry_of */
	char *key;         /* the name as asked for, quoted */
	int uses;
	bool cached;
};

struct asker {
	TAILQ_ENTRY(asker) next;
	struct catalog *catalog;
	char *key;
	struct entry *entry; /* used by it, where it verifies one */
	catalog_found *found;
	catalog_verified *verified;
	void *arg;
};

struct type {
	uint32_t oid;
	char *name;
};

struct catalog {
	struct pool *pool;
	TAILQ_HEAD(entries_head, entry) entries; /* most recently used first */
	size_t nentries;
	TAILQ_HEAD(, asker) askers;
	char *oids;
	struct type *types;
	size_t ntypes;
};

static struct entry *
entry_of(struct relation *r)
{
	return (struct entry *)(void *)((char *)r - offsetof(struct entry, r));
}

static void
entry_free(struct entry *n)
{
	for (size_t i = 0; i < n->r.ncolumns; i++) {
		free(n->r.columns[i].name);
		free(n->r.columns[i].quoted);
		free(n->r.columns[i].type);
	}
	free(n->r.columns);
	free(n->r.name);
	free(n->r.table);
	free(n->r.fingerprint);
	free(n->key);
	free(n);
}

/* Out of the cache; freed when nobody uses it any more. */
static void
uncache(struct catalog *c, struct entry *n)
{
	if (n->cached) {
		TAILQ_REMOVE(&c->entries, n, next);
		c->nentries--;
		n->cached = false;
	}
	if (n->uses == 0)
		entry_free(n);
}

static struct asker *
asker_new(struct catalog *c, void *arg)
{
	struct asker *a = mem_new(sizeof(*a));

	a->catalog = c;
	a->arg = arg;
	TAILQ_INSERT_TAIL(&c->askers, a, next);
	return a;
}

static void
let_go(struct catalog *c, struct entry *n)
{
	n->uses--;
	if (!n->cached)
		uncache(c, n);
}

static void
asker_free(struct asker *a)
{
	TAILQ_REMOVE(&a->catalog->askers, a, next);
	if (a->entry != NULL)
		let_go(a->catalog, a->entry);
	free(a->key);
	free(a);
}

static bool
yes(const struct batch *b, int col)
{
	const char *v = batch_cell(b, 0, 0, col);

	return v != NULL && v[0] == 't';
}

static char *
copy(const struct batch *b, size_t i, int row, int col)
{
	const char *v = batch_cell(b, i, row, col);

	return mem_strdup(v != NULL ? v : "");
}

static void
read_filled(const struct batch *b, struct relation *r)
{
	for (int i = 0; i < batch_ntuples(b, 2); i++) {
		const char *name = batch_cell(b, 2, i, FILLED_COLUMN);
		const char *domain = batch_cell(b, 2, i, FILLED_DOMAIN);

		r->domains |= domain != NULL && domain[0] == 't';
		for (size_t k = 0; name != NULL && k < r->ncolumns; k++)
			if (strcmp(r->columns[k].name, name) == 0)
				r->columns[k].filled = true;
	}
}

static struct entry *
read_relation(const struct batch *b, const char *key)
{
	struct entry *n = mem_new(sizeof(*n));
	struct relation *r = &n->r;

	n->key = mem_strdup(key);
	r->oid = (uint32_t)strtoul(batch_cell(b, 0, 0, 0), NULL, 10);
	r->name = copy(b, 0, 0, 1);
	r->kind = batch_cell(b, 0, 0, 2)[0];
	r->persistence = batch_cell(b, 0, 0, 3)[0];
	r->estimate = strtod(batch_cell(b, 0, 0, 4), NULL);
	r->heap = yes(b, 5);
	r->subclass = yes(b, 6);
	r->rules = yes(b, 7);
	r->row_security = yes(b, 8);
	r->readable = yes(b, 9);
	r->before_update_trigger = yes(b, 10);
	r->has_primary_key = yes(b, 11);
	r->fingerprint = copy(b, 0, 0, 12);
	r->table = batch_cell(b, 0, 0, 13) != NULL ? copy(b, 0, 0, 13)
	                                           : mem_strdup(r->name);
	r->reads_statement = yes(b, 14);
	r->policies =
	    batch_cell(b, 0, 0, 15) != NULL ? batch_cell(b, 0, 0, 15)[0] : 'l';
	r->added_code = yes(b, 16);
	r->ncolumns = (size_t)batch_ntuples(b, 1);
	r->columns = mem_array(r->ncolumns, sizeof(*r->columns));
	for (size_t i = 0; i < r->ncolumns; i++) {
		const char *key_cell = batch_cell(b, 1, (int)i, 3);
		const char *gen_cell = batch_cell(b, 1, (int)i, 4);
		const char *null_cell = batch_cell(b, 1, (int)i, 5);

		r->columns[i].name = copy(b, 1, (int)i, 0);
		r->columns[i].quoted = copy(b, 1, (int)i, 1);
		r->columns[i].type = copy(b, 1, (int)i, 2);
		r->columns[i].key = key_cell != NULL && key_cell[0] == 't';
		r->columns[i].not_null =
		    null_cell != NULL && null_cell[0] == 't';
		r->columns[i].generated =
		    gen_cell != NULL && gen_cell[0] == 't';
	}
	read_filled(b, r);
	return n;
}

/* Whether the answer is whole: its cells are used without further looks. */
static int
check_relation(const struct batch *b, const char *key, struct err *e)
{
	if (batch_is_lost(b)) {
		*e = *batch_err(b);
		return -1;
	}
	if (!batch_is_ok(b))
		return err_set(e, result_err(batch_result(b, batch_failed(b))),
		    "cannot look up %s: %s", key,
		    result_message(batch_result(b, batch_failed(b))));
	if (batch_ntuples(b, 0) == 0)
		return err_set(e, ERR_GONE, "relation %s does not exist", key);
	for (int i = 0; i < 5; i++)
		if (batch_cell(b, 0, 0, i) == NULL)
			return err_set(e, ERR_DATABASE,
			    "the catalog's answer on %s is not whole", key);
	return 0;
}

static struct entry *
find(const struct catalog *c, const char *key)
{
	struct entry *n;

	TAILQ_FOREACH (n, &c->entries, next)
		if (strcmp(n->key, key) == 0)
			break;
	return n;
}

static void
looked_up(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct asker *a = arg;
	struct catalog *c = a->catalog;
	struct err e = ERR_INIT;
	struct entry *n, *old;
	catalog_found *found = a->found;
	void *found_arg = a->arg;

	if (check_relation(b, a->key, &e) == -1) {
		asker_free(a);
		if (found != NULL)
			found(found_arg, NULL, &e);
		return;
	}
	n = read_relation(b, a->key);
	if ((old = find(c, a->key)) != NULL)
		uncache(c, old);
	asker_free(a);
	while (c->nentries >= RELATIONS_MAX)
		uncache(c, TAILQ_LAST(&c->entries, entries_head));
	TAILQ_INSERT_HEAD(&c->entries, n, next);
	c->nentries++;
	n->cached = true;
	if (found != NULL) {
		n->uses++;
		found(found_arg, &n->r, NULL);
	}
}

static char *
key_of(const char *schema, const char *name)
{
	struct text t = { 0 };

	if (schema != NULL) {
		text_add_ident(&t, schema);
		text_addc(&t, '.');
	}
	text_add_ident(&t, name);
	return text_take(&t);
}

struct relation *
catalog_cached(struct catalog *c, const char *schema, const char *name)
{
	char *key = key_of(schema, name);
	struct entry *n = find(c, key);

	free(key);
	if (n == NULL)
		return NULL;
	TAILQ_REMOVE(&c->entries, n, next);
	TAILQ_INSERT_HEAD(&c->entries, n, next);
	n->uses++;
	return &n->r;
}

static void
look_up(struct catalog *c, char *key, catalog_found *found, void *arg)
{
	struct asker *a = asker_new(c, arg);
	struct batch *b = batch_new();
	const char *values[] = { key, "{}" };

	a->key = key;
	a->found = found;
	batch_add_kept(b, relation_sql, 1, values);
	batch_add_kept(b, columns_sql, 1, values);
	batch_add_kept(b, filled_named_sql, 2, values);
	pool_ask(c->pool, b, looked_up, a);
}

void
catalog_relation(struct catalog *c, const char *schema, const char *name,
    catalog_found *found, void *arg)
{
	look_up(c, key_of(schema, name), found, arg);
}

void
catalog_release(struct catalog *c, struct relation *r)
{
	if (r == NULL)
		return;
	let_go(c, entry_of(r));
}

size_t
catalog_add_look(struct relation *r, struct batch *b)
{
	const char *values[] = { entry_of(r)->key };

	return batch_add_prepared(b, CATALOG_SESSION, 1, values);
}

int
catalog_read_look(struct catalog *c, struct relation *r, const struct batch *b,
    size_t i, struct err *e)
{
	const char *now = batch_cell(b, i, 0, 0);

	if (batch_state(b, i) != BATCH_OK)
		return err_set(e, ERR_DATABASE, "cannot verify %s: %s", r->name,
		    result_message(batch_result(b, i)));
	if (now != NULL && strcmp(now, r->fingerprint) == 0)
		return 0;
	if (entry_of(r)->cached)
		uncache(c, entry_of(r));
	return err_set(e, ERR_UNFIT, "%s has changed meanwhile", r->name);
}

static void
verified(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct asker *a = arg;
	struct err e = ERR_INIT;
	catalog_verified *done = a->verified;
	void *done_arg = a->arg;

	if (batch_is_lost(b))
		e = *batch_err(b);
	else
		(void)catalog_read_look(a->catalog, &a->entry->r, b, 0, &e);
	asker_free(a);
	if (done != NULL)
		done(done_arg, &e);
}

/* Whether it is still what is known of it; told to a, which is lent it. */
static void
look_at(struct asker *a, struct entry *n, link_done *told)
{
	struct batch *b = batch_new();

	a->entry = n;
	n->uses++;
	(void)catalog_add_look(&n->r, b);
	pool_ask(a->catalog->pool, b, told, a);
}

void
catalog_verify(struct catalog *c, struct relation *r, catalog_verified *done,
    void *arg)
{
	struct asker *a = asker_new(c, arg);

	a->verified = done;
	look_at(a, entry_of(r), verified);
}

/* Where it is not, or that cannot be said, it is looked up anew. */
static void
seen(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct asker *a = arg;
	struct catalog *c = a->catalog;
	struct entry *n = a->entry;
	struct err e = ERR_INIT;
	catalog_found *found = a->found;
	void *found_arg = a->arg;
	char *key;

	if (found == NULL) {
		asker_free(a);
	} else if (catalog_read_look(c, &n->r, b, 0, &e) == 0) {
		n->uses++;
		asker_free(a);
		found(found_arg, &n->r, NULL);
	} else {
		key = mem_strdup(n->key);
		asker_free(a);
		look_up(c, key, found, found_arg);
	}
}

void
catalog_named(struct catalog *c, const char *quoted, catalog_found *found,
    void *arg)
{
	struct entry *n = find(c, quoted);
	struct asker *a;

	if (n == NULL) {
		look_up(c, mem_strdup(quoted), found, arg);
		return;
	}
	a = asker_new(c, arg);
	a->found = found;
	look_at(a, n, seen);
}

void
catalog_forget(struct catalog *c, const void *arg)
{
	struct asker *a;

	TAILQ_FOREACH (a, &c->askers, next)
		if (a->arg == arg) {
			a->found = NULL;
			a->verified = NULL;
		}
}

/* --- oids and types ----------------------------------------------------- */

static void
add_types(struct catalog *c, const struct batch *b, size_t step)
{
	for (int i = 0; i < batch_ntuples(b, step); i++) {
		const char *oid = batch_cell(b, step, i, 0);
		const char *name = batch_cell(b, step, i, 1);

		if (oid == NULL || name == NULL || c->ntypes >= TYPES_MAX)
			continue;
		c->types = mem_grow(c->types, c->ntypes + 1, sizeof(*c->types));
		c->types[c->ntypes].oid = (uint32_t)strtoul(oid, NULL, 10);
		c->types[c->ntypes++].name = mem_strdup(name);
	}
}

static void
forget_types(struct catalog *c)
{
	for (size_t i = 0; i < c->ntypes; i++)
		free(c->types[i].name);
	free(c->types);
	c->types = NULL;
	c->ntypes = 0;
}

static void
refreshed(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct catalog *c = arg;

	if (batch_is_lost(b) || !batch_is_ok(b)) {
		log_warnx("cannot read the system catalogs: no write is taken "
			  "until the next connection");
		return;
	}
	free(c->oids);
	c->oids = copy(b, 0, 0, 0);
	forget_types(c);
	add_types(c, b, 1);
}

void
catalog_refresh(struct catalog *c)
{
	struct batch *b = batch_new();
	struct entry *n;

	while ((n = TAILQ_FIRST(&c->entries)) != NULL)
		uncache(c, n);
	batch_add(b, oids_sql, 0, NULL);
	batch_add(b, types_sql, 0, NULL);
	pool_ask(c->pool, b, refreshed, c);
}

const char *
catalog_oids(const struct catalog *c)
{
	return c->oids;
}

const char *
catalog_type(struct catalog *c, uint32_t oid)
{
	for (size_t i = 0; i < c->ntypes; i++)
		if (c->types[i].oid == oid)
			return c->types[i].name;
	return NULL;
}

static void
learned(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct asker *a = arg;
	struct err e = ERR_INIT;
	catalog_verified *done = a->verified;
	void *done_arg = a->arg;

	if (batch_is_lost(b))
		e = *batch_err(b);
	else if (batch_is_ok(b))
		add_types(a->catalog, b, 0);
	asker_free(a);
	if (done != NULL)
		done(done_arg, &e);
}

void
catalog_learn_types(struct catalog *c, const uint32_t *oids, size_t n,
    catalog_verified *done, void *arg)
{
	struct asker *a = asker_new(c, arg);
	struct batch *b = batch_new();
	struct text t = { 0 };
	const char *values[1];

	a->verified = done;
	for (size_t i = 0; i < n; i++)
		text_add_number(&t, oids[i]);
	text_end_items(&t);
	values[0] = text_str(&t);
	batch_add_kept(b, learn_sql, 1, values);
	pool_ask(c->pool, b, learned, a);
	text_release(&t);
}

struct catalog *
catalog_new(struct pool *p)
{
	struct catalog *c = mem_new(sizeof(*c));

	c->pool = p;
	TAILQ_INIT(&c->entries);
	TAILQ_INIT(&c->askers);
	return c;
}

void
catalog_free(struct catalog *c)
{
	struct entry *n;
	struct asker *a;

	if (c == NULL)
		return;
	while ((a = TAILQ_FIRST(&c->askers)) != NULL) {
		pool_forget(c->pool, a);
		asker_free(a);
	}
	while ((n = TAILQ_FIRST(&c->entries)) != NULL) {
		n->uses = 0;
		uncache(c, n);
	}
	forget_types(c);
	free(c->oids);
	free(c);
}
