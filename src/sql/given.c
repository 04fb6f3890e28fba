/* given: what a statement puts into the columns that it writes */
#include "sql/given.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "sql/tree.h"

/* Of two that a value is made of, the later one in this list. */
enum source { TOLD, MADE, DATA };

static enum source
worst(enum source a, enum source b)
{
	return a > b ? a : b;
}

/* --- functions, by the names that PostgreSQL's own have --- */

/* What others of these names return, which stand in front of them on no search
 * path but one that names pg_catalog late, is for their owner to answer. */
static bool
is_one_of(const char *name, const char *const *v)
{
	while (*v != NULL && strcmp(*v, name) != 0)
		v++;
	return *v != NULL;
}

#define ITEM(name) name,
static const char *const makers[] = { GIVEN_MAKERS(ITEM) NULL };
/* They tell no more than their arguments do. */
static const char *const helpers[] = { "abs", "age", "ceil", "date_bin",
	"date_part", "date_trunc", "encode", "extract", "floor", "left",
	"lower", "lpad", "make_interval", "md5", "replace", "right", "round",
	"sha256", "substr", "substring", "timezone", "to_char", "to_hex",
	"trunc", "upper", NULL };
static const char *const operators[] = { "+", "-", "*", "/", "%", "||", NULL };

static enum source source_of(PgQuery__Node *n, const char *column);

static enum source
source_of_call(const PgQuery__FuncCall *c, const char *column)
{
	const char *schema, *name;
	enum source s = TOLD;

	tree_qualified(c->funcname, c->n_funcname, &schema, &name);
	if (name == NULL || c->n_funcname > 2 ||
	    (schema != NULL && strcmp(schema, "pg_catalog") != 0) ||
	    c->n_agg_order > 0 || c->agg_filter != NULL || c->over != NULL ||
	    c->agg_within_group || c->agg_star || c->agg_distinct ||
	    c->func_variadic)
		return DATA;
	if (is_one_of(name, makers))
		s = MADE;
	else if (!is_one_of(name, helpers))
		return DATA;
	for (size_t i = 0; i < c->n_args; i++)
		s = worst(s, source_of(c->args[i], column));
	return s;
}

static enum source
source_of_operator(const PgQuery__AExpr *x, const char *column)
{
	const char *schema, *name;

	tree_qualified(x->name, x->n_name, &schema, &name);
	if (x->kind != PG_QUERY__A__EXPR__KIND__AEXPR_OP || schema != NULL ||
	    name == NULL || !is_one_of(name, operators))
		return DATA;
	return worst(source_of(x->lexpr, column), source_of(x->rexpr, column));
}

static bool
is_text(PgQuery__Node *n, const char *text)
{
	const PgQuery__String *s = tree_as(n, &pg_query__string__descriptor);

	return s != NULL && strcmp(s->sval, text) == 0;
}

/* What ON CONFLICT sets a column to as it was to be inserted: told, made or
 * data as that is. */
static bool
is_excluded(const PgQuery__ColumnRef *c, const char *column)
{
	return column != NULL && c->n_fields == 2 &&
	       is_text(c->fields[0], "excluded") &&
	       is_text(c->fields[1], column);
}

static bool
is_clock(const PgQuery__SQLValueFunction *v)
{
	return v->op >= PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_DATE &&
	       v->op <= PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_LOCALTIMESTAMP_N;
}

/* column: the one that excluded.NAME may name, or NULL. */
static enum source
source_of(PgQuery__Node *n, const char *column)
{
	const PgQuery__TypeCast *cast;
	const ProtobufCMessage *m;
	const ProtobufCMessageDescriptor *d;

	while ((cast = tree_as(n, &pg_query__type_cast__descriptor)) != NULL)
		n = cast->arg;
	m = tree_inner(n);
	if (m == NULL)
		return TOLD;
	d = m->descriptor;
	if (d == &pg_query__set_to_default__descriptor ||
	    d == &pg_query__a__const__descriptor ||
	    d == &pg_query__param_ref__descriptor)
		return TOLD;
	if (d == &pg_query__func_call__descriptor)
		return source_of_call((const void *)m, column);
	if (d == &pg_query__a__expr__descriptor)
		return source_of_operator((const void *)m, column);
	if (d == &pg_query__sqlvalue_function__descriptor)
		return is_clock((const void *)m) ? MADE : DATA;
	if (d == &pg_query__column_ref__descriptor &&
	    is_excluded((const void *)m, column))
		return TOLD;
	return DATA;
}

/* --- columns --- */

struct write {
	struct facts *f;
	bool own;                   /* its target is the statement's own */
	bool conflict;              /* of ON CONFLICT DO UPDATE */
	PgQuery__Node *const *cols; /* that an INSERT lists */
	size_t ncols;
};

static void
tell(struct facts_texts *v, char *s /* taken */)
{
	if (!facts_has_text(v, s))
		facts_add_text(v, s);
	free(s);
}

/* Part of a column cannot be left out, so that the rest stays. */
static void
put_named(const struct write *w, const PgQuery__ResTarget *to, enum source s)
{
	if (s == MADE && to->n_indirection > 0)
		s = DATA;
	if (s != TOLD)
		tell(s == DATA ? &w->f->given : &w->f->made,
		    mem_printf("=%s", to->name));
}

static void
put_any(const struct write *w)
{
	tell(&w->f->given, mem_strdup("*"));
}

/* The i-th value of a row, from 0. */
static void
put_at(const struct write *w, size_t i, enum source s)
{
	if (s == TOLD || (w->ncols > 0 && i >= w->ncols))
		return;
	if (w->ncols > 0) {
		const PgQuery__ResTarget *to =
		    tree_as(w->cols[i], &pg_query__res_target__descriptor);

		if (to != NULL)
			put_named(w, to, s);
	} else if (w->own) {
		tell(s == DATA ? &w->f->given : &w->f->made,
		    mem_printf("#%zu", i + 1));
	} else {
		put_any(w);
	}
}

static void
put_row(const struct write *w, PgQuery__Node *const *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_at(w, i, source_of(values[i], NULL));
}

static void
put_all(const struct write *w)
{
	for (size_t i = 0; i < w->ncols; i++)
		put_at(w, i, DATA);
	if (w->ncols == 0)
		put_any(w);
}

static bool
is_star(PgQuery__Node *n)
{
	const PgQuery__ColumnRef *c =
	    tree_as(n, &pg_query__column_ref__descriptor);

	return c == NULL
	           ? tree_as(n, &pg_query__a__indirection__descriptor) != NULL
	           : c->n_fields > 0 &&
	                 tree_as(c->fields[c->n_fields - 1],
			     &pg_query__a__star__descriptor) != NULL;
}

/* Behind a star it cannot be told which value goes where. */
static void
put_selected(const struct write *w, const PgQuery__SelectStmt *s)
{
	for (size_t i = 0; i < s->n_target_list; i++) {
		const PgQuery__ResTarget *r = tree_as(s->target_list[i],
		    &pg_query__res_target__descriptor);

		if (r == NULL || is_star(r->val)) {
			put_all(w);
			return;
		}
	}
	for (size_t i = 0; i < s->n_target_list; i++) {
		const PgQuery__ResTarget *r = tree_as(s->target_list[i],
		    &pg_query__res_target__descriptor);

		put_at(w, i, source_of(r->val, NULL));
	}
}

static enum source
source_of_set(const struct write *w, const PgQuery__ResTarget *to)
{
	const char *excluded = w->conflict ? to->name : NULL;
	const PgQuery__MultiAssignRef *m =
	    tree_as(to->val, &pg_query__multi_assign_ref__descriptor);
	const PgQuery__RowExpr *row;

	if (m == NULL)
		return source_of(to->val, excluded);
	row = tree_as(m->source, &pg_query__row_expr__descriptor);
	return row != NULL && m->colno > 0 && (size_t)m->colno <= row->n_args
	           ? source_of(row->args[m->colno - 1], excluded)
	           : DATA;
}

static void
put_set(const struct write *w, PgQuery__Node *const *set, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const PgQuery__ResTarget *to =
		    tree_as(set[i], &pg_query__res_target__descriptor);

		if (to != NULL)
			put_named(w, to, source_of_set(w, to));
	}
}

/* --- statements --- */

static void
read_insert(const PgQuery__InsertStmt *s, struct write *w)
{
	const PgQuery__OnConflictClause *c = s->on_conflict_clause;
	const PgQuery__SelectStmt *q =
	    tree_as(s->select_stmt, &pg_query__select_stmt__descriptor);

	w->cols = s->cols;
	w->ncols = s->n_cols;
	for (size_t i = 0; q != NULL && i < q->n_values_lists; i++) {
		const PgQuery__List *row =
		    tree_as(q->values_lists[i], &pg_query__list__descriptor);

		if (row != NULL)
			put_row(w, row->items, row->n_items);
	}
	if (q != NULL && q->n_values_lists == 0) {
		if (q->op == PG_QUERY__SET_OPERATION__SETOP_NONE)
			put_selected(w, q);
		else
			put_all(w);
	}
	w->conflict = true;
	if (c != NULL)
		put_set(w, c->target_list, c->n_target_list);
}

static void
read_merge(const PgQuery__MergeStmt *s, struct write *w)
{
	for (size_t i = 0; i < s->n_merge_when_clauses; i++) {
		const PgQuery__MergeWhenClause *c =
		    tree_as(s->merge_when_clauses[i],
			&pg_query__merge_when_clause__descriptor);

		if (c == NULL)
			continue;
		if (c->command_type == PG_QUERY__CMD_TYPE__CMD_INSERT) {
			w->cols = c->target_list;
			w->ncols = c->n_target_list;
			put_row(w, c->values, c->n_values);
		} else {
			put_set(w, c->target_list, c->n_target_list);
		}
	}
}

static void
read_write(const ProtobufCMessage *m, struct facts *f, bool own)
{
	struct write w = { .f = f, .own = own };

	if (m == NULL)
		return;
	if (m->descriptor == &pg_query__insert_stmt__descriptor) {
		read_insert((const void *)m, &w);
	} else if (m->descriptor == &pg_query__update_stmt__descriptor) {
		const PgQuery__UpdateStmt *s = (const void *)m;

		put_set(&w, s->target_list, s->n_target_list);
	} else if (m->descriptor == &pg_query__merge_stmt__descriptor) {
		read_merge((const void *)m, &w);
	}
}

void
given_read(const ProtobufCMessage *m, struct facts *f)
{
	const PgQuery__WithClause *with =
	    m != NULL ? (const void *)tree_message(m, "with_clause") : NULL;

	read_write(m, f, true);
	for (size_t i = 0; with != NULL && i < with->n_ctes; i++) {
		const PgQuery__CommonTableExpr *c = tree_as(with->ctes[i],
		    &pg_query__common_table_expr__descriptor);

		if (c != NULL)
			read_write(tree_inner(c->ctequery), f, false);
	}
}
