/* catalog_sql: the questions of pg/catalog, as text */
#ifndef AIRLOCK_PG_CATALOG_SQL_H
#define AIRLOCK_PG_CATALOG_SQL_H

#include "pg/added_code.h"
#include "pg/partition.h"
#include "pg/policies.h"

/* clang-format off */
#define ROOT_NAME \
	" CASE WHEN c.relispartition THEN (SELECT r.identity FROM" \
	"  pg_catalog.pg_identify_object('1259'," \
	"   pg_catalog.pg_partition_root(c.oid)::pg_catalog.oid, '0') AS r) END"
#define FINGERPRINT \
	"pg_catalog.md5(pg_catalog.concat_ws('|', c.oid, c.xmin::pg_catalog.text," \
	" pg_catalog.row_security_active(c.oid)," \
	" pg_catalog.has_table_privilege(c.oid, 'SELECT')," \
	ROOT_NAME ", " POLICIES("c.oid") "," \
	" (SELECT pg_catalog.string_agg(a.attnum::pg_catalog.text || ':' ||" \
	"   a.xmin::pg_catalog.text, ',' ORDER BY a.attnum)" \
	"  FROM pg_catalog.pg_attribute a" \
	"  WHERE a.attrelid = c.oid AND a.attnum > 0)," \
	" (SELECT pg_catalog.string_agg(i.indexrelid::pg_catalog.text || ':' ||" \
	"   i.xmin::pg_catalog.text, ',' ORDER BY i.indexrelid)" \
	"  FROM pg_catalog.pg_index i" \
	"  WHERE i.indrelid = ANY (ARRAY[c.oid, " ROOT("c.oid") "]))," \
	" (SELECT pg_catalog.string_agg(t.oid::pg_catalog.text || ':' ||" \
	"   t.xmin::pg_catalog.text || ':' || p.xmin::pg_catalog.text," \
	"   ',' ORDER BY t.oid) FROM pg_catalog.pg_trigger t" \
	"  JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid" \
	"  WHERE t.tgrelid = c.oid)," \
	" (SELECT pg_catalog.string_agg(w.oid::pg_catalog.text || ':' ||" \
	"   w.xmin::pg_catalog.text, ',' ORDER BY w.oid)" \
	"  FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid)))"

static const char relation_sql[] =
    "SELECT c.oid, pg_catalog.quote_ident(n.nspname) || '.' ||"
    "  pg_catalog.quote_ident(c.relname), c.relkind, c.relpersistence,"
    " c.reltuples, c.relkind = 'p' OR c.relam = '2', c.relhassubclass,"
    " c.relhasrules, pg_catalog.row_security_active(c.oid),"
    " pg_catalog.has_table_privilege(c.oid, 'SELECT'),"
    " EXISTS (SELECT 1 FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid"
    "  AND NOT t.tgisinternal AND t.tgenabled <> 'D'"
    "  AND (t.tgtype & '66') <> 0 AND (t.tgtype & '16') <> 0),"
    " EXISTS (SELECT 1 FROM pg_catalog.pg_index i"
    "  WHERE i.indrelid = " ROOT("c.oid") " AND i.indisprimary), " FINGERPRINT "," ROOT_NAME ","
    " EXISTS (SELECT 1 FROM pg_catalog.pg_trigger t"
    "  JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid"
    "  WHERE t.tgrelid = c.oid AND NOT t.tgisinternal"
    "   AND t.tgenabled <> 'D' AND p.prosrc ~* '\\mcurrent_query\\M'), "
    POLICIES("c.oid") ","
    ADDED_CODE("c")
    " FROM pg_catalog.pg_class c "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.oid = pg_catalog.to_regclass($1)::pg_catalog.oid";

/* The key: the primary key, else the first unique index that is immediate,
 * valid, whole and without expressions or nullable columns.  A partition's is
 * that of its topmost table, whatever else it has: a row is told by one key, by
 * whatever way it was written and wherever it moves. */
static const char columns_sql[] =
    "WITH k AS (SELECT i.indrelid, i.indkey::pg_catalog.int2[] AS key,"
    "   i.indnkeyatts AS n"
    "  FROM pg_catalog.pg_index i"
    "  WHERE i.indrelid = " ROOT("pg_catalog.to_regclass($1)::pg_catalog.oid")
    "   AND i.indisunique"
    "   AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL"
    "   AND i.indexprs IS NULL AND NOT EXISTS ("
    "    SELECT 1 FROM pg_catalog.pg_attribute a, "
    "     pg_catalog.generate_series(0, i.indnkeyatts - 1) AS g(j)"
    "    WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[g.j]"
    "     AND NOT a.attnotnull)"
    "  ORDER BY i.indisprimary DESC, i.indexrelid LIMIT 1) "
    "SELECT a.attname, pg_catalog.quote_ident(a.attname),"
    " pg_catalog.format_type(a.atttypid, a.atttypmod),"
    " EXISTS (SELECT FROM k JOIN pg_catalog.pg_attribute r"
    "  ON r.attrelid = k.indrelid AND r.attname = a.attname"
    "  WHERE r.attnum = ANY (k.key[0:k.n - 1])),"
    " a.attgenerated <> '', a.attnotnull "
    "FROM pg_catalog.pg_attribute a "
    "WHERE a.attrelid = pg_catalog.to_regclass($1)::pg_catalog.oid AND a.attnum > 0"
    " AND NOT a.attisdropped ORDER BY a.attnum";

const char catalog_verify_sql[] =
    "SELECT " FINGERPRINT " FROM pg_catalog.pg_class c "
    "WHERE c.oid = pg_catalog.to_regclass($1)::pg_catalog.oid";

static const char oids_sql[] =
    "SELECT pg_catalog.array_agg(c.oid)::pg_catalog.text "
    "FROM pg_catalog.pg_class c "
    "WHERE c.relnamespace = '11' AND c.relkind = 'r' AND c.oid < '16384'";

static const char types_sql[] =
    "SELECT t.oid, pg_catalog.format_type(t.oid, NULL) "
    "FROM pg_catalog.pg_type t WHERE t.oid < '16384' AND t.typtype <> 'c'";

static const char learn_sql[] =
    "SELECT t.oid, pg_catalog.format_type(t.oid, NULL) "
    "FROM pg_catalog.pg_type t WHERE t.oid = ANY ($1::pg_catalog.oid[])";
/* clang-format on */

#endif
