/* policies: whether two sessions of one login see the same rows of a table */
#ifndef AIRLOCK_PG_POLICIES_H
#define AIRLOCK_PG_POLICIES_H

/*
 * SQL for what decides which rows of the table `oid` its policies show to this
 * login:
 *   'fixed'  the row alone, and who the login is
 *   'reads'  tables too, which have no row security and no part in common
 *   'loose'  whatever a function says, the clock, a setting
 * and NULL where no policy applies.  Expressions are read as the server keeps
 * them: strings cannot forge a node there, a constant is a list of numbers, and
 * in names braces and spaces are escaped.  What is not on the list is loose.
 */
/* clang-format off */
#define POLICIES_NODES \
	"'{VAR,PARAM,CONST,OPEXPR,FUNCEXPR,BOOLEXPR,RELABELTYPE,NULLTEST,BOOLEANTEST," \
	"SCALARARRAYOPEXPR,ARRAY,ARRAYEXPR,DISTINCTEXPR,COALESCEEXPR,COALESCE,CASEEXPR," \
	"CASE,CASEWHEN,WHEN,SQLVALUEFUNCTION,SUBLINK,QUERY,RTE,RANGETBLENTRY," \
	"RTEPERMISSIONINFO,RANGETBLREF,FROMEXPR,JOINEXPR,TARGETENTRY,ALIAS}'"
#define POLICIES_LOOSE \
	"EXISTS (SELECT FROM pg_catalog.regexp_matches(q.tree, '\\{([A-Z]+)', 'g') AS m(w)" \
	"  WHERE m.w[1] <> ALL (" POLICIES_NODES "::pg_catalog.text[]))" \
	" OR EXISTS (SELECT FROM pg_catalog.regexp_matches(q.tree, ':(?:op)?funcid (\\d+)', 'g') AS m(w)" \
	"  WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_proc f" \
	"   WHERE f.oid = m.w[1]::pg_catalog.oid AND f.oid < '16384' AND f.provolatile = 'i'))" \
	" OR EXISTS (SELECT FROM pg_catalog.regexp_matches(q.tree, ':relid (\\d+)', 'g') AS m(w)" \
	"  WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_class t" \
	"   WHERE t.oid = m.w[1]::pg_catalog.oid AND t.relkind = 'r'" \
	"    AND NOT t.relhassubclass AND NOT t.relrowsecurity))" \
	/* the clock; the others say who and where the session is */ \
	" OR q.tree ~ '\\{SQLVALUEFUNCTION :op [0-8] '"
#define POLICIES(oid) \
	"CASE WHEN pg_catalog.row_security_active(" oid ") THEN" \
	" (SELECT CASE WHEN pg_catalog.bool_or(" POLICIES_LOOSE ") THEN 'loose'" \
	"   WHEN pg_catalog.bool_or(q.tree ~ '\\{QUERY ') THEN 'reads' ELSE 'fixed' END" \
	"  FROM (SELECT y.polqual::pg_catalog.text AS tree FROM pg_catalog.pg_policy y" \
	"   WHERE y.polrelid = " oid " AND y.polcmd IN ('*', 'r') AND y.polqual IS NOT NULL) q) END"
/* clang-format on */

#endif
