/* reach_sql: the two questions of pg/reach, as text */
#ifndef AIRLOCK_PG_REACH_SQL_H
#define AIRLOCK_PG_REACH_SQL_H

/* clang-format off */

/* What a judgement was built on, in one value: every row of a catalog that it
 * looked at, by oid and xmin, and every name that could be taken for another
 * thing meanwhile.  A definition that changes and changes back differs too.
 * Rows are looked up by index, one by one, whatever the planner thinks of the
 * number of them: OFFSET 0 keeps it from joining otherwise. */
#define REACH_ROW(tag) \
	"'" tag "' || x.oid::pg_catalog.text || ':' || x.xmin::pg_catalog.text"
#define REACH_EACH(tag, of, from) \
	" UNION ALL SELECT x.s FROM pg_catalog.unnest(" of ") AS u(v)," \
	"  LATERAL (SELECT " REACH_ROW(tag) " AS s FROM pg_catalog." from \
	"   OFFSET 0) x"
#define REACH_MADE(tag, from) \
	" UNION ALL SELECT " REACH_ROW(tag) " FROM pg_catalog." from " x" \
	"  WHERE x.oid >= '16384'"
#define REACH_STAMP(relations, names, classes, procs, types) \
	"(SELECT pg_catalog.md5(COALESCE(pg_catalog.string_agg(w.s, ','" \
	"  ORDER BY w.s COLLATE \"C\"), '')) FROM (" \
	"SELECT 'n' || n.ord::pg_catalog.text || ':' || COALESCE(pg_catalog." \
	"  to_regclass(n.name)::pg_catalog.oid::pg_catalog.text, '-') AS s" \
	"  FROM pg_catalog.unnest(" relations ")" \
	"   WITH ORDINALITY AS n(name, ord)" \
	" UNION ALL SELECT x.s FROM pg_catalog.unnest(" classes ") AS u(v)," \
	"  LATERAL (SELECT " REACH_ROW("c") " || CASE WHEN x.relrowsecurity" \
	"    AND pg_catalog.row_security_active(x.oid) THEN 's' ELSE '' END AS s" \
	"   FROM pg_catalog.pg_class x WHERE x.oid = u.v OFFSET 0) x" \
	REACH_EACH("p", names, "pg_proc x WHERE x.proname = u.v") \
	REACH_EACH("p", procs, "pg_proc x WHERE x.oid = u.v") \
	REACH_EACH("r", classes, "pg_rewrite x WHERE x.ev_class = u.v") \
	REACH_EACH("y", classes, "pg_policy x WHERE x.polrelid = u.v") \
	REACH_EACH("t", types, "pg_type x WHERE x.oid = u.v") \
	REACH_EACH("t", names, "pg_type x WHERE x.typname = u.v" \
	    " AND x.oid >= '16384'") \
	REACH_EACH("k", types, "pg_constraint x WHERE x.contypid = u.v") \
	REACH_MADE("o", "pg_operator") \
	REACH_MADE("a", "pg_cast") ") w)"

/* $1 names of relations, $2 names of all else, $3 oids of relations, $4 of
 * functions, $5 of types; $6 what it was: fails where it is that no more. */
#define REACH_SAME \
	REACH_STAMP("$1::pg_catalog.text[]", "$2::pg_catalog.name[]", \
	    "$3::pg_catalog.oid[]", "$4::pg_catalog.oid[]", \
	    "$5::pg_catalog.oid[]")

/* The snapshot that a statement looks with, as text. */
#define REACH_SNAPSHOT \
	"pg_catalog.pg_current_snapshot()::pg_catalog.text"

/* A name's schema as said, or by the search path. */
#define REACH_IN(schema, namespace, visible) \
	"CASE " schema " WHEN '' THEN " visible \
	" WHEN 'pg_temp' THEN " namespace " = pg_catalog.pg_my_temp_schema()" \
	" ELSE " namespace " = (SELECT n.oid FROM pg_catalog.pg_namespace n" \
	"  WHERE n.nspname = " schema ") END"

/* A type x that a cast or an operator of somebody's is for. */
#define REACH_HANDLED \
	"(EXISTS (SELECT FROM pg_catalog.pg_cast k WHERE k.oid >= '16384'" \
	"  AND x.oid IN (k.castsource, k.casttarget))" \
	" OR EXISTS (SELECT FROM pg_catalog.pg_operator o WHERE o.oid >= '16384'" \
	"  AND x.oid IN (o.oprleft, o.oprright)))"

/*
 * $1 names of relations; $2 kinds, $3 schemas, $4 names, $5 argument counts of
 * all else that is named ('f' functions, 'a' what may be a column or a
 * function of a row, 's' methods of TABLESAMPLE, 'o' operators, 't' types);
 * $6 what is harmless in pg_catalog and in extensions; $7 a pattern for what reaches outside, $8 extensions that do;
 * $9 whether it is a write, which may change rows but not reach outside.
 *
 * `reach` goes from what is named to what that brings: a view's relations,
 * functions, operators and types, a policy's, an argument's default, an
 * aggregate's parts, a type's members, checks and casts (to a type of
 * PostgreSQL's own one must be called by the type's name, unless it is
 * implicit), a relation's row type and a type's array type where there is a
 * cast or operator for them, and its indexes' functions, which the planner calls
 * where their arguments are constants.  Functions stand in
 * node trees by oid (dependencies on built-in ones are not in pg_depend); a
 * name in a node tree cannot forge one, its spaces are escaped.
 */
static const char reach_judge_sql[] =
"WITH RECURSIVE u AS (SELECT * FROM ROWS FROM ("
"  pg_catalog.unnest($2::pg_catalog.text[]), pg_catalog.unnest($3::pg_catalog.text[]),"
"  pg_catalog.unnest($4::pg_catalog.text[]), pg_catalog.unnest($5::pg_catalog.int4[]))"
"  AS u(kind, schema, name, nargs)),"
"reach(k, oid, pk, parent) AS ("
" SELECT 'r', r.oid, '', '0'::pg_catalog.oid"
"  FROM pg_catalog.unnest($1::pg_catalog.text[]) AS n(name),"
"  LATERAL (SELECT pg_catalog.to_regclass(n.name)::pg_catalog.oid AS oid) r"
"  WHERE r.oid IS NOT NULL"
" UNION SELECT 'f', p.oid, '', '0' FROM u JOIN pg_catalog.pg_proc p"
"  ON p.proname = u.name WHERE u.kind IN ('f', 'a', 's') AND p.prokind <> 'p'"
"  AND CASE u.kind WHEN 's' THEN p.prorettype = '3310' WHEN 'a' THEN p.oid >= '16384'"
"   AND p.pronargs - p.pronargdefaults <= 1 AND p.pronargs >= 1"
"   AND EXISTS (SELECT FROM pg_catalog.pg_type t"
"    WHERE t.oid = p.proargtypes[0] AND (t.typtype = 'p' OR t.typtype = 'c'"
"     AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a"
"      WHERE a.attrelid = t.typrelid AND a.attname = u.name"
"      AND NOT a.attisdropped)))"
"   ELSE u.nargs < 0 OR p.provariadic <> '0' OR u.nargs BETWEEN"
"    p.pronargs - p.pronargdefaults AND p.pronargs END"
"  AND " REACH_IN("u.schema", "p.pronamespace", "pg_catalog.pg_function_is_visible(p.oid)")
" UNION SELECT 't', t.oid, '', '0' FROM u JOIN pg_catalog.pg_type t"
"  ON t.typname = u.name WHERE u.kind IN ('f', 't') AND t.oid >= '16384'"
"  AND " REACH_IN("u.schema", "t.typnamespace", "pg_catalog.pg_type_is_visible(t.oid)")
" UNION SELECT x.k, x.oid, c.k, c.oid FROM reach c CROSS JOIN LATERAL ("
"  SELECT 'f' AS k, f.oid FROM ("
"    SELECT r.ev_action::pg_catalog.text AS tree FROM pg_catalog.pg_rewrite r"
"     WHERE c.k = 'r' AND c.oid >= '16384' AND r.ev_class = c.oid AND r.ev_type = '1'"
"    UNION ALL SELECT pg_catalog.concat_ws(' ', p.polqual, p.polwithcheck)"
"     FROM pg_catalog.pg_policy p WHERE c.k = 'r' AND c.oid >= '16384'"
"     AND p.polrelid = c.oid AND ($9 OR p.polcmd IN ('*', 'r'))"
"     AND pg_catalog.row_security_active(c.oid)"
"    UNION ALL SELECT p.proargdefaults::pg_catalog.text FROM pg_catalog.pg_proc p"
"     WHERE c.k = 'f' AND c.oid >= '16384' AND p.oid = c.oid AND p.pronargdefaults > 0"
"    UNION ALL SELECT pg_catalog.concat_ws(' ', i.indexprs, i.indpred)"
"     FROM pg_catalog.pg_index i WHERE c.k = 'r' AND c.oid >= '16384' AND i.indrelid = c.oid"
"     AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)"
"    UNION ALL SELECT k.conbin::pg_catalog.text FROM pg_catalog.pg_constraint k"
"     WHERE c.k = 't' AND k.contypid = c.oid AND k.contype = 'c') s"
"   CROSS JOIN LATERAL pg_catalog.unnest(pg_catalog.string_to_array(s.tree, 'funcid ')"
"    OPERATOR(pg_catalog.||) pg_catalog.string_to_array(s.tree, 'fnoid ')) AS w(piece)"
"   CROSS JOIN LATERAL (SELECT CASE WHEN pg_catalog.split_part(w.piece, ' ', 1) ~ '^[1-9][0-9]{0,9}$'"
"    THEN pg_catalog.split_part(w.piece, ' ', 1)::pg_catalog.oid END AS oid) f"
"   WHERE f.oid IS NOT NULL"
"  UNION ALL SELECT CASE d.refclassid WHEN '1259' THEN 'r' WHEN '1247' THEN 't' ELSE 'o' END,"
"    d.refobjid FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_depend d"
"    ON d.classid = '2618' AND d.objid = r.oid AND d.refclassid IN ('1259', '1247', '2617')"
"    AND d.refobjid <> c.oid"
"   WHERE c.k = 'r' AND c.oid >= '16384' AND r.ev_class = c.oid AND r.ev_type = '1'"
"  UNION ALL SELECT 'r', d.refobjid FROM pg_catalog.pg_policy p"
"   JOIN pg_catalog.pg_depend d ON d.classid = '3256' AND d.objid = p.oid"
"    AND d.refclassid = '1259' AND d.refobjid <> c.oid"
"   WHERE c.k = 'r' AND c.oid >= '16384' AND p.polrelid = c.oid"
"    AND pg_catalog.row_security_active(c.oid)"
"  UNION ALL SELECT 't', a.atttypid FROM pg_catalog.pg_attribute a"
"   WHERE c.k = 'r' AND c.oid >= '16384' AND a.attrelid = c.oid AND a.attnum > 0"
"    AND a.atttypid >= '16384'"
"  UNION ALL SELECT 't', x.oid FROM pg_catalog.pg_class r, LATERAL (VALUES (r.reltype)) AS x(oid)"
"   WHERE c.k = 'r' AND c.oid >= '16384' AND r.oid = c.oid AND " REACH_HANDLED
"  UNION ALL SELECT 't', x.oid FROM pg_catalog.pg_type t, LATERAL (VALUES (t.typarray)) AS x(oid)"
"   WHERE c.k = 't' AND c.oid >= '16384' AND t.oid = c.oid AND " REACH_HANDLED
"  UNION ALL SELECT 't', p.prorettype FROM pg_catalog.pg_proc p"
"   WHERE c.k = 'f' AND c.oid >= '16384' AND p.oid = c.oid AND p.prorettype >= '16384'"
"  UNION ALL SELECT 'f', f.oid FROM pg_catalog.pg_aggregate g, pg_catalog.unnest(ARRAY["
"    g.aggtransfn, g.aggfinalfn, g.aggcombinefn, g.aggserialfn, g.aggdeserialfn,"
"    g.aggmtransfn, g.aggminvtransfn, g.aggmfinalfn]::pg_catalog.oid[]) AS f(oid)"
"   WHERE c.k = 'f' AND c.oid >= '16384' AND g.aggfnoid::pg_catalog.oid = c.oid AND f.oid <> '0'"
"  UNION ALL SELECT 'f', o.oprcode FROM pg_catalog.pg_operator o"
"   WHERE c.k = 'o' AND o.oid = c.oid"
"  UNION ALL SELECT x.k, x.oid FROM pg_catalog.pg_type t, LATERAL (VALUES"
"    ('t', t.typelem), ('t', t.typbasetype), ('r', t.typrelid),"
"    ('f', t.typinput::pg_catalog.oid), ('f', t.typoutput::pg_catalog.oid)) AS x(k, oid)"
"   WHERE c.k = 't' AND t.oid = c.oid AND x.oid >= '16384'"
"  UNION ALL SELECT 't', g.rngsubtype FROM pg_catalog.pg_range g"
"   WHERE c.k = 't' AND g.rngtypid = c.oid AND g.rngsubtype >= '16384'"
"  UNION ALL SELECT 'f', k.castfunc FROM pg_catalog.pg_cast k"
"   WHERE c.k = 't' AND k.oid >= '16384' AND k.castfunc <> '0'"
"    AND (k.castsource = c.oid OR k.casttarget = c.oid)"
"    AND ($9 OR k.castcontext = 'i' OR EXISTS (SELECT FROM pg_catalog.pg_type t"
"     WHERE t.typname = ANY ($4::pg_catalog.name[])"
"     AND (t.oid = k.casttarget OR t.oid >= '16384')))) x),"
"called AS (SELECT oid, pk, parent FROM reach WHERE k = 'f'"
/* Comparisons that no text names: IN, BETWEEN, DISTINCT, USING, ORDER BY. */
" UNION ALL SELECT o.oprcode, 'o', o.oid FROM pg_catalog.pg_operator o"
"  JOIN (SELECT u.schema, u.name FROM u WHERE u.kind = 'o'"
"   UNION SELECT '', i FROM pg_catalog.unnest('{=,<>,<,<=,>,>=}'::pg_catalog.text[]) AS i) w"
"   ON o.oprname = w.name"
"  WHERE o.oid >= '16384'"
"   AND (o.oprleft < '16384' OR o.oprleft IN (SELECT oid FROM reach WHERE k = 't'))"
"   AND (o.oprright < '16384' OR o.oprright IN (SELECT oid FROM reach WHERE k = 't'))"
"   AND " REACH_IN("w.schema", "o.oprnamespace", "pg_catalog.pg_operator_is_visible(o.oid)")
"),"
"judged AS (SELECT c.pk, c.parent, p.oid, p.proname,"
"  p.provolatile = 'v' AND NOT (p.pronamespace = '11' AND p.proname = ANY ($6::pg_catalog.name[])"
"   OR p.oid >= '16384' AND EXISTS (SELECT FROM pg_catalog.pg_depend d"
"    JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid"
"    WHERE d.classid = '1255' AND d.objid = p.oid AND d.refclassid = '3079' AND d.deptype = 'e'"
"     AND (e.extname::pg_catalog.text || '.' || p.proname::pg_catalog.text)::pg_catalog.name = ANY ($6::pg_catalog.name[]))) AS writes,"
"  (p.pronamespace = '11' AND p.proname ~ $7::pg_catalog.text OR EXISTS (SELECT FROM pg_catalog.pg_depend d"
"    JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid"
"    WHERE d.classid = '1255' AND d.objid = p.oid AND d.refclassid = '3079' AND d.deptype = 'e'"
"     AND p.oid >= '16384' AND e.extname = ANY ($8::pg_catalog.name[]))) AS outside"
"  FROM called c JOIN pg_catalog.pg_proc p ON p.oid = c.oid),"
"temp AS (SELECT k.relname FROM reach r JOIN pg_catalog.pg_class k ON k.oid = r.oid"
"  WHERE r.k = 'r' AND r.pk = '' AND k.relnamespace = pg_catalog.pg_my_temp_schema()),"
"a AS (SELECT"
" ARRAY(SELECT DISTINCT oid FROM reach WHERE k = 'r')::pg_catalog.oid[] AS classes,"
" ARRAY(SELECT DISTINCT oid FROM called)::pg_catalog.oid[] AS procs,"
" ARRAY(SELECT DISTINCT oid FROM reach WHERE k = 't')::pg_catalog.oid[] AS types OFFSET 0) "
"SELECT b.proname, (pg_catalog.pg_identify_object(1255, b.oid, 0)).identity,"
" i.type || ' ' || i.identity, b.outside, (SELECT relname FROM temp LIMIT 1),"
" a.classes, a.procs, a.types, "
REACH_STAMP("$1::pg_catalog.text[]", "$4::pg_catalog.name[]", "a.classes", "a.procs", "a.types")
", " REACH_SNAPSHOT
" FROM a LEFT JOIN LATERAL (SELECT * FROM judged j"
"  WHERE j.outside OR j.writes AND NOT $9 ORDER BY j.pk <> '', j.outside DESC LIMIT 1) b ON true"
" LEFT JOIN LATERAL pg_catalog.pg_identify_object(CASE b.pk WHEN 'r' THEN 1259"
"  WHEN 'f' THEN 1255 WHEN 't' THEN 1247 WHEN 'o' THEN 2617 END::pg_catalog.oid,"
"  b.parent, 0) i ON b.pk <> ''";
/* clang-format on */

#endif
