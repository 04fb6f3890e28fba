/* catalog: what the server's catalogs say of the things a statement names */
#ifndef AIRLOCK_PG_CATALOG_H
#define AIRLOCK_PG_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "pg/pool.h"

struct column {
	char *name, *quoted;
	char *type; /* format_type() */
	bool key;
	bool generated, not_null;
	bool filled; /* pg/filled.h */
};

/* A table or view as the login of the pool sees it. */
struct relation {
	uint32_t oid;
	char *name;       /* "schema.name", each quoted where it must be */
	char *table;      /* the same; of a partition, its topmost table's */
	char kind;        /* relkind */
	char persistence; /* relpersistence */
	double estimate;  /* reltuples, -1 never counted */
	bool heap, subclass, rules, row_security, readable;
	char policies;              /* first letter: pg/policies.h */
	bool before_update_trigger; /* FOR EACH ROW BEFORE UPDATE, or INSTEAD */
	bool has_primary_key;
	bool domains;         /* a column's default is its domain's */
	bool reads_statement; /* a trigger's function names current_query() */
	bool added_code; /* functions that are not PostgreSQL's may run for its
	                    rows, triggers' aside; also where it is not told */
	char *fingerprint; /* differs when any of this does */
	size_t ncolumns;
	struct column *columns;
};

struct catalog;
struct catalog *catalog_new(struct pool *p);
void catalog_free(struct catalog *c);

/*
 * A relation by the name that a statement uses (schema NULL: by search_path).
 * catalog_cached gives NULL where it is not in the cache; catalog_relation asks
 * the control link, and tells NULL where there is none (ERR_GONE), the login
 * may not look into its schema (ERR_DENIED) or it could not be asked.  What is
 * given is lent until catalog_release and stays as it is. It may be stale:
 * whoever built on it must call catalog_verify while a lock on the relation is
 * held.
 */
struct relation *catalog_cached(struct catalog *c, const char *schema,
    const char *name);
typedef void catalog_found(void *arg, struct relation *r, const struct err *e);
/* By a name that is quoted already, as `name` is; a lock on it is held, so that
 * what is given is what it is. */
void catalog_named(struct catalog *c, const char *quoted, catalog_found *found,
    void *arg);
void catalog_relation(struct catalog *c, const char *schema, const char *name,
    catalog_found *found, void *arg);
void catalog_release(struct catalog *c, struct relation *r);
/* 0 same, ERR_UNFIT where the relation is not what it was (and forgets it). */
typedef void catalog_verified(void *arg, const struct err *e);
void catalog_verify(struct catalog *c, struct relation *r,
    catalog_verified *done, void *arg);
/* The same as a part of a batch, and its answer; ERR_DATABASE where it has
 * none. */
size_t catalog_add_look(struct relation *r, struct batch *b);
int catalog_read_look(struct catalog *c, struct relation *r,
    const struct batch *b, size_t i, struct err *e);
/* What every session prepares under this name. */
#define CATALOG_SESSION "airlock_table"
extern const char catalog_verify_sql[];
/* Neither found nor done is called for this arg any more. */
void catalog_forget(struct catalog *c, const void *arg);

/* The system catalogs' oids as an array literal; asked for once a connection,
 * NULL until it is known. */
const char *catalog_oids(const struct catalog *c);
/* Called when the pool's control link has come up. */
void catalog_refresh(struct catalog *c);
/* format_type() of a type's oid, or NULL where it is not known yet. */
const char *catalog_type(struct catalog *c, uint32_t oid);
/* Learns types; done(arg, NULL) when catalog_type answers for all that exist.
 */
void catalog_learn_types(struct catalog *c, const uint32_t *oids, size_t n,
    catalog_verified *done, void *arg);

#endif
