/* facts: what one statement is and touches, read from its parse tree alone */
#include "sql/facts.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "sql/classify.h"
#include "sql/given.h"
#include "sql/mention.h"
#include "sql/nulls.h"
#include "sql/parse.h"
#include "sql/splice.h"
#include "sql/tree.h"
#include "sql/walk.h"
#include "sql/where.h"

/* What the four writing statements have in common; NULL or 0 where one has
 * no such part. */
struct target {
	const ProtobufCMessage *stmt;
	const PgQuery__RangeVar *relation;
	PgQuery__Node *where;
	PgQuery__Node **set;
	size_t nset;
	size_t nreturning;
};

static void
from_insert(const ProtobufCMessage *m, struct target *t, struct facts *f)
{
	const PgQuery__InsertStmt *s = (const void *)m;
	const PgQuery__OnConflictClause *c = s->on_conflict_clause;

	t->relation = s->relation;
	t->nreturning = s->n_returning_list;
	if (c == NULL)
		return;
	f->conflict =
	    c->action == PG_QUERY__ON_CONFLICT_ACTION__ONCONFLICT_NOTHING
		? CONFLICT_NOTHING
		: CONFLICT_UPDATE;
	t->set = c->target_list;
	t->nset = c->n_target_list;
}

static void
from_update(const ProtobufCMessage *m, struct target *t, struct facts *f UNUSED)
{
	const PgQuery__UpdateStmt *s = (const void *)m;

	t->relation = s->relation;
	t->where = s->where_clause;
	t->set = s->target_list;
	t->nset = s->n_target_list;
	t->nreturning = s->n_returning_list;
}

static void
from_delete(const ProtobufCMessage *m, struct target *t, struct facts *f UNUSED)
{
	const PgQuery__DeleteStmt *s = (const void *)m;

	t->relation = s->relation;
	t->where = s->where_clause;
	t->nreturning = s->n_returning_list;
}

/* The join condition is what chooses a MERGE's rows. */
static void
from_merge(const ProtobufCMessage *m, struct target *t, struct facts *f UNUSED)
{
	const PgQuery__MergeStmt *s = (const void *)m;

	t->relation = s->relation;
	t->where = s->join_condition;
#if PG_VERSION_NUM >= 170000
	t->nreturning = s->n_returning_list;
#endif
}

static const struct {
	const ProtobufCMessageDescriptor *d;
	void (*read)(const ProtobufCMessage *m, struct target *t,
	    struct facts *f);
} targets[] = {
	{ &pg_query__insert_stmt__descriptor, from_insert },
	{ &pg_query__update_stmt__descriptor, from_update },
	{ &pg_query__delete_stmt__descriptor, from_delete },
	{ &pg_query__merge_stmt__descriptor, from_merge },
};

static void
read_target(const ProtobufCMessage *m, struct target *t, struct facts *f)
{
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		if (m != NULL && targets[i].d == m->descriptor) {
			t->stmt = m;
			targets[i].read(m, t, f);
		}
}

static void
describe_set(const struct target *t, struct facts *f)
{
	for (size_t i = 0; i < t->nset; i++) {
		const PgQuery__ResTarget *r =
		    tree_as(t->set[i], &pg_query__res_target__descriptor);

		if (r != NULL)
			facts_add_text(&f->set_columns, r->name);
	}
}

static struct mention_target
mentioned(const PgQuery__RangeVar *r)
{
	return (struct mention_target){
		.schema = *r->schemaname != '\0' ? r->schemaname : NULL,
		.name = r->alias != NULL ? r->alias->aliasname : r->relname,
		.is_alias = r->alias != NULL,
	};
}

static void
describe_where(const struct target *t, struct facts *f)
{
	struct mention_target m = mentioned(t->relation);

	f->has_where = t->where != NULL;
	if (t->where == NULL)
		return;
	f->current_of =
	    tree_as(t->where, &pg_query__current_of_expr__descriptor) != NULL;
	if (f->current_of)
		return;
	f->where_vacuous = where_is_vacuous(t->where);
	f->where_ignores_target = !mention_possible(t->where, &m);
	nulls_read(t->where, m.name, f);
}

/* What a write in a CTE chooses no rows by; '\0' where it does choose. */
static char
carelessness(const struct target *t)
{
	struct mention_target m = mentioned(t->relation);

	if (t->where == NULL)
		return 'n';
	if (tree_as(t->where, &pg_query__current_of_expr__descriptor) != NULL)
		return '\0';
	if (where_is_vacuous(t->where))
		return 'v';
	return mention_possible(t->where, &m) ? '\0' : 'g';
}

/* PostgreSQL takes them at the top of a statement alone. */
static void
describe_nested(const ProtobufCMessage *m, struct facts *f)
{
	const PgQuery__WithClause *w =
	    m != NULL ? (const void *)tree_message(m, "with_clause") : NULL;

	for (size_t i = 0; w != NULL && i < w->n_ctes; i++) {
		const PgQuery__CommonTableExpr *c = tree_as(w->ctes[i],
		    &pg_query__common_table_expr__descriptor);
		const ProtobufCMessage *q =
		    c != NULL ? tree_inner(c->ctequery) : NULL;
		struct target t = { 0 };
		struct facts ignored = { 0 };
		struct facts_name n = { .nested = true, .nargs = -1 };

		read_target(q, &t, &ignored);
		if (q == NULL || t.relation == NULL ||
		    (q->descriptor != &pg_query__update_stmt__descriptor &&
			q->descriptor != &pg_query__delete_stmt__descriptor) ||
		    (n.op = carelessness(&t)) == '\0')
			continue;
		n.schema = *t.relation->schemaname != '\0'
		               ? t.relation->schemaname
		               : NULL;
		n.name = t.relation->relname;
		n.position = t.relation->location;
		facts_add_name(&f->careless, &n);
	}
}

static void
describe_target(const struct target *t, struct facts *f)
{
	const PgQuery__RangeVar *r = t->relation;

	f->target_has_alias = r->alias != NULL;
	f->target_ref =
	    mem_strdup(r->alias != NULL ? r->alias->aliasname : r->relname);
	f->target_position = r->location;
	f->only = !r->inh;
	f->has_returning = t->nreturning > 0;
	describe_set(t, f);
	describe_where(t, f);
}

/* As defGetBoolean() reads it, save that in doubt it is on. */
static bool
option_is_on(const PgQuery__DefElem *d)
{
	const PgQuery__Integer *i =
	    tree_as(d->arg, &pg_query__integer__descriptor);
	const PgQuery__String *s =
	    tree_as(d->arg, &pg_query__string__descriptor);
	const PgQuery__Boolean *b =
	    tree_as(d->arg, &pg_query__boolean__descriptor);

	if (i != NULL)
		return i->ival != 0;
	if (b != NULL)
		return b->boolval;
	return s == NULL || (strcasecmp(s->sval, "false") != 0 &&
				strcasecmp(s->sval, "off") != 0);
}

/* Gives what is explained. */
static const ProtobufCMessage *
explain(const PgQuery__ExplainStmt *x, struct facts *f)
{
	const ProtobufCMessage *m = tree_inner(x->query);
	char *tag;

	f->explain = true;
	for (size_t i = 0; i < x->n_options; i++) {
		const PgQuery__DefElem *d =
		    tree_as(x->options[i], &pg_query__def_elem__descriptor);

		if (d != NULL &&
		    (strcasecmp(d->defname, "analyze") == 0 ||
			strcasecmp(d->defname, "analyse") == 0) &&
		    option_is_on(d))
			f->explain_analyze = true;
	}
	f->explain_kind = classify(m, &tag);
	free(tag);
	return m;
}

/* Where a statement of the text begins, white space aside; -1 where there is
 * none. */
static long
beginning(const struct parse *p, size_t i)
{
	long at;

	if (i >= p->tree->n_stmts)
		return -1;
	at = p->tree->stmts[i]->stmt_location;
	if (at < 0 || (size_t)at > p->len)
		return -1;
	return at + (long)strspn(p->sql + at, "; \t\n\r\f\v");
}

/* The tree does not tell where a locking clause is; the words do. */
static void
find_locking(const struct parse *p, struct facts *f)
{
	struct splice_tokens t = { 0 };
	struct err ignored = ERR_INIT;

	if (!f->locking || splice_scan(p->sql, &t, &ignored) == -1)
		return;
	for (size_t i = 0; i + 1 < t.n && f->locking_position == -1; i++) {
		PgQuery__Token next = t.v[i + 1].what;

		if (t.v[i].what == PG_QUERY__TOKEN__FOR &&
		    (next == PG_QUERY__TOKEN__UPDATE ||
			next == PG_QUERY__TOKEN__SHARE ||
			next == PG_QUERY__TOKEN__NO ||
			next == PG_QUERY__TOKEN__KEY))
			f->locking_position = t.v[i].start;
	}
	splice_release(&t);
}

static int
read_statement(const ProtobufCMessage *m, struct facts *f, struct err *e)
{
	struct target t = { 0 };
	const ProtobufCMessage *own;

	f->kind = classify(m, &f->tag);
	f->node = mem_strdup(m != NULL ? m->descriptor->short_name : "");
	if (m == NULL) {
		f->opaque = true;
		f->opaque_node = mem_strdup("statement");
		return 0;
	}
	own = f->kind == STMT_EXPLAIN ? explain((const void *)m, f) : m;
	read_target(own, &t, f);
	if (walk_statement(m, t.stmt, f, e) == -1)
		return -1;
	if (t.relation != NULL)
		describe_target(&t, f);
	describe_nested(own, f);
	given_read(own, f);
	return 0;
}

int
facts_read(const struct parse *p, struct facts *f, struct err *e)
{
	const PgQuery__ParseResult *tree = p->tree;

	memset(f, 0, sizeof(*f));
	f->statements = tree->n_stmts;
	f->depth = p->depth;
	f->position = beginning(p, 0);
	f->second_position = beginning(p, 1);
	f->locking_position = f->into_position = -1;
	f->target_position = -1;
	f->kind = f->explain_kind = STMT_EMPTY;
	if (tree->n_stmts == 0) {
		f->tag = mem_strdup("");
		f->node = mem_strdup("");
		return 0;
	}
	if (read_statement(tree_inner(tree->stmts[0]->stmt), f, e) == -1) {
		facts_release(f);
		return -1;
	}
	find_locking(p, f);
	return 0;
}

void
facts_add_name(struct facts_names *v, const struct facts_name *n)
{
	struct facts_name *to;

	v->v = mem_grow(v->v, v->n + 1, sizeof(*v->v));
	to = &v->v[v->n++];
	*to = *n;
	to->schema = n->schema != NULL ? mem_strdup(n->schema) : NULL;
	to->name = mem_strdup(n->name);
}

bool
facts_has_text(const struct facts_texts *v, const char *s)
{
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->v[i], s) == 0)
			return true;
	return false;
}

void
facts_add_text(struct facts_texts *v, const char *s)
{
	v->v = mem_grow(v->v, v->n + 1, sizeof(*v->v));
	v->v[v->n++] = mem_strdup(s);
}

static void
texts_release(struct facts_texts *v)
{
	for (size_t i = 0; i < v->n; i++)
		free(v->v[i]);
	free(v->v);
}

void
facts_forget(struct facts_names *v)
{
	for (size_t i = 0; i < v->n; i++) {
		free(v->v[i].schema);
		free(v->v[i].name);
	}
	free(v->v);
	*v = (struct facts_names){ 0 };
}

void
facts_release(struct facts *f)
{
	facts_forget(&f->reads);
	facts_forget(&f->writes);
	facts_forget(&f->functions);
	facts_forget(&f->implied);
	facts_forget(&f->careless);
	texts_release(&f->not_null_any);
	texts_release(&f->not_null_all);
	texts_release(&f->given);
	texts_release(&f->made);
	texts_release(&f->set_columns);
	free(f->tag);
	free(f->node);
	free(f->opaque_node);
	free(f->target_ref);
	memset(f, 0, sizeof(*f));
}

void
facts_add_relations(struct text *array, const struct facts_names *v)
{
	for (size_t i = 0; i < v->n; i++) {
		struct text name = { 0 };

		if (v->v[i].schema != NULL) {
			text_add_ident(&name, v->v[i].schema);
			text_addc(&name, '.');
		}
		text_add_ident(&name, v->v[i].name);
		text_add_item(array, text_str(&name), name.len);
		text_release(&name);
	}
}
