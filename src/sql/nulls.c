/* nulls: conditions that hold for every row once some columns are never NULL */
#include "sql/nulls.h"

#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sql/tree.h"
#include "sql/where.h"

#define TESTS_MAX 32 /* of a condition with more, nothing is told */

/* A column that is asked for, and where it stands: something that is not NULL
 * is put there to see what comes of it. */
struct test {
	PgQuery__Node **place, *was;
	const char *column;
};

struct tests {
	const char *target;
	struct test v[TESTS_MAX];
	size_t n;
};

static const char *
text_of(PgQuery__Node *n)
{
	const PgQuery__String *s = tree_as(n, &pg_query__string__descriptor);

	return s != NULL ? s->sval : NULL;
}

/* The column's name where it can be one of the target's; a cast of what is
 * not NULL is not NULL. */
static const char *
column_of(PgQuery__Node *n, const char *target)
{
	const PgQuery__TypeCast *t;
	const PgQuery__ColumnRef *c;
	const char *table;

	while ((t = tree_as(n, &pg_query__type_cast__descriptor)) != NULL)
		n = t->arg;
	c = tree_as(n, &pg_query__column_ref__descriptor);
	if (c == NULL || c->n_fields == 0)
		return NULL;
	if (c->n_fields > 1) {
		table = text_of(c->fields[c->n_fields - 2]);
		if (table == NULL || strcmp(table, target) != 0)
			return NULL;
	}
	return text_of(c->fields[c->n_fields - 1]);
}

static void
add(struct tests *t, PgQuery__Node **place)
{
	const char *column = column_of(*place, t->target);

	if (column == NULL)
		return;
	if (t->n < TESTS_MAX)
		t->v[t->n] = (struct test){ place, *place, column };
	t->n++;
}

static bool
is_null(PgQuery__Node *n)
{
	const PgQuery__AConst *c = tree_as(n, &pg_query__a__const__descriptor);

	return c != NULL && c->isnull;
}

static int
visit(void *arg, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *field UNUSED)
{
	struct tests *t = arg;
	PgQuery__NullTest *n = (void *)(uintptr_t)m;
	PgQuery__AExpr *x = (void *)(uintptr_t)m;

	if (m == NULL || m->descriptor == &pg_query__sub_link__descriptor)
		return 0;
	if (m->descriptor == &pg_query__null_test__descriptor) {
		add(t, &n->arg);
	} else if (m->descriptor == &pg_query__a__expr__descriptor &&
		   (x->kind == PG_QUERY__A__EXPR__KIND__AEXPR_DISTINCT ||
		       x->kind ==
			   PG_QUERY__A__EXPR__KIND__AEXPR_NOT_DISTINCT)) {
		if (is_null(x->rexpr))
			add(t, &x->lexpr);
		else if (is_null(x->lexpr))
			add(t, &x->rexpr);
	}
	return tree_children(m, visit, t);
}

/* Whether it is vacuous where the column (NULL: every one) is never NULL. */
static bool
is_vacuous_with(const struct tests *t, PgQuery__Node *where, const char *column)
{
	PgQuery__Integer one = PG_QUERY__INTEGER__INIT;
	PgQuery__AConst number = PG_QUERY__A__CONST__INIT;
	PgQuery__Node something = PG_QUERY__NODE__INIT;
	bool vacuous;

	one.ival = 1;
	number.val_case = PG_QUERY__A__CONST__VAL_IVAL;
	number.ival = &one;
	something.node_case = PG_QUERY__NODE__NODE_A_CONST;
	something.a_const = &number;
	for (size_t i = 0; i < t->n; i++)
		if (column == NULL || strcmp(t->v[i].column, column) == 0)
			*t->v[i].place = &something;
	vacuous = where_is_vacuous(where);
	for (size_t i = 0; i < t->n; i++)
		*t->v[i].place = t->v[i].was;
	return vacuous;
}

void
nulls_read(PgQuery__Node *where, const char *target, struct facts *f)
{
	struct tests t = { .target = target };

	(void)visit(&t, tree_inner(where), NULL);
	if (t.n == 0 || t.n > TESTS_MAX || where_is_vacuous(where) ||
	    !is_vacuous_with(&t, where, NULL))
		return;
	for (size_t i = 0; i < t.n; i++) {
		const char *column = t.v[i].column;

		if (facts_has_text(&f->not_null_all, column))
			continue;
		facts_add_text(&f->not_null_all, column);
		if (is_vacuous_with(&t, where, column))
			facts_add_text(&f->not_null_any, column);
	}
}
