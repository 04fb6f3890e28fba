/* rewrite: splices text into an agent's statement at token positions, and
 * proves by parse trees that nothing else changed */
#include "sql/rewrite.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "sql/parse.h"
#include "sql/splice.h"
#include "sql/tree.h"

/* The parts of an INSERT, UPDATE or DELETE that an edit can reach; where the
 * statement cannot have one, its pointer is NULL. */
struct parts {
	const PgQuery__RangeVar *relation;
	PgQuery__Token from_word;
	PgQuery__Node ***from;
	size_t *nfrom;
	PgQuery__Node **where;
	PgQuery__Node ***returning;
	size_t *nreturning;
};

static void
parts_of(PgQuery__Node *n, struct parts *p)
{
	PgQuery__InsertStmt *i = tree_as(n, &pg_query__insert_stmt__descriptor);
	PgQuery__UpdateStmt *u = tree_as(n, &pg_query__update_stmt__descriptor);
	PgQuery__DeleteStmt *d = tree_as(n, &pg_query__delete_stmt__descriptor);

	if (i != NULL)
		*p = (struct parts){ i->relation, 0, NULL, NULL, NULL,
			&i->returning_list, &i->n_returning_list };
	else if (u != NULL)
		*p = (struct parts){ u->relation, PG_QUERY__TOKEN__FROM,
			&u->from_clause, &u->n_from_clause, &u->where_clause,
			&u->returning_list, &u->n_returning_list };
	else if (d != NULL)
		*p = (struct parts){ d->relation, PG_QUERY__TOKEN__USING,
			&d->using_clause, &d->n_using_clause, &d->where_clause,
			&d->returning_list, &d->n_returning_list };
}

/* A fragment, parsed alone within the shortest statement that can hold it. */
struct fragment {
	const char *text; /* NULL: nothing is to be added */
	struct parse parse;
	PgQuery__Node **v;
	size_t n;
};

enum place { PLACE_FROM, PLACE_WHERE, PLACE_RETURNING, NPLACES };

static const struct {
	const char *name, *before, *without;
} places[NPLACES] = {
	[PLACE_FROM] = { "FROM item", "SELECT 1 FROM ", "SELECT 1" },
	[PLACE_WHERE] = { "condition", "SELECT 1 WHERE ", "SELECT 1" },
	[PLACE_RETURNING] = { "target list", "SELECT ", "SELECT" },
};

/* Moves the fragment's nodes out of the statement around it. */
static void
take_nodes(PgQuery__SelectStmt *s, enum place place, struct fragment *f)
{
	if (place == PLACE_FROM) {
		f->v = s->from_clause;
		f->n = s->n_from_clause;
		s->n_from_clause = 0;
	} else if (place == PLACE_RETURNING) {
		f->v = s->target_list;
		f->n = s->n_target_list;
		s->n_target_list = 0;
	} else if (s->where_clause != NULL) {
		f->v = parse_alloc(&f->parse, sizeof(*f->v));
		if (f->v == NULL)
			fatalx("out of memory");
		f->v[0] = s->where_clause;
		f->n = 1;
		s->where_clause = NULL;
	}
}

/* What is left of a tree is the same as the tree of this text. */
static bool
is_tree_of(struct parse *p, const char *text)
{
	struct err ignored = ERR_INIT;
	struct parse q = { 0 };
	long position;
	bool same;

	if (parse_text(text, strlen(text), &q, &position, &ignored) == -1)
		return false;
	same = tree_equal(&p->tree->base, &q.tree->base);
	parse_release(&q);
	return same;
}

static int
fragment_parse(struct fragment *f, enum place place, const char *text,
    struct err *e)
{
	PgQuery__SelectStmt *s;
	struct text t = { 0 };
	long position;
	int rc;

	text_add(&t, places[place].before);
	text_add(&t, text);
	rc = parse_text(t.s, t.len, &f->parse, &position, e);
	text_release(&t);
	if (rc == -1) {
		e->code = ERR_INPUT;
		return err_wrap(e, "%s to be added", places[place].name);
	}
	s = tree_as(parse_single(&f->parse),
	    &pg_query__select_stmt__descriptor);
	if (s != NULL)
		take_nodes(s, place, f);
	if (f->n == 0 || (place == PLACE_FROM && f->n != 1) ||
	    !is_tree_of(&f->parse, places[place].without))
		return err_set(e, ERR_INPUT, "what is to be added is not a %s",
		    places[place].name);
	f->text = text;
	return 0;
}

/* The text as it grows, and what was put in. */
struct weave {
	const char *sql;
	long taken; /* bytes of sql that are in out */
	struct text out;
	struct rewrite_result *result;
};

static void
put(struct weave *w, long at, const char *before, const char *text,
    const char *after)
{
	struct rewrite_insert *in = &w->result->inserts[w->result->ninserts++];

	assert(w->result->ninserts <= REWRITE_INSERTS_MAX && at >= w->taken);
	text_addn(&w->out, w->sql + w->taken, (size_t)(at - w->taken));
	w->taken = at;
	in->at = at;
	in->len = (long)w->out.len;
	text_add(&w->out, before);
	text_add(&w->out, text);
	text_add(&w->out, after);
	in->len = (long)w->out.len - in->len;
}

/* Where the clauses begin, as token numbers; SPLICE_NONE where they do not. */
struct clauses {
	size_t first, from, where, returning;
	size_t before_where;     /* end of what stands before WHERE */
	size_t before_returning; /* the same for RETURNING */
};

static void
find_clauses(const struct splice_tokens *t, const struct parts *p,
    struct clauses *c)
{
	size_t none = SPLICE_NONE;

	c->first = splice_at(t, p->relation->location);
	c->returning =
	    splice_find(t, c->first, t->n, PG_QUERY__TOKEN__RETURNING);
	c->before_returning = c->returning != none ? c->returning : t->n;
	c->where = p->where == NULL
	               ? none
	               : splice_find(t, c->first, c->before_returning,
			     PG_QUERY__TOKEN__WHERE);
	c->before_where = c->where != none ? c->where : c->before_returning;
	c->from = p->from == NULL
	              ? none
	              : splice_find(t, c->first, c->before_where, p->from_word);
}

static int
weave(struct weave *w, const struct splice_tokens *t, const struct parts *p,
    const struct fragment f[NPLACES], struct err *e)
{
	const char *word =
	    p->from_word == PG_QUERY__TOKEN__USING ? " USING " : " FROM ";
	struct clauses c;
	long end;

	find_clauses(t, p, &c);
	if (c.before_where <= c.first || c.before_returning <= c.first ||
	    (c.where != SPLICE_NONE && c.where + 1 >= c.before_returning))
		return err_set(e, ERR_UNFIT, "the clauses are not found");
	if (f[PLACE_FROM].text != NULL)
		put(w, t->v[c.before_where - 1].end,
		    c.from != SPLICE_NONE ? ", " : word, f[PLACE_FROM].text,
		    "");
	end = t->v[c.before_returning - 1].end;
	if (f[PLACE_WHERE].text != NULL && c.where != SPLICE_NONE) {
		put(w, t->v[c.where + 1].start, "(", "", "");
		put(w, end, ") AND (", f[PLACE_WHERE].text, ")");
	} else if (f[PLACE_WHERE].text != NULL)
		put(w, end, " WHERE (", f[PLACE_WHERE].text, ")");
	if (f[PLACE_RETURNING].text != NULL)
		put(w, t->v[t->n - 1].end,
		    c.returning != SPLICE_NONE ? ", " : " RETURNING ",
		    f[PLACE_RETURNING].text, "");
	text_add(&w->out, w->sql + w->taken);
	return 0;
}

static void
append(struct parse *p, PgQuery__Node ***v, size_t *n, const struct fragment *f)
{
	PgQuery__Node **more = parse_alloc(p, (*n + f->n) * sizeof(*more));

	if (more == NULL)
		fatalx("out of memory");
	if (*n > 0)
		memcpy(more, *v, *n * sizeof(*more));
	memcpy(more + *n, f->v, f->n * sizeof(*more));
	*v = more;
	*n += f->n;
}

/* As PostgreSQL's makeAndExpr(): an AND on the left takes one more. */
static void
conjoin(struct parse *p, PgQuery__Node **where, const struct fragment *f)
{
	PgQuery__BoolExpr *b =
	    tree_as(*where, &pg_query__bool_expr__descriptor);
	struct fragment old = { .v = where, .n = 1 };
	PgQuery__Node *n;

	if (*where == NULL) {
		*where = f->v[0];
		return;
	}
	if (b == NULL || b->boolop != PG_QUERY__BOOL_EXPR_TYPE__AND_EXPR) {
		b = parse_alloc(p, sizeof(*b));
		n = parse_alloc(p, sizeof(*n));
		if (b == NULL || n == NULL)
			fatalx("out of memory");
		pg_query__bool_expr__init(b);
		b->boolop = PG_QUERY__BOOL_EXPR_TYPE__AND_EXPR;
		append(p, &b->args, &b->n_args, &old);
		pg_query__node__init(n);
		n->node_case = PG_QUERY__NODE__NODE_BOOL_EXPR;
		n->bool_expr = b;
		*where = n;
	}
	append(p, &b->args, &b->n_args, f);
}

/* The tree of the woven text is that of the agent's with the fragments' own
 * nodes where the grammar would put them, and nothing else. */
static bool
is_proved(struct parse *p, struct parts *parts,
    const struct fragment f[NPLACES], const char *woven)
{
	if (f[PLACE_FROM].text != NULL)
		append(p, parts->from, parts->nfrom, &f[PLACE_FROM]);
	if (f[PLACE_WHERE].text != NULL)
		conjoin(p, parts->where, &f[PLACE_WHERE]);
	if (f[PLACE_RETURNING].text != NULL)
		append(p, parts->returning, parts->nreturning,
		    &f[PLACE_RETURNING]);
	return is_tree_of(p, woven);
}

static int
check_shape(const struct parts *p, const struct rewrite_edit *edit,
    struct err *e)
{
	if (p->relation == NULL)
		return err_set(e, ERR_INPUT,
		    "not a single INSERT, UPDATE or DELETE");
	if (edit->from == NULL && edit->where == NULL)
		return 0;
	if (p->where == NULL)
		return err_set(e, ERR_INPUT,
		    "an INSERT takes neither FROM nor WHERE");
	if (tree_as(*p->where, &pg_query__current_of_expr__descriptor) != NULL)
		return err_set(e, ERR_INPUT,
		    "WHERE CURRENT OF takes neither FROM nor WHERE");
	return 0;
}

static int
rewrite_parsed(struct parse *p, const struct rewrite_edit *edit,
    struct fragment f[NPLACES], struct rewrite_result *out, struct err *e)
{
	const char *const texts[NPLACES] = { edit->from, edit->where,
		edit->returning };
	struct weave w = { .sql = p->sql, .result = out };
	struct splice_tokens tokens = { 0 };
	struct parts parts = { 0 };
	int rc = -1;

	parts_of(parse_single(p), &parts);
	if (check_shape(&parts, edit, e) == -1)
		return -1;
	for (int i = 0; i < NPLACES; i++)
		if (texts[i] != NULL &&
		    fragment_parse(&f[i], i, texts[i], e) == -1)
			return -1;
	if (splice_scan(p->sql, &tokens, e) == -1 ||
	    weave(&w, &tokens, &parts, f, e) == -1)
		goto out;
	if (!is_proved(p, &parts, f, w.out.s)) {
		err_set(e, ERR_UNFIT,
		    "the rewritten statement is not proved "
		    "to be the same but for what was added");
		goto out;
	}
	out->sql = text_take(&w.out);
	rc = 0;
out:
	text_release(&w.out);
	splice_release(&tokens);
	return rc;
}

int
rewrite(const char *sql, const struct rewrite_edit *edit,
    struct rewrite_result *out, struct err *e)
{
	struct fragment f[NPLACES] = { 0 };
	struct rewrite_result result = { 0 };
	struct parse p = { 0 };
	long position;
	int rc;

	if (parse_text(sql, strlen(sql), &p, &position, e) == -1)
		return -1;
	rc = rewrite_parsed(&p, edit, f, &result, e);
	for (int i = 0; i < NPLACES; i++)
		parse_release(&f[i].parse);
	parse_release(&p);
	if (rc == 0)
		*out = result;
	return rc;
}

void
rewrite_result_release(struct rewrite_result *r)
{
	free(r->sql);
	memset(r, 0, sizeof(*r));
}

void
rewrite_result_copy(struct rewrite_result *to,
    const struct rewrite_result *from)
{
	*to = *from;
	to->sql = from->sql != NULL ? mem_strdup(from->sql) : NULL;
}

long
rewrite_map_back(const struct rewrite_insert *v, size_t n, long position)
{
	for (size_t i = n; i > 0; i--) {
		long start = v[i - 1].at;

		for (size_t k = 0; k + 1 < i; k++)
			start += v[k].len;
		if (position >= start + v[i - 1].len)
			return position - (start - v[i - 1].at) - v[i - 1].len;
		if (position >= start)
			return -1;
	}
	return position;
}
