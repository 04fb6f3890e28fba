/* effects: what the functions behind a change may do beside writing rows */
#include "pg/effects.h"

/* clang-format off */

/* A body that is parsed already names what it calls by oid: pg_notify(), and
 * current_query(). */
#define SAYS(pattern, oid) \
	"(p.prosrc ~* '" pattern "' OR" \
	" p.prosqlbody::pg_catalog.text ~ ':funcid " oid " ')"

/* Constants in a parsed body are bytes until it is printed. */
#define SETS(name) \
	"(p.prosrc ~* '" name "' OR p.proconfig::pg_catalog.text ~* '" name "'" \
	" OR pg_catalog.pg_get_function_sqlbody(p.oid) ~* '" name "')"

/* A setting of somebody's own, my.name: of no use but to other functions. */
#define SETS_OWN \
	"(p.prosrc ~* '\\m(set_config\\M|set[[:space:]]+((local|session)[[:space:]]+)?\"?[[:alnum:]_$]+\"?[.])'" \
	" OR pg_catalog.pg_get_function_sqlbody(p.oid) ~* '\\mset_config\\M'" \
	" OR p.proconfig::pg_catalog.text ~ '[{,\"][[:alnum:]_$]+[.][[:alnum:]_$]+='::pg_catalog.text)"

/* In pg_catalog, by name: backends, files, session locks, WAL. */
#define OUTSIDE \
	"^(lo_export|lo_import|pg_cancel_backend|pg_terminate_backend" \
	"|pg_reload_conf|pg_rotate_logfile.*|pg_logical_.*|pg_replication_.*" \
	"|pg_create_.*|pg_drop_replication_slot|pg_switch_wal|pg_file_.*" \
	"|pg_(try_)?advisory_lock.*|pg_stat_reset.*)$"

/* A trigger of w.oid that acts on one of w.events. */
#define FIRES(t) \
	"NOT " t ".tgisinternal AND " t ".tgenabled IN ('O', 'A')" \
	" AND (" t ".tgtype::pg_catalog.int4 & w.events) <> 0"

/* What runs for the rows of a relation w.oid without being named: defaults and
 * generated columns, checks, its columns' domains, indexes, rules, policies,
 * and the conditions of triggers (but not what these call). */
#define BEHIND \
	"SELECT '2604'::pg_catalog.oid AS class, x.oid, '0'::pg_catalog.oid AS but" \
	"   FROM pg_catalog.pg_attrdef x WHERE x.adrelid = w.oid" \
	"  UNION ALL SELECT '2606', x.oid, '0' FROM pg_catalog.pg_constraint x" \
	"   WHERE x.conrelid = w.oid" \
	"  UNION ALL SELECT '2606', x.oid, '0' FROM pg_catalog.pg_attribute a" \
	"   JOIN pg_catalog.pg_type t ON t.oid = a.atttypid" \
	"   JOIN pg_catalog.pg_constraint x" \
	"    ON x.contypid IN (t.oid, t.typelem, t.typbasetype) AND x.contypid <> '0'" \
	"   WHERE a.attrelid = w.oid AND a.atttypid >= '16384'" \
	"  UNION ALL SELECT '1259', x.indexrelid, '0' FROM pg_catalog.pg_index x" \
	"   WHERE x.indrelid = w.oid" \
	"  UNION ALL SELECT '2618', x.oid, '0' FROM pg_catalog.pg_rewrite x" \
	"   WHERE x.ev_class = w.oid AND x.ev_type <> '1'" \
	"  UNION ALL SELECT '3256', x.oid, '0' FROM pg_catalog.pg_policy x" \
	"   WHERE x.polrelid = w.oid AND pg_catalog.row_security_active(w.oid)" \
	"  UNION ALL SELECT '2620', x.oid, x.tgfoid FROM pg_catalog.pg_trigger x" \
	"   WHERE x.tgrelid = w.oid AND x.tgqual IS NOT NULL AND " FIRES("x")

const char effects_sql[] =
"WITH RECURSIVE w AS (SELECT * FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]),"
"    pg_catalog.unnest($2::pg_catalog.int4[])) AS w(oid, events)),"
"f(oid, via) AS ("
" SELECT t.tgfoid::pg_catalog.oid, 'trigger ' || pg_catalog.quote_ident(t.tgname) || ' of '"
"   || pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)"
"  FROM w JOIN pg_catalog.pg_trigger t ON t.tgrelid = w.oid"
"  JOIN pg_catalog.pg_class c ON c.oid = w.oid"
"  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
"  WHERE " FIRES("t")
" UNION SELECT p.oid, i.type || ' ' || i.identity FROM w"
"  CROSS JOIN LATERAL (" BEHIND ") b"
"  JOIN pg_catalog.pg_depend d ON d.classid = b.class AND d.objid = b.oid"
"   AND d.refclassid IN ('1255', '2617') AND d.refobjid <> b.but"
"  LEFT JOIN pg_catalog.pg_operator o ON d.refclassid = '2617' AND o.oid = d.refobjid"
"  JOIN pg_catalog.pg_proc p ON p.oid = COALESCE(o.oprcode::pg_catalog.oid, d.refobjid)"
"  CROSS JOIN LATERAL pg_catalog.pg_identify_object(b.class, b.oid, 0) i"
"  WHERE p.oid >= '16384'"
" UNION SELECT p.oid, NULL FROM pg_catalog.unnest($3::pg_catalog.oid[]) AS u(oid)"
"  JOIN pg_catalog.pg_proc p ON p.oid = u.oid AND p.oid >= '16384'"
" UNION"
" SELECT x.oid, f.via FROM f JOIN pg_catalog.pg_proc p ON p.oid = f.oid AND p.oid >= '16384'"
"  JOIN pg_catalog.pg_language l ON l.oid = p.prolang AND l.lanname NOT IN ('c', 'internal')"
"  CROSS JOIN LATERAL ("
"   SELECT q.oid FROM (SELECT m[1] AS word FROM pg_catalog.regexp_matches(p.prosrc,"
"      '([[:alpha:]_][[:alnum:]_$]*)[[:space:]]*\\(', 'g') AS m"
"     UNION SELECT m[1] FROM pg_catalog.regexp_matches(p.prosrc,"
"      '\"([^\"]+)\"[[:space:]]*\\(', 'g') AS m) w"
"    CROSS JOIN LATERAL (SELECT x.oid, x.proname, x.pronamespace FROM pg_catalog.pg_proc x"
"     WHERE x.proname = ANY (ARRAY[w.word, pg_catalog.lower(w.word)]::pg_catalog.name[]) OFFSET 0) q"
"    WHERE q.oid >= '16384' OR q.pronamespace = '11' AND q.proname ~ '" OUTSIDE "'::pg_catalog.text"
"   UNION ALL SELECT d.refobjid FROM pg_catalog.pg_depend d WHERE d.classid = '1255'"
"     AND d.objid = p.oid AND d.refclassid = '1255') x) "
"SELECT k.kind, CASE WHEN p.oid < '16384' THEN p.proname::pg_catalog.text || '()'"
"  ELSE pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(p.proname)"
"   || '(' || pg_catalog.pg_get_function_identity_arguments(p.oid) || ')' END,"
"  f.via, k.how FROM f JOIN pg_catalog.pg_proc p ON p.oid = f.oid"
" JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace"
" JOIN pg_catalog.pg_language l ON l.oid = p.prolang"
" CROSS JOIN LATERAL (SELECT 'NOTIFICATION' AS kind, NULL AS how"
"   WHERE p.oid >= '16384' AND "
	SAYS("\\m(pg_notify|notify|triggered_change_notification)\\M", "3036")
"  UNION ALL SELECT 'STATEMENT_TEXT', NULL WHERE p.oid >= '16384' AND "
	SAYS("\\mcurrent_query\\M", "817")
"  UNION ALL SELECT 'TRIGGERS_OFF', NULL WHERE p.oid >= '16384' AND " SETS("session_replication_role")
"  UNION ALL SELECT 'COUNTERS_OFF', NULL WHERE p.oid >= '16384' AND " SETS("track_counts")
"  UNION ALL SELECT 'OUTSIDE_EFFECT', CASE WHEN p.oid < '16384' THEN NULL"
"    WHEN NOT l.lanpltrusted AND l.lanname NOT IN ('c', 'internal') THEN l.lanname::pg_catalog.text"
"    ELSE (SELECT e.extname::pg_catalog.text FROM pg_catalog.pg_depend d"
"     JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid WHERE d.classid = '1255'"
"     AND d.objid = p.oid AND d.refclassid = '3079' AND d.deptype = 'e' LIMIT 1) END"
"   WHERE p.oid < '16384' AND p.proname ~ '" OUTSIDE "'::pg_catalog.text OR NOT l.lanpltrusted AND l.lanname NOT IN ('c', 'internal')"
"    OR p.prosrc ~* '\\mcopy\\M[^;]*\\m(to|from)\\M[[:space:]]*(program\\M|'')'"
"    OR EXISTS (SELECT FROM pg_catalog.pg_depend d"
"     JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid WHERE d.classid = '1255'"
"     AND d.objid = p.oid AND d.refclassid = '3079' AND d.deptype = 'e'"
"     AND e.extname = ANY ($4::pg_catalog.name[]))) k "
"UNION ALL SELECT 'NOTIFICATION', 'rule ' || pg_catalog.quote_ident(r.rulename) || ' of '"
"  || pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname), NULL, NULL"
" FROM w JOIN pg_catalog.pg_rewrite r ON r.ev_class = w.oid AND r.ev_type <> '1'"
" JOIN pg_catalog.pg_class c ON c.oid = w.oid"
" JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
" WHERE r.ev_action::pg_catalog.text ~ ':utilityStmt \\{NOTIFY' "
"ORDER BY 1, 2, 3";

const char effects_setting_sql[] =
"SELECT EXISTS (SELECT FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid"
" WHERE t.tgrelid = ANY ($1::pg_catalog.oid[]) AND NOT t.tgisinternal AND " SETS_OWN ")";
/* clang-format on */
