/* walk: one pass over a statement's tree, filling in what it names */
#include "sql/walk.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sql/parse.h"
#include "sql/tree.h"

/* The names that a WITH clause has made visible so far. */
struct scope {
	const PgQuery__WithClause *with;
	size_t visible;
	const struct scope *up;
};

struct list {
	struct facts_names *names;
	uint32_t hash[WALK_NAMES_MAX];
};

struct walk {
	struct facts *f;
	const ProtobufCMessage *own;
	const struct scope *scope;
	int depth;
	int queries; /* SELECTs and writes around this place */
	struct list reads, writes, functions, implied;
	struct err *e;
};

static int walk(struct walk *w, const ProtobufCMessage *m);

static uint32_t
hash(uint32_t h, const char *s)
{
	for (; s != NULL && *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h * 31;
}

static bool
same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
same_name(const struct facts_name *a, const struct facts_name *b)
{
	return a->op == b->op && a->nested == b->nested &&
	       a->nargs == b->nargs && same_text(a->schema, b->schema) &&
	       same_text(a->name, b->name);
}

/* Copies *n unless the list has it; its first place in the text stays. */
static int
add(struct walk *w, struct list *l, const struct facts_name *n)
{
	uint32_t h = hash(hash(2166136261u, n->schema), n->name);
	struct facts_names *v = l->names;

	for (size_t i = 0; i < v->n; i++)
		if (l->hash[i] == h && same_name(&v->v[i], n))
			return 0;
	if (v->n == WALK_NAMES_MAX)
		return err_set(w->e, ERR_LIMIT,
		    "the statement names more than %d different things",
		    WALK_NAMES_MAX);
	l->hash[v->n] = h;
	facts_add_name(v, n);
	return 0;
}

static void
opaque(struct walk *w, const char *node)
{
	w->f->opaque = true;
	if (w->f->opaque_node == NULL)
		w->f->opaque_node = mem_strdup(node);
}

/* protobuf-c has no NULL strings: an absent name is an empty one.  The name
 * is lent to add(), which copies it. */
static char *
lent(const char *s)
{
	return s == NULL || *s == '\0' ? NULL : (char *)(uintptr_t)s;
}

static int
add_relation(struct walk *w, struct list *l, char op, bool nested,
    const PgQuery__RangeVar *r)
{
	struct facts_name n = {
		.schema = lent(r->schemaname),
		.name = (char *)(uintptr_t)r->relname,
		.op = op,
		.nested = nested,
		.nargs = -1,
		.position = r->location,
	};

	return add(w, l, &n);
}

static int
add_function(struct walk *w, char op, const char *schema, const char *name,
    int nargs, long position)
{
	struct facts_name n = {
		.schema = lent(schema),
		.name = lent(name),
		.op = op,
		.nargs = nargs,
		.position = position,
	};

	if (n.name == NULL) {
		opaque(w, "FuncCall");
		return 0;
	}
	return add(w, &w->functions, &n);
}

static bool
is_cte(const struct walk *w, const PgQuery__RangeVar *r)
{
	const PgQuery__CommonTableExpr *c;

	if (*r->schemaname != '\0' || *r->catalogname != '\0')
		return false;
	for (const struct scope *s = w->scope; s != NULL; s = s->up)
		for (size_t i = 0; i < s->visible; i++)
			if ((c = tree_as(s->with->ctes[i],
				 &pg_query__common_table_expr__descriptor)) !=
				NULL &&
			    strcmp(c->ctename, r->relname) == 0)
				return true;
	return false;
}

/* The lists in which PostgreSQL's grammar itself puts empty nodes: DISTINCT
 * without ON, and a function in FROM without a column list. */
static bool
may_be_empty(const ProtobufCFieldDescriptor *field)
{
	return strcmp(field->name, "distinct_clause") == 0 ||
	       strcmp(field->name, "items") == 0;
}

static int
visit(void *arg, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *field)
{
	struct walk *w = arg;

	if (m != NULL)
		return walk(w, m);
	if (!may_be_empty(field))
		opaque(w, field->name);
	return 0;
}

static int
children(struct walk *w, const ProtobufCMessage *m)
{
	return tree_children(m, visit, w);
}

/* As children, with one field left out. */
struct without {
	struct walk *w;
	const void *left_out, *also;
};

static int
visit_without(void *arg, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *field)
{
	struct without *o = arg;

	return m != NULL && (m == o->left_out || m == o->also)
	           ? 0
	           : visit(o->w, m, field);
}

/*
 * The common table expressions in turn, then the rest of the statement. Without
 * RECURSIVE, an expression sees those before it; with it, all of them.
 */
static int
query(struct walk *w, const ProtobufCMessage *m,
    const PgQuery__WithClause *with, const void *target)
{
	struct scope scope = { with, 0, w->scope };
	struct without o = { w, with, target };
	int rc = 0;

	w->queries++;
	if (with != NULL) {
		w->scope = &scope;
		scope.visible = with->recursive ? with->n_ctes : 0;
		for (size_t i = 0; rc == 0 && i < with->n_ctes; i++) {
			rc = visit(w, tree_inner(with->ctes[i]),
			    with->base.descriptor->fields);
			if (!with->recursive)
				scope.visible = i + 1;
		}
	}
	if (rc == 0)
		rc = tree_children(m, visit_without, &o);
	w->scope = scope.up;
	w->queries--;
	return rc;
}

static int
select_stmt(struct walk *w, const ProtobufCMessage *m)
{
	const PgQuery__SelectStmt *s = (const void *)m;

	return query(w, m, s->with_clause, NULL);
}

/* A target is a relation whatever the WITH clause calls its own. */
static int
write(struct walk *w, const ProtobufCMessage *m, char op,
    const PgQuery__RangeVar *target, const PgQuery__WithClause *with)
{
	if (target == NULL) {
		opaque(w, m->descriptor->short_name);
		return 0;
	}
	if (add_relation(w, &w->writes, op, m != w->own, target) == -1)
		return -1;
	return query(w, m, with, target);
}

#define WRITE(fn, type, op)                                                    \
	static int fn(struct walk *w, const ProtobufCMessage *m)               \
	{                                                                      \
		const type *s = (const void *)m;                               \
                                                                               \
		return write(w, m, op, s->relation, s->with_clause);           \
	}
WRITE(insert_stmt, PgQuery__InsertStmt, 'i')
WRITE(update_stmt, PgQuery__UpdateStmt, 'u')
WRITE(delete_stmt, PgQuery__DeleteStmt, 'd')
WRITE(merge_stmt, PgQuery__MergeStmt, 'm')

static int
range_var(struct walk *w, const ProtobufCMessage *m)
{
	const PgQuery__RangeVar *r = (const void *)m;

	if (w->queries == 0)
		return add_relation(w, &w->writes, 'x', false, r);
	if (!is_cte(w, r) && add_relation(w, &w->reads, 'r', false, r) == -1)
		return -1;
	return children(w, m);
}

static int
copy_stmt(struct walk *w, const ProtobufCMessage *m)
{
	const PgQuery__CopyStmt *s = (const void *)m;
	struct without o = { w, s->relation, NULL };

	if (s->relation != NULL &&
	    add_relation(w, s->is_from ? &w->writes : &w->reads,
		s->is_from ? 'i' : 'r', false, s->relation) == -1)
		return -1;
	return tree_children(m, visit_without, &o);
}

static int
into_clause(struct walk *w, const ProtobufCMessage *m)
{
	const PgQuery__IntoClause *s = (const void *)m;
	struct without o = { w, s->rel, NULL };

	w->f->into = true;
	if (s->rel != NULL && w->f->into_position == -1)
		w->f->into_position = s->rel->location;
	if (s->rel != NULL &&
	    add_relation(w, &w->writes, 'x', false, s->rel) == -1)
		return -1;
	return tree_children(m, visit_without, &o);
}

/* FOR UPDATE OF names what FROM has already named, so it reads nothing. */
static int
locking_clause(struct walk *w, const ProtobufCMessage *m UNUSED)
{
	w->f->locking = true;
	return 0;
}

static int
func_call(struct walk *w, const ProtobufCMessage *m)
{
	const PgQuery__FuncCall *c = (const void *)m;
	const char *schema, *name;
	size_t n = c->n_args;

	tree_qualified(c->funcname, c->n_funcname, &schema, &name);
	if (c->agg_within_group)
		n += c->n_agg_order;
	if (add_function(w, 'f', schema, name, c->func_variadic ? -1 : (int)n,
		c->location) == -1)
		return -1;
	return children(w, m);
}

static int
add_implied(struct walk *w, char op, const char *schema, const char *name,
    long position)
{
	struct facts_name n = {
		.schema = lent(schema),
		.name = lent(name),
		.op = op,
		.nargs = -1,
		.position = position,
	};

	return n.name == NULL ? 0 : add(w, &w->implied, &n);
}

/* A bare operator is looked up on the search path and is the catalog's affair;
 * OPERATOR(evil.+) calls whatever evil says. */
static int
add_operator(struct walk *w, PgQuery__Node *const *v, size_t n, int nargs,
    long position)
{
	const char *schema, *name;

	tree_qualified(v, n, &schema, &name);
	if (schema == NULL)
		return add_implied(w, 'o', NULL, name, position);
	if (strcmp(schema, "pg_catalog") == 0)
		return 0;
	return add_function(w, 'o', schema, name, nargs, position);
}

static int
a_expr(struct walk *w, const ProtobufCMessage *m)
{
	const PgQuery__AExpr *x = (const void *)m;

	if (add_operator(w, x->name, x->n_name, 1 + (x->lexpr != NULL),
		x->location) == -1)
		return -1;
	return children(w, m);
}

static int
sub_link(struct walk *w, const ProtobufCMessage *m)
{
	const PgQuery__SubLink *s = (const void *)m;

	if (add_operator(w, s->oper_name, s->n_oper_name, 2, s->location) == -1)
		return -1;
	return children(w, m);
}

static int
sort_by(struct walk *w, const ProtobufCMessage *m)
{
	const PgQuery__SortBy *s = (const void *)m;

	if (add_operator(w, s->use_op, s->n_use_op, 2, s->location) == -1)
		return -1;
	return children(w, m);
}

static int
range_table_sample(struct walk *w, const ProtobufCMessage *m)
{
	const PgQuery__RangeTableSample *s = (const void *)m;
	const char *schema, *name;

	tree_qualified(s->method, s->n_method, &schema, &name);
	if (add_implied(w, 's', schema, name, s->location) == -1)
		return -1;
	return children(w, m);
}

static int
type_name(struct walk *w, const ProtobufCMessage *m)
{
	const PgQuery__TypeName *t = (const void *)m;
	const char *schema, *name;

	tree_qualified(t->names, t->n_names, &schema, &name);
	if (add_implied(w, 't', schema, name, t->location) == -1)
		return -1;
	return children(w, m);
}

/* t.f and (expression).f call f(t) where there is no such column. */
static int
add_dotted(struct walk *w, PgQuery__Node *const *v, size_t n, long position)
{
	for (size_t i = 0; i < n; i++) {
		const PgQuery__String *s =
		    tree_as(v[i], &pg_query__string__descriptor);

		if (s != NULL &&
		    add_implied(w, 'a', NULL, s->sval, position) == -1)
			return -1;
	}
	return 0;
}

static int
column_ref(struct walk *w, const ProtobufCMessage *m)
{
	const PgQuery__ColumnRef *c = (const void *)m;

	if (c->n_fields > 1 &&
	    add_dotted(w, c->fields + 1, c->n_fields - 1, c->location) == -1)
		return -1;
	return children(w, m);
}

static int
a_indirection(struct walk *w, const ProtobufCMessage *m)
{
	const PgQuery__AIndirection *x = (const void *)m;

	if (add_dotted(w, x->indirection, x->n_indirection, -1) == -1)
		return -1;
	return children(w, m);
}

static int
param_ref(struct walk *w, const ProtobufCMessage *m)
{
	const PgQuery__ParamRef *p = (const void *)m;

	if (p->number > w->f->params)
		w->f->params = p->number;
	return 0;
}

static const struct {
	const ProtobufCMessageDescriptor *d;
	int (*fn)(struct walk *w, const ProtobufCMessage *m);
} handlers[] = {
	{ &pg_query__func_call__descriptor, func_call },
	{ &pg_query__a__expr__descriptor, a_expr },
	{ &pg_query__range_var__descriptor, range_var },
	{ &pg_query__select_stmt__descriptor, select_stmt },
	{ &pg_query__insert_stmt__descriptor, insert_stmt },
	{ &pg_query__update_stmt__descriptor, update_stmt },
	{ &pg_query__delete_stmt__descriptor, delete_stmt },
	{ &pg_query__merge_stmt__descriptor, merge_stmt },
	{ &pg_query__copy_stmt__descriptor, copy_stmt },
	{ &pg_query__into_clause__descriptor, into_clause },
	{ &pg_query__locking_clause__descriptor, locking_clause },
	{ &pg_query__sub_link__descriptor, sub_link },
	{ &pg_query__sort_by__descriptor, sort_by },
	{ &pg_query__range_table_sample__descriptor, range_table_sample },
	{ &pg_query__param_ref__descriptor, param_ref },
	{ &pg_query__type_name__descriptor, type_name },
	{ &pg_query__column_ref__descriptor, column_ref },
	{ &pg_query__a__indirection__descriptor, a_indirection },
};

/*
 * What the grammar of 16 and later makes of names that are ordinary functions
 * to an older server: there, json_value(...) may be anybody's.
 */
static const struct {
	const char *node, *function;
} json_nodes[] = {
	{ "JsonParseExpr", "json" },
	{ "JsonScalarExpr", "json_scalar" },
	{ "JsonSerializeExpr", "json_serialize" },
	{ "JsonObjectConstructor", "json_object" },
	{ "JsonArrayConstructor", "json_array" },
	{ "JsonArrayQueryConstructor", "json_array" },
	{ "JsonObjectAgg", "json_objectagg" },
	{ "JsonArrayAgg", "json_arrayagg" },
	{ "JsonTable", "json_table" },
	{ "MergeSupportFunc", "merge_action" },
};

static int
json_function(struct walk *w, const ProtobufCMessage *m)
{
	const char *node = m->descriptor->short_name, *function = NULL, *op;

	if (*node != 'J' && *node != 'M') /* all that the table begins with */
		return 0;
	for (size_t i = 0; i < sizeof(json_nodes) / sizeof(json_nodes[0]); i++)
		if (strcmp(json_nodes[i].node, node) == 0)
			function = json_nodes[i].function;
	if (strcmp(node, "JsonFuncExpr") == 0) {
		op = tree_enum(m, "op");
		function = op == NULL                          ? "json_query"
		           : strcmp(op, "JSON_EXISTS_OP") == 0 ? "json_exists"
		           : strcmp(op, "JSON_VALUE_OP") == 0  ? "json_value"
		                                               : "json_query";
	}
	return function == NULL ? 0
	                        : add_function(w, 'f', NULL, function, -1, -1);
}

static int
handle(struct walk *w, const ProtobufCMessage *m)
{
	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
		if (handlers[i].d == m->descriptor)
			return handlers[i].fn(w, m);
	if (json_function(w, m) == -1)
		return -1;
	return children(w, m);
}

static int
walk(struct walk *w, const ProtobufCMessage *m)
{
	int rc;

	/* The library knows more than the header that this was built with. */
	if (m->n_unknown_fields != 0)
		opaque(w, m->descriptor->short_name);
	if (w->depth == 2 * PARSE_DEPTH_MAX)
		return err_set(w->e, ERR_LIMIT,
		    "the statement is nested too deeply");
	w->depth++;
	rc = handle(w, m);
	w->depth--;
	return rc;
}

static bool
is_own(const struct facts_name *n)
{
	return n->op == 't' && n->schema != NULL &&
	       strcmp(n->schema, "pg_catalog") == 0;
}

/* Types of PostgreSQL's own mean something only where there is a value of
 * another: a cast of somebody's may lead to them. */
static void
forget_own_types(struct facts *f)
{
	struct facts_names *v = &f->implied;

	if (f->reads.n + f->writes.n + f->functions.n > 0)
		return;
	for (size_t i = 0; i < v->n; i++)
		if (!is_own(&v->v[i]))
			return;
	facts_forget(v);
}

int
walk_statement(const ProtobufCMessage *stmt, const ProtobufCMessage *own,
    struct facts *f, struct err *e)
{
	struct walk *w = mem_new(sizeof(*w));
	int rc;

	w->f = f;
	w->own = own;
	w->e = e;
	w->reads.names = &f->reads;
	w->writes.names = &f->writes;
	w->functions.names = &f->functions;
	w->implied.names = &f->implied;
	rc = walk(w, stmt);
	forget_own_types(f);
	free(w);
	return rc;
}
