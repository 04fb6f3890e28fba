/* causes: what could have written a table that no statement names */
#include "pg/causes.h"

#include "pg/partition.h"

/* clang-format off */
#define QUOTED(oid) \
	"(SELECT pg_catalog.quote_ident(n.nspname) || '.' ||" \
	"  pg_catalog.quote_ident(c.relname) FROM pg_catalog.pg_class c" \
	" JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace" \
	" WHERE c.oid = " oid ")"
#define RULE_EVENT \
	"CASE w.ev_type WHEN '2' THEN 16 WHEN '3' THEN 4 WHEN '4' THEN 8 ELSE 0 END"

/*
 * through: what a view that can be written by itself is written through to.
 * Its only relation stands first in its query's FROM; the others that it
 * depends on are read in subqueries.  Names cannot forge the node tree: their
 * spaces and braces are escaped.
 */
const char causes_sql[] =
"WITH RECURSIVE named(oid, ops) AS ("
" SELECT r.oid, $4::pg_catalog.int4 FROM pg_catalog.unnest($3::pg_catalog.text[]) AS n(name),"
"  LATERAL (SELECT pg_catalog.to_regclass(n.name)::pg_catalog.oid AS oid) r"
"  WHERE r.oid IS NOT NULL),"
"through(oid, ops) AS (SELECT oid, ops FROM named"
" UNION SELECT b.oid, v.ops FROM through v"
"  JOIN pg_catalog.pg_rewrite r ON r.ev_class = v.oid AND r.ev_type = '1'"
"  JOIN pg_catalog.pg_class c ON c.oid = v.oid AND c.relkind = 'v'"
"  CROSS JOIN LATERAL (SELECT (pg_catalog.regexp_match("
"    (pg_catalog.regexp_split_to_array(r.ev_action::pg_catalog.text,"
"      '\\{(RTE|RANGETBLENTRY) '))["
"     (pg_catalog.regexp_match(r.ev_action::pg_catalog.text,"
"      ':fromlist \\(\\{RANGETBLREF :rtindex (\\d+)\\}\\)'))[1]::pg_catalog.int4 + 1],"
"    ':relid (\\d+)'))[1]::pg_catalog.oid AS oid) b"
"  WHERE b.oid IS NOT NULL"
"   AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = v.oid"
"    AND t.tgtype & '64' <> 0 AND t.tgtype::pg_catalog.int4 & v.ops <> 0 AND t.tgenabled IN ('O', 'A'))"
"   AND NOT EXISTS (SELECT FROM pg_catalog.pg_rewrite w WHERE w.ev_class = v.oid"
"    AND w.is_instead AND w.ev_enabled IN ('O', 'A') AND " RULE_EVENT " & v.ops <> 0)),"
"up(oid, ops) AS (SELECT * FROM ROWS FROM ("
"  pg_catalog.unnest($1::pg_catalog.oid[]), pg_catalog.unnest($2::pg_catalog.int4[]))"
" UNION SELECT oid, ops FROM through"
" UNION SELECT i.inhparent, up.ops FROM up"
"  JOIN pg_catalog.pg_inherits i ON i.inhrelid = up.oid"
"  JOIN pg_catalog.pg_class c ON c.oid = up.oid AND c.relispartition),"
"k AS (SELECT n.name, pg_catalog.to_regclass(n.name)::pg_catalog.oid AS oid"
"  FROM pg_catalog.unnest($5::pg_catalog.text[]) AS n(name)) "
"SELECT k.name, 'view' AS kind, '' AS what, NULL::pg_catalog.text AS place,"
"  NULL::pg_catalog.text AS fn FROM k JOIN through t ON " ROOT("t.oid") " = k.oid"
" UNION SELECT k.name, 'constraint', x.conname::pg_catalog.text, " QUOTED(ROOT("x.conrelid")) ", NULL"
"  FROM k JOIN pg_catalog.pg_constraint x ON x.contype = 'f' AND x.conparentid = '0'"
"   AND " ROOT("x.conrelid") " = k.oid"
"  JOIN up ON up.oid = x.confrelid"
"   AND (up.ops & 8 <> 0 AND x.confdeltype IN ('c', 'n', 'd')"
"    OR up.ops & 16 <> 0 AND x.confupdtype IN ('c', 'n', 'd'))"
" UNION SELECT k.name, 'trigger', t.tgname::pg_catalog.text, " QUOTED(ROOT("t.tgrelid")) ","
"   (pg_catalog.pg_identify_object(1255, p.oid, 0)).identity"
"  FROM k CROSS JOIN up JOIN pg_catalog.pg_trigger t ON t.tgrelid = up.oid"
"   AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND t.tgtype::pg_catalog.int4 & up.ops <> 0"
"   AND " ROOT("t.tgrelid") " <> k.oid"
"  JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid"
"  JOIN pg_catalog.pg_language l ON l.oid = p.prolang AND l.lanname <> 'internal'"
" UNION SELECT k.name, 'rule', w.rulename::pg_catalog.text, " QUOTED("w.ev_class") ", NULL"
"  FROM k JOIN pg_catalog.pg_depend d ON d.refclassid = '1259' AND d.refobjid = k.oid"
"   AND d.classid = '2618'"
"  JOIN pg_catalog.pg_rewrite w ON w.oid = d.objid AND w.ev_enabled IN ('O', 'A')"
"  JOIN up ON up.oid = w.ev_class AND " RULE_EVENT " & up.ops <> 0"
" UNION SELECT k.name, 'function', (pg_catalog.pg_identify_object(1255, p.oid, 0)).identity, NULL, NULL"
"  FROM k CROSS JOIN ROWS FROM (pg_catalog.unnest($6::pg_catalog.text[]),"
"   pg_catalog.unnest($7::pg_catalog.text[])) AS f(schema, name)"
"  JOIN pg_catalog.pg_proc p ON p.proname = f.name AND p.oid >= '16384' AND p.provolatile = 'v'"
"   AND CASE f.schema WHEN '' THEN pg_catalog.pg_function_is_visible(p.oid)"
"    ELSE p.pronamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = f.schema) END "
"ORDER BY 1, 2, 3, 4, 5 LIMIT 500";
/* clang-format on */
