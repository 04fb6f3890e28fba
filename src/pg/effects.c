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

/* In pg_catalog, by name: backends, files, session locks, WAL. */
#define OUTSIDE \
	"^(lo_export|lo_import|pg_cancel_backend|pg_terminate_backend" \
	"|pg_reload_conf|pg_rotate_logfile.*|pg_logical_.*|pg_replication_.*" \
	"|pg_create_.*|pg_drop_replication_slot|pg_switch_wal|pg_file_.*" \
	"|pg_(try_)?advisory_lock.*|pg_stat_reset.*)$"

const char effects_sql[] =
"WITH RECURSIVE f(oid, via) AS ("
" SELECT t.tgfoid::pg_catalog.oid, 'trigger ' || pg_catalog.quote_ident(t.tgname) || ' of '"
"   || pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)"
"  FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]),"
"    pg_catalog.unnest($2::pg_catalog.int4[])) AS w(oid, events)"
"  JOIN pg_catalog.pg_trigger t ON t.tgrelid = w.oid"
"  JOIN pg_catalog.pg_class c ON c.oid = w.oid"
"  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
"  WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND (t.tgtype::pg_catalog.int4 & w.events) <> 0"
" UNION"
" SELECT p.oid, NULL FROM ROWS FROM (pg_catalog.unnest($3::pg_catalog.text[]),"
"   pg_catalog.unnest($4::pg_catalog.text[])) AS u(schema, name)"
"  JOIN pg_catalog.pg_proc p ON p.proname = u.name AND p.oid >= '16384'"
"  JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace AND u.schema IN ('', n.nspname)"
" UNION"
" SELECT x.oid, f.via FROM f JOIN pg_catalog.pg_proc p ON p.oid = f.oid AND p.oid >= '16384'"
"  JOIN pg_catalog.pg_language l ON l.oid = p.prolang AND l.lanname NOT IN ('c', 'internal')"
"  CROSS JOIN LATERAL ("
"   SELECT q.oid FROM (SELECT DISTINCT m[1] AS word FROM pg_catalog.regexp_matches(p.prosrc,"
"      '([[:alpha:]_][[:alnum:]_$]*)\"?[[:space:]]*\\(', 'g') AS m) w"
"    JOIN pg_catalog.pg_proc q ON q.proname IN (w.word, pg_catalog.lower(w.word))"
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
"   WHERE p.oid < '16384' OR NOT l.lanpltrusted AND l.lanname NOT IN ('c', 'internal')"
"    OR p.prosrc ~* '\\mcopy\\M[^;]*\\m(to|from)\\M[[:space:]]*(program\\M|'')'"
"    OR EXISTS (SELECT FROM pg_catalog.pg_depend d"
"     JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid WHERE d.classid = '1255'"
"     AND d.objid = p.oid AND d.refclassid = '3079' AND d.deptype = 'e'"
"     AND e.extname = ANY ($5::pg_catalog.name[]))) k "
"ORDER BY 1, 2, 3";
/* clang-format on */
