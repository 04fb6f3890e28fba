/* mention: whether a condition speaks of the rows that are written */
#include "sql/mention.h"

#include <string.h>

#include "base/err.h"
#include "sql/tree.h"

/* A SELECT around the place being read, the innermost first. */
struct level {
	const PgQuery__SelectStmt *select;
	const struct level *up;
};

struct reading {
	const struct mention_target *target;
	const struct level *level;
};

static int read_tree(struct reading *r, const ProtobufCMessage *m);

static int
visit(void *arg, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *field UNUSED)
{
	return m != NULL ? read_tree(arg, m) : 0;
}

static bool
alias_is(const ProtobufCMessage *m, const char *name)
{
	return m != NULL && m->descriptor == &pg_query__alias__descriptor &&
	       strcmp(((const PgQuery__Alias *)m)->aliasname, name) == 0;
}

/* Whether a FROM item makes the name known. */
static bool
item_is(const ProtobufCMessage *item, const char *name)
{
	const ProtobufCMessage *alias;
	const PgQuery__JoinExpr *j = (const void *)item;
	const PgQuery__RangeTableSample *s = (const void *)item;
	const PgQuery__RangeVar *v = (const void *)item;

	if (item == NULL)
		return false;
	if (item->descriptor == &pg_query__range_table_sample__descriptor)
		return item_is(tree_inner(s->relation), name);
	if ((alias = tree_message(item, "alias")) != NULL)
		return alias_is(alias, name);
	if (item->descriptor == &pg_query__join_expr__descriptor)
		return item_is(tree_inner(j->larg), name) ||
		       item_is(tree_inner(j->rarg), name) ||
		       alias_is(tree_message(item, "join_using_alias"), name);
	return item->descriptor == &pg_query__range_var__descriptor &&
	       strcmp(v->relname, name) == 0;
}

static bool
is_shadowed(const struct reading *r, const char *name)
{
	for (const struct level *l = r->level; l != NULL; l = l->up)
		for (size_t i = 0; i < l->select->n_from_clause; i++)
			if (item_is(tree_inner(l->select->from_clause[i]),
				name))
				return true;
	return false;
}

static bool
has_from(const struct reading *r)
{
	for (const struct level *l = r->level; l != NULL; l = l->up)
		if (l->select->n_from_clause > 0)
			return true;
	return false;
}

static const char *
part(const PgQuery__ColumnRef *c, size_t i)
{
	const PgQuery__String *s =
	    tree_as(c->fields[i], &pg_query__string__descriptor);

	return s != NULL ? s->sval : "";
}

static int
column_ref(struct reading *r, const ProtobufCMessage *m)
{
	const PgQuery__ColumnRef *c = (const void *)m;
	const struct mention_target *t = r->target;
	size_t n = c->n_fields;
	const char *relation;

	if (n == 0)
		return 0;
	if (n == 1 && !has_from(r))
		return 1;
	/* A bare name may be the whole row of a relation. */
	relation = part(c, n == 1 ? 0 : n - 2);
	if (strcmp(relation, t->name) != 0)
		return 0;
	if (n > 2)
		return !t->is_alias &&
		       (t->schema == NULL ||
			   strcmp(part(c, n - 3), t->schema) == 0);
	return !is_shadowed(r, relation);
}

static int
select_stmt(struct reading *r, const ProtobufCMessage *m)
{
	struct level level = { (const void *)m, r->level };
	int rc;

	r->level = &level;
	rc = tree_children(m, visit, r);
	r->level = level.up;
	return rc;
}

/* Not within reach of the FROM items of the SELECT around it. */
static int
apart(struct reading *r, const ProtobufCMessage *m)
{
	const struct level *level = r->level;
	int rc;

	if (level != NULL && !tree_bool(m, "lateral"))
		r->level = level->up;
	rc = tree_children(m, visit, r);
	r->level = level;
	return rc;
}

static int
read_tree(struct reading *r, const ProtobufCMessage *m)
{
	if (m->descriptor == &pg_query__column_ref__descriptor)
		return column_ref(r, m);
	if (m->descriptor == &pg_query__select_stmt__descriptor)
		return select_stmt(r, m);
	if (m->descriptor == &pg_query__range_subselect__descriptor ||
	    m->descriptor == &pg_query__with_clause__descriptor)
		return apart(r, m);
	return tree_children(m, visit, r);
}

bool
mention_possible(const PgQuery__Node *where,
    const struct mention_target *target)
{
	struct reading r = { target, NULL };
	const ProtobufCMessage *m = tree_inner(where);

	return m != NULL && read_tree(&r, m) != 0;
}
