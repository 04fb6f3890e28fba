/* capture: how a statement is made to give the rows it changes */
#include "diff/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/mem.h"

#define RESULT_COLUMNS_MAX 1600 /* MaxTupleAttributeNumber is 1664 */
#define NAME_WHOLE_MAX 62 /* bytes of a name that no server cuts or folds */

/* --- the plan ------------------------------------------------------------ */

static bool
sets_key(const struct facts *f, const struct relation *r)
{
	for (size_t i = 0; i < f->set_columns.n; i++)
		for (size_t k = 0; k < r->ncolumns; k++)
			if (r->columns[k].key && strcmp(r->columns[k].name,
						     f->set_columns.v[i]) == 0)
				return true;
	return false;
}

/* Why rows cannot be had by RETURNING, or NULL. */
static const char *
obstacle(const struct facts *f, const struct relation *r)
{
	if (f->kind != STMT_INSERT && f->kind != STMT_UPDATE &&
	    f->kind != STMT_DELETE)
		return "the statement is not a plain INSERT, UPDATE or DELETE";
	if (f->writes.n != 1)
		return "the statement writes in several places";
	if (f->current_of)
		return "the statement uses a cursor";
	if (r == NULL)
		return "the table is not known";
	if (r->kind != 'r' && r->kind != 'p')
		return "the target is not a table";
	if (!r->heap)
		return "the table's storage is not heap";
	if (r->persistence == 't')
		return "the table is temporary";
	if (r->rules)
		return "the table has rules";
	if (r->row_security)
		return "row security applies to the table";
	if (r->subclass && r->kind != 'p')
		return "other tables inherit from the table";
	if (!r->readable)
		return "the login may not read the whole table";
	if (2 * r->ncolumns + 4 > RESULT_COLUMNS_MAX)
		return "the table has too many columns";
	return NULL;
}

/* Where pairing by key could name the wrong row. */
static const char *
conflict_obstacle(const struct facts *f, const struct relation *r)
{
	if (!r->has_primary_key)
		return "ON CONFLICT on a table without a primary key";
	if (sets_key(f, r))
		return "ON CONFLICT sets a column of the key";
	if (r->before_update_trigger)
		return "ON CONFLICT on a table with a BEFORE UPDATE trigger";
	return NULL;
}

/* --- what is asked for --- */

/* Rows of a table without parts lie in it. */
static bool
is_one_leaf(const struct relation *r)
{
	return r->kind == 'r';
}

/* How a server in another encoding folds or cuts other names is not known. */
static bool
is_surely(const char *name, const char *column)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] >= 0x80)
			return false;
	return n <= NAME_WHOLE_MAX && strcmp(name, column) == 0;
}

/* The columns that an UPDATE can leave with another text: those that it sets,
 * and those that are computed; all of them where that is not certain. */
static void
find_moving(struct capture *c, const struct facts *f)
{
	const struct relation *r = c->relation;
	size_t met = 0;

	c->moves = mem_array(r->ncolumns, sizeof(*c->moves));
	for (size_t i = 0; i < f->set_columns.n; i++)
		for (size_t k = 0; k < r->ncolumns; k++)
			if (is_surely(f->set_columns.v[i],
				r->columns[k].name)) {
				c->moves[k] = true;
				met++;
			}
	for (size_t k = 0; k < r->ncolumns; k++)
		if (met == 0 || met != f->set_columns.n || !is_one_leaf(r) ||
		    r->before_update_trigger || r->columns[k].generated)
			c->moves[k] = true;
}

static void
add_new_side(struct text *t, const char *ref, const struct relation *r)
{
	if (!is_one_leaf(r))
		text_addf(t, "%s.tableoid, ", ref);
	text_addf(t, "%s.ctid", ref);
	for (size_t i = 0; i < r->ncolumns; i++)
		text_addf(t, ", %s.%s", ref, r->columns[i].quoted);
}

/* FROM (SELECT ...) AS b: the old row versions, under names that no statement
 * of an agent has. */
static void
add_old_rows(struct capture *c, const struct facts *f, struct text *from)
{
	const struct relation *r = c->relation;
	const char *n = c->nonce;

	text_addf(from, "(SELECT airlock_s.ctid AS airlock_%s_c", n);
	if (!is_one_leaf(r))
		text_addf(from, ", airlock_s.tableoid AS airlock_%s_t", n);
	for (size_t i = 0; i < r->ncolumns; i++)
		if (c->moves[i])
			text_addf(from, ", airlock_s.%s AS airlock_%s_%zu",
			    r->columns[i].quoted, n, i);
	text_addf(from, " FROM %s%s AS airlock_s) AS airlock_%s",
	    f->only ? "ONLY " : "", r->name, n);
}

static void
plan_update(struct capture *c, const struct facts *f, const char *ref)
{
	const struct relation *r = c->relation;
	struct text from = { 0 }, where = { 0 }, ret = { 0 };
	const char *n = c->nonce;

	find_moving(c, f);
	add_old_rows(c, f, &from);
	text_addf(&where, "%s.ctid = airlock_%s.airlock_%s_c", ref, n, n);
	if (!is_one_leaf(r))
		text_addf(&where, " AND %s.tableoid = airlock_%s.airlock_%s_t",
		    ref, n, n);
	add_new_side(&ret, ref, r);
	if (!is_one_leaf(r))
		text_addf(&ret, ", airlock_%s.airlock_%s_t", n, n);
	text_addf(&ret, ", airlock_%s.airlock_%s_c", n, n);
	for (size_t i = 0; i < r->ncolumns; i++)
		if (c->moves[i])
			text_addf(&ret, ", airlock_%s.airlock_%s_%zu", n, n, i);
	c->from = text_take(&from);
	c->where = text_take(&where);
	c->returning = text_take(&ret);
}

static void
plan_one_side(struct capture *c, const char *ref)
{
	struct text ret = { 0 };

	add_new_side(&ret, ref, c->relation);
	c->returning = text_take(&ret);
}

/* By a secret and the text itself: whoever learns the one of a text cannot put
 * it into that text, for then it is another. */
static void
set_nonce(struct capture *c, const char *sql)
{
	static unsigned char secret[DIGEST_SIZE];
	static bool drawn;
	unsigned char sum[DIGEST_SIZE];
	struct digest *d = digest_new();

	if (!drawn)
		mem_random(secret, sizeof(secret));
	drawn = true;
	digest_bytes(d, secret, sizeof(secret));
	digest_bytes(d, sql, strlen(sql));
	digest_end(d, sum);
	digest_free(d);
	text_hex(c->nonce, sum, sizeof(c->nonce) / 2);
}

void
capture_plan(struct capture *c, const char *sql, const struct facts *f,
    const struct relation *relation)
{
	struct text ref = { 0 };

	memset(c, 0, sizeof(*c));
	c->relation = relation;
	c->kind = f->kind;
	c->path = CAPTURE_PLAIN;
	c->why = obstacle(f, relation);
	if (c->why == NULL && f->conflict == CONFLICT_UPDATE)
		c->why = conflict_obstacle(f, relation);
	if (c->why != NULL)
		return;
	c->path = f->conflict == CONFLICT_UPDATE ? CAPTURE_CONFLICT
	                                         : CAPTURE_RETURNING;
	set_nonce(c, sql);
	text_add_ident(&ref, f->target_ref);
	if (f->kind == STMT_UPDATE)
		plan_update(c, f, text_str(&ref));
	else
		plan_one_side(c, text_str(&ref));
	c->edit = (struct rewrite_edit){ c->from, c->where, c->returning };
	text_release(&ref);
}

void
capture_release(struct capture *c)
{
	free(c->from);
	free(c->where);
	free(c->returning);
	free(c->agent);
	free(c->before);
	free(c->after);
	free(c->names);
	free(c->key);
	free(c->moves);
	memset(c, 0, sizeof(*c));
}

/* --- the rows ------------------------------------------------------------ */

static int
block_columns(const struct capture *c)
{
	int place, n;

	if (c->path == CAPTURE_PLAIN)
		return 0;
	place = is_one_leaf(c->relation) ? 1 : 2;
	n = place + (int)c->relation->ncolumns;
	if (c->kind != STMT_UPDATE)
		return n;
	n += place;
	for (size_t i = 0; i < c->relation->ncolumns; i++)
		n += c->moves[i];
	return n;
}

/* A star in the agent's own RETURNING also gives the columns of our FROM item;
 * they are known by their names and are not the agent's. */
static bool
is_ours(const struct capture *c, const char *name)
{
	char prefix[sizeof("airlock_") + sizeof(c->nonce)];

	if (c->kind != STMT_UPDATE || c->path == CAPTURE_PLAIN)
		return false;
	snprintf(prefix, sizeof(prefix), "airlock_%s_", c->nonce);
	return text_starts_with(name, prefix);
}

static void
lay_out_image(struct capture *c, int block)
{
	const struct relation *r = c->relation;
	int side = (int)r->ncolumns + (is_one_leaf(r) ? 1 : 2);

	c->first_new = c->kind == STMT_DELETE ? -1 : block;
	c->first_old = c->kind == STMT_DELETE   ? block
	               : c->kind == STMT_UPDATE ? block + side
	                                        : -1;
	c->before = mem_array(r->ncolumns, sizeof(*c->before));
	c->after = mem_array(r->ncolumns, sizeof(*c->after));
	c->names = mem_array(r->ncolumns, sizeof(*c->names));
	c->key = mem_array(r->ncolumns, sizeof(*c->key));
	c->shape = image_shape();
	for (size_t i = 0; i < r->ncolumns; i++) {
		c->names[i] = r->columns[i].name;
		c->key[i] = r->columns[i].key;
	}
}

int
capture_lay_out(struct capture *c, const PGresult *res, struct err *e)
{
	int n = PQnfields(res), ours = block_columns(c);

	if (c->laid_out)
		return 0;
	if (n < ours)
		return err_set(e, ERR_BUG,
		    "%d columns came where %d were asked for", n, ours);
	c->agent = mem_array((size_t)(n - ours), sizeof(*c->agent));
	for (int i = 0; i < n - ours; i++)
		if (!is_ours(c, PQfname(res, i)))
			c->agent[c->nagent++] = i;
	if (c->path != CAPTURE_PLAIN)
		lay_out_image(c, n - ours);
	c->laid_out = true;
	return 0;
}

/* A side of a row; of one that `only` names columns of, the others stand in v
 * already. */
static int
read_side(const struct capture *c, const PGresult *res, int col,
    const bool *only, struct value *v, struct rowid *id, struct err *e)
{
	const struct relation *r = c->relation;

	if (is_one_leaf(r)) {
		id->leaf = r->oid;
		if (rowid_parse_ctid(PQgetvalue(res, 0, col), id, e) == -1)
			return -1;
	} else if (rowid_parse(PQgetvalue(res, 0, col),
		       PQgetvalue(res, 0, col + 1), id, e) == -1) {
		return -1;
	}
	col += is_one_leaf(r) ? 1 : 2;
	for (size_t i = 0; i < r->ncolumns; i++) {
		if (only != NULL && !only[i])
			continue;
		v[i].len = (size_t)PQgetlength(res, 0, col);
		v[i].p = v[i].len == 0 && PQgetisnull(res, 0, col)
		             ? NULL
		             : PQgetvalue(res, 0, col);
		col++;
	}
	return 0;
}

int
capture_image(struct capture *c, const PGresult *res, struct image *out,
    struct err *e)
{
	memset(out, 0, sizeof(*out));
	out->table = c->relation->table;
	out->op = c->kind == STMT_INSERT   ? IMAGE_INSERT
	          : c->kind == STMT_DELETE ? IMAGE_DELETE
	                                   : IMAGE_UPDATE;
	out->ncols = c->relation->ncolumns;
	out->names = c->names;
	out->key = c->key;
	out->shape = c->shape;
	if (c->first_new != -1) {
		if (read_side(c, res, c->first_new, NULL, c->after, &out->is,
			e) == -1)
			return -1;
		out->after = c->after;
	}
	if (c->first_old != -1) {
		if (c->moves != NULL)
			memcpy(c->before, c->after,
			    out->ncols * sizeof(*c->before));
		if (read_side(c, res, c->first_old, c->moves, c->before,
			&out->was, e) == -1)
			return -1;
		out->before = c->before;
	}
	return 0;
}

/* --- before-images by key ------------------------------------------------- */

char *
capture_lookup_sql(const struct relation *r)
{
	struct text t = { 0 }, on = { 0 };
	int n = 0;

	text_add(&t, "SELECT airlock_s.tableoid, airlock_s.ctid");
	for (size_t i = 0; i < r->ncolumns; i++)
		text_addf(&t, ", airlock_s.%s", r->columns[i].quoted);
	/* A table that inherits may have rows of the same key. */
	text_addf(&t, " FROM %s%s AS airlock_s JOIN ROWS FROM (",
	    r->kind == 'p' ? "" : "ONLY ", r->name);
	for (size_t i = 0; i < r->ncolumns; i++) {
		if (!r->columns[i].key)
			continue;
		n++;
		/* Each text becomes its type by itself: an array of arrays
		 * would be flattened, and not every type has one of its own. */
		text_addf(&t, "%spg_catalog.unnest($%d::pg_catalog.text[])",
		    n > 1 ? ", " : "", n);
		text_addf(&on, "%sairlock_s.%s = airlock_k.k%d::%s",
		    n > 1 ? " AND " : "", r->columns[i].quoted, n,
		    r->columns[i].type);
	}
	text_add(&t, ") AS airlock_k(");
	for (int i = 1; i <= n; i++)
		text_addf(&t, "%sk%d", i > 1 ? ", " : "", i);
	text_addf(&t, ") ON %s", text_str(&on));
	text_release(&on);
	return text_take(&t);
}
