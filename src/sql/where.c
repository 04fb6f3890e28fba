/* where: what a condition's form alone says about the rows that it chooses */
#include "sql/where.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "sql/tree.h"

/* IS_UNKNOWN depends on the row, a parameter, or what is not read here;
 * IS_FIXED is the same for every row, though its value is not worked out. */
enum worth {
	IS_UNKNOWN,
	IS_FIXED,
	IS_TRUE,
	IS_FALSE,
	IS_NULL,
	IS_NUMBER,
	IS_TEXT
};

struct value {
	enum worth is;
	double number;
	const char *text;
};

static struct value evaluate(const PgQuery__Node *n);

static struct value
worth(enum worth is)
{
	return (struct value){ .is = is };
}

static struct value
truth(bool b)
{
	return worth(b ? IS_TRUE : IS_FALSE);
}

static struct value
number(double d)
{
	return isfinite(d) ? (struct value){ .is = IS_NUMBER, .number = d }
	                   : worth(IS_FIXED);
}

/* Same for every row and not NULL for lack of knowledge. */
static bool
fixed(struct value v)
{
	return v.is != IS_UNKNOWN;
}

static struct value
constant(const PgQuery__AConst *c)
{
	if (c->isnull)
		return worth(IS_NULL);
	switch (c->val_case) {
	case PG_QUERY__A__CONST__VAL_IVAL:
		return number(c->ival->ival);
	case PG_QUERY__A__CONST__VAL_FVAL:
		return number(strtod(c->fval->fval, NULL));
	case PG_QUERY__A__CONST__VAL_BOOLVAL:
		return truth(c->boolval->boolval);
	case PG_QUERY__A__CONST__VAL_SVAL:
		return (struct value){ .is = IS_TEXT, .text = c->sval->sval };
	default:
		return worth(IS_FIXED);
	}
}

/* Whole numbers divide as whole numbers; of others the kind is not known. */
static struct value
divide(char op, double a, double b)
{
	const double max = 1e15; /* a double is exact up to there */
	long long whole, by;

	if (b == 0 || a > max || a < -max || b > max || b < -max)
		return worth(IS_FIXED);
	whole = (long long)a;
	by = (long long)b;
	if ((double)whole != a || (double)by != b)
		return worth(IS_FIXED);
	return number((double)(op == '/' ? whole / by : whole % by));
}

static struct value
arithmetic(char op, double a, double b)
{
	switch (op) {
	case '+':
		return number(a + b);
	case '-':
		return number(a - b);
	case '*':
		return number(a * b);
	default:
		return divide(op, a, b);
	}
}

/* order: -1, 0, 1, or 2 where only "different" is known */
static struct value
compare(const char *op, int order)
{
	static const struct {
		const char *op;
		bool less, equal, greater;
	} table[] = {
		{ "=", false, true, false },
		{ "<>", true, false, true },
		{ "!=", true, false, true },
		{ "<", true, false, false },
		{ "<=", true, true, false },
		{ ">", false, false, true },
		{ ">=", false, true, true },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].op, op) == 0) {
			if (order == 2 && table[i].less != table[i].greater)
				break;
			return truth(order == 0    ? table[i].equal
				     : order == -1 ? table[i].less
						   : table[i].greater);
		}
	return worth(IS_FIXED);
}

static bool
is_boolean(struct value v)
{
	return v.is == IS_TRUE || v.is == IS_FALSE;
}

static struct value
operate(const char *op, struct value a, struct value b)
{
	if (a.is == IS_NULL || b.is == IS_NULL)
		return worth(IS_NULL);
	if (a.is == IS_NUMBER && b.is == IS_NUMBER) {
		if (strlen(op) == 1 && strchr("+-*/%", *op) != NULL)
			return arithmetic(*op, a.number, b.number);
		return compare(op,
		    (a.number > b.number) - (a.number < b.number));
	}
	if (a.is == IS_TEXT && b.is == IS_TEXT)
		return compare(op, strcmp(a.text, b.text) == 0 ? 0 : 2);
	if (is_boolean(a) && is_boolean(b))
		return compare(op, (a.is == IS_TRUE) - (b.is == IS_TRUE));
	return fixed(a) && fixed(b) ? worth(IS_FIXED) : worth(IS_UNKNOWN);
}

static bool may_vary(const ProtobufCMessage *m);

static int
visit_vary(void *arg UNUSED, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *field UNUSED)
{
	return m != NULL && may_vary(m);
}

/* Two readings of it in one row may differ. */
static bool
may_vary(const ProtobufCMessage *m)
{
	return m->descriptor == &pg_query__func_call__descriptor ||
	       m->descriptor == &pg_query__sub_link__descriptor ||
	       tree_children(m, visit_vary, NULL) != 0;
}

static bool
same(const PgQuery__Node *a, const PgQuery__Node *b)
{
	const ProtobufCMessage *ma = tree_inner(a), *mb = tree_inner(b);

	return ma != NULL && mb != NULL && !may_vary(ma) && tree_equal(ma, mb);
}

/* v >= low AND v <= high; an operand that is v itself bounds nothing. */
static struct value
between(const PgQuery__AExpr *x, struct value v, const PgQuery__List *l)
{
	struct value low = evaluate(l->items[0]), high = evaluate(l->items[1]);
	bool all_fixed = fixed(v) && fixed(low) && fixed(high);

	low = same(x->lexpr, l->items[0]) ? worth(IS_TRUE)
	                                  : operate(">=", v, low);
	high = same(x->lexpr, l->items[1]) ? worth(IS_TRUE)
	                                   : operate("<=", v, high);
	if (low.is == IS_TRUE && high.is == IS_TRUE)
		return worth(IS_TRUE);
	if (low.is == IS_FALSE || high.is == IS_FALSE)
		return worth(IS_FALSE);
	return all_fixed ? worth(IS_FIXED) : worth(IS_UNKNOWN);
}

/* The right side of IN and BETWEEN is a list. */
static struct value
listed(const PgQuery__AExpr *x, const char *op)
{
	const PgQuery__List *l = tree_as(x->rexpr, &pg_query__list__descriptor);
	struct value v = evaluate(x->lexpr), at;
	bool all_fixed = fixed(v);

	if (l == NULL || l->n_items == 0)
		return worth(IS_UNKNOWN);
	if (x->kind == PG_QUERY__A__EXPR__KIND__AEXPR_BETWEEN)
		return l->n_items == 2 ? between(x, v, l) : worth(IS_UNKNOWN);
	for (size_t i = 0; i < l->n_items; i++) {
		at = evaluate(l->items[i]);
		all_fixed = all_fixed && fixed(at);
		if (strcmp(op, "=") == 0 &&
		    (same(x->lexpr, l->items[i]) ||
			operate("=", v, at).is == IS_TRUE))
			return worth(IS_TRUE);
	}
	return all_fixed ? worth(IS_FIXED) : worth(IS_UNKNOWN);
}

static struct value
like(const PgQuery__AExpr *x, const char *op)
{
	struct value pattern = evaluate(x->rexpr), v = evaluate(x->lexpr);

	if (*op != '!' && pattern.is == IS_TEXT && *pattern.text != '\0' &&
	    pattern.text[strspn(pattern.text, "%")] == '\0')
		return worth(IS_TRUE);
	return fixed(v) && fixed(pattern) ? worth(IS_FIXED) : worth(IS_UNKNOWN);
}

static struct value
distinct(const PgQuery__AExpr *x, bool negated)
{
	struct value a = evaluate(x->lexpr), b = evaluate(x->rexpr), r;

	if (same(x->lexpr, x->rexpr))
		return truth(negated);
	if (a.is == IS_NULL && b.is == IS_NULL)
		return truth(negated);
	if (!fixed(a) || !fixed(b))
		return worth(IS_UNKNOWN);
	if ((a.is == IS_NULL && b.is != IS_FIXED) ||
	    (b.is == IS_NULL && a.is != IS_FIXED))
		return truth(!negated);
	r = operate("<>", a, b);
	return is_boolean(r) ? truth((r.is == IS_TRUE) != negated)
	                     : worth(IS_FIXED);
}

static struct value
expression(const PgQuery__AExpr *x)
{
	const char *schema, *op;

	tree_qualified(x->name, x->n_name, &schema, &op);
	if (op == NULL || (schema != NULL && strcmp(schema, "pg_catalog") != 0))
		return worth(IS_UNKNOWN);
	switch (x->kind) {
	case PG_QUERY__A__EXPR__KIND__AEXPR_OP:
		if (x->lexpr == NULL)
			return operate(op, number(0), evaluate(x->rexpr));
		if (same(x->lexpr, x->rexpr) && compare(op, 0).is == IS_TRUE &&
		    evaluate(x->lexpr).is != IS_NULL)
			return worth(IS_TRUE);
		return operate(op, evaluate(x->lexpr), evaluate(x->rexpr));
	case PG_QUERY__A__EXPR__KIND__AEXPR_IN:
	case PG_QUERY__A__EXPR__KIND__AEXPR_BETWEEN:
		return listed(x, op);
	case PG_QUERY__A__EXPR__KIND__AEXPR_LIKE:
	case PG_QUERY__A__EXPR__KIND__AEXPR_ILIKE:
		return like(x, op);
	case PG_QUERY__A__EXPR__KIND__AEXPR_DISTINCT:
	case PG_QUERY__A__EXPR__KIND__AEXPR_NOT_DISTINCT:
		return distinct(x,
		    x->kind == PG_QUERY__A__EXPR__KIND__AEXPR_NOT_DISTINCT);
	default:
		return worth(IS_UNKNOWN);
	}
}

/* x IS NULL beside x IS NOT NULL, or p beside NOT p. */
static bool
opposite(const PgQuery__Node *a, const PgQuery__Node *b)
{
	const PgQuery__NullTest *na =
	    tree_as(a, &pg_query__null_test__descriptor);
	const PgQuery__NullTest *nb =
	    tree_as(b, &pg_query__null_test__descriptor);
	const PgQuery__BoolExpr *negation =
	    tree_as(b, &pg_query__bool_expr__descriptor);

	if (na != NULL && nb != NULL)
		return na->nulltesttype != nb->nulltesttype &&
		       same(na->arg, nb->arg);
	return negation != NULL &&
	       negation->boolop == PG_QUERY__BOOL_EXPR_TYPE__NOT_EXPR &&
	       negation->n_args == 1 && same(a, negation->args[0]);
}

#define PAIRS_MAX 64 /* of a list longer than this no pairs are looked for */

static bool
has_opposites(const PgQuery__BoolExpr *b)
{
	if (b->n_args > PAIRS_MAX)
		return false;
	for (size_t i = 0; i < b->n_args; i++)
		for (size_t k = 0; k < b->n_args; k++)
			if (i != k && opposite(b->args[i], b->args[k]))
				return true;
	return false;
}

static struct value
negate(struct value v)
{
	return is_boolean(v) ? truth(v.is == IS_FALSE) : v;
}

/* Of an OR the truest part, of an AND the least true one. */
static struct value
boolean(const PgQuery__BoolExpr *b)
{
	bool is_or = b->boolop == PG_QUERY__BOOL_EXPR_TYPE__OR_EXPR;
	enum worth decides = is_or ? IS_TRUE : IS_FALSE;
	bool unknown = false, is_fixed = false, null = false;

	if (b->boolop == PG_QUERY__BOOL_EXPR_TYPE__NOT_EXPR)
		return b->n_args == 1 ? negate(evaluate(b->args[0]))
		                      : worth(IS_UNKNOWN);
	if (is_or && has_opposites(b))
		return worth(IS_TRUE);
	for (size_t i = 0; i < b->n_args; i++) {
		struct value v = evaluate(b->args[i]);

		if (v.is == decides)
			return v;
		unknown = unknown || v.is == IS_UNKNOWN;
		null = null || v.is == IS_NULL;
		is_fixed = is_fixed || (v.is != IS_UNKNOWN && !is_boolean(v) &&
					   v.is != IS_NULL);
	}
	/* A fixed part of unknown value beside parts that depend on the row:
	 * it may well be what makes an OR true for all of them. */
	if (is_fixed && (is_or || !unknown))
		return worth(IS_FIXED);
	if (unknown)
		return worth(IS_UNKNOWN);
	return worth(null ? IS_NULL : is_or ? IS_FALSE : IS_TRUE);
}

static struct value
null_test(const PgQuery__NullTest *t)
{
	struct value v = evaluate(t->arg);
	bool is_null = t->nulltesttype == PG_QUERY__NULL_TEST_TYPE__IS_NULL;

	return !fixed(v)          ? v
	       : v.is == IS_FIXED ? v
	                          : truth((v.is == IS_NULL) == is_null);
}

static struct value
boolean_test(const PgQuery__BooleanTest *t)
{
	struct value v = evaluate(t->arg);

	if (!is_boolean(v) && v.is != IS_NULL)
		return fixed(v) ? worth(IS_FIXED) : v;
	switch (t->booltesttype) {
	case PG_QUERY__BOOL_TEST_TYPE__IS_TRUE:
		return truth(v.is == IS_TRUE);
	case PG_QUERY__BOOL_TEST_TYPE__IS_NOT_TRUE:
		return truth(v.is != IS_TRUE);
	case PG_QUERY__BOOL_TEST_TYPE__IS_FALSE:
		return truth(v.is == IS_FALSE);
	case PG_QUERY__BOOL_TEST_TYPE__IS_NOT_FALSE:
		return truth(v.is != IS_FALSE);
	case PG_QUERY__BOOL_TEST_TYPE__IS_UNKNOWN:
		return truth(v.is == IS_NULL);
	case PG_QUERY__BOOL_TEST_TYPE__IS_NOT_UNKNOWN:
		return truth(v.is != IS_NULL);
	default:
		return worth(IS_FIXED);
	}
}

/* 't'::boolean, and what stays itself under a cast to its own kind. */
static struct value
type_cast(const PgQuery__TypeCast *c)
{
	struct value v = evaluate(c->arg);
	const char *schema, *type = NULL;

	if (!fixed(v) || v.is == IS_NULL)
		return v;
	if (c->type_name != NULL)
		tree_qualified(c->type_name->names, c->type_name->n_names,
		    &schema, &type);
	if (type == NULL || strcmp(type, "bool") != 0)
		return worth(IS_FIXED);
	if (is_boolean(v))
		return v;
	if (v.is == IS_NUMBER)
		return truth(v.number != 0);
	if (v.is == IS_TEXT && *v.text != '\0' &&
	    (strchr("tTyY1", *v.text) != NULL || strcasecmp(v.text, "on") == 0))
		return worth(IS_TRUE);
	return v.is == IS_TEXT ? worth(IS_FALSE) : worth(IS_FIXED);
}

static struct value
coalesce(const PgQuery__CoalesceExpr *c)
{
	for (size_t i = 0; i < c->n_args; i++) {
		struct value v = evaluate(c->args[i]);

		if (v.is != IS_NULL)
			return v;
	}
	return worth(IS_NULL);
}

static struct value
case_expr(const PgQuery__CaseExpr *c)
{
	if (c->arg != NULL)
		return worth(IS_UNKNOWN);
	for (size_t i = 0; i < c->n_args; i++) {
		const PgQuery__CaseWhen *w =
		    tree_as(c->args[i], &pg_query__case_when__descriptor);
		struct value v;

		if (w == NULL)
			return worth(IS_UNKNOWN);
		v = evaluate(w->expr);
		if (v.is == IS_TRUE)
			return evaluate(w->result);
		if (v.is != IS_FALSE && v.is != IS_NULL)
			return v.is == IS_FIXED ? v : worth(IS_UNKNOWN);
	}
	return c->defresult != NULL ? evaluate(c->defresult) : worth(IS_NULL);
}

static struct value
evaluate(const PgQuery__Node *n)
{
	if (n == NULL)
		return worth(IS_UNKNOWN);
	switch (n->node_case) {
	case PG_QUERY__NODE__NODE_A_CONST:
		return constant(n->a_const);
	case PG_QUERY__NODE__NODE_A_EXPR:
		return expression(n->a_expr);
	case PG_QUERY__NODE__NODE_BOOL_EXPR:
		return boolean(n->bool_expr);
	case PG_QUERY__NODE__NODE_NULL_TEST:
		return null_test(n->null_test);
	case PG_QUERY__NODE__NODE_BOOLEAN_TEST:
		return boolean_test(n->boolean_test);
	case PG_QUERY__NODE__NODE_TYPE_CAST:
		return type_cast(n->type_cast);
	case PG_QUERY__NODE__NODE_COALESCE_EXPR:
		return coalesce(n->coalesce_expr);
	case PG_QUERY__NODE__NODE_CASE_EXPR:
		return case_expr(n->case_expr);
	case PG_QUERY__NODE__NODE_SQLVALUE_FUNCTION:
		return worth(IS_FIXED);
	default:
		return worth(IS_UNKNOWN);
	}
}

bool
where_is_vacuous(const PgQuery__Node *where)
{
	struct value v = evaluate(where);

	return fixed(v) && v.is != IS_FALSE && v.is != IS_NULL;
}
