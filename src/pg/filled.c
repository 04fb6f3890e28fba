/* filled: the columns that sequences, the clock and random numbers fill */
#include "pg/filled.h"

#include "sql/given.h"

/* clang-format off */
#define ITEM(name) "'" name "',"
#define MAKER \
	"(p.oid < '16384' AND p.proname IN (" GIVEN_MAKERS(ITEM) "'')" \
	" OR p.probin = '$libdir/uuid-ossp' AND p.prosrc IN" \
	"  ('uuid_generate_v1', 'uuid_generate_v1mc', 'uuid_generate_v4')" \
	" OR p.probin = '$libdir/pgcrypto' AND p.prosrc IN" \
	"  ('pg_random_bytes', 'pg_random_uuid'))"
#define CLOCK "\\{SQLVALUEFUNCTION :op [0-8] " /* not CURRENT_USER and such */

/*
 * A default is one of those where it calls such a function, and nothing beside
 * it but what is IMMUTABLE, or the server's own and STABLE: what a function of
 * somebody else's returns may be data.  pg_depend does not tell of what the
 * server itself brings, so the node tree is read.  Text in it cannot look like
 * a node: it stands there as numbers, and names with their spaces and braces
 * escaped.
 */
#define SQL(tables) \
	"WITH a AS (SELECT u.oid AS asked, a.attrelid, a.attnum, a.attname," \
	" a.attidentity <> '' AS identity, a.attgenerated <> '' AS generated," \
	" NOT a.atthasdef AND t.typdefaultbin IS NOT NULL AS domain," \
	" CASE WHEN a.atthasdef THEN d.adbin::pg_catalog.text" \
	"  ELSE t.typdefaultbin::pg_catalog.text END AS bin" \
	" FROM " tables \
	" CROSS JOIN LATERAL (SELECT u.oid AS relid UNION" \
	"  SELECT k.relid::pg_catalog.oid" \
	"  FROM pg_catalog.pg_partition_ancestors(u.oid) AS k(relid)) AS r" \
	" JOIN pg_catalog.pg_attribute a ON a.attrelid = r.relid" \
	"  AND a.attnum > 0 AND NOT a.attisdropped" \
	" JOIN pg_catalog.pg_type t ON t.oid = a.atttypid" \
	" LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid" \
	"  AND d.adnum = a.attnum)," \
	"f AS (SELECT a.*, CASE WHEN a.identity THEN true" \
	" WHEN a.generated OR a.bin IS NULL THEN false ELSE" \
	"  NOT EXISTS (SELECT FROM pg_catalog.regexp_matches(" \
	"    pg_catalog.regexp_replace(a.bin, '" CLOCK "', '', 'g')," \
	"    '\\{([A-Z_]+)', 'g') AS m" \
	"   WHERE m[1] <> ALL ('{CONST,FUNCEXPR,OPEXPR,RELABELTYPE," \
	"COERCEVIAIO,COERCETODOMAIN,NAMEDARGEXPR,COALESCE,COALESCEEXPR,ARRAY," \
	"ARRAYEXPR}'::pg_catalog.text[]))" \
	"  AND (SELECT (a.bin ~ '" CLOCK "' OR" \
	"    COALESCE(pg_catalog.bool_or(" MAKER "), false)) AND" \
	"    COALESCE(pg_catalog.bool_and(COALESCE(" MAKER \
	"     OR p.provolatile = 'i' OR p.provolatile = 's' AND p.oid < '16384'," \
	"     false)), true)" \
	"   FROM pg_catalog.regexp_matches(a.bin," \
	"    ':(?:funcid|opfuncid) (\\d+)', 'g') AS m" \
	"   LEFT JOIN pg_catalog.pg_proc p ON p.oid = m[1]::pg_catalog.oid)" \
	"  END AS filled FROM a) " \
	"SELECT f.asked, f.attname, f.domain, false FROM f WHERE f.filled" \
	" UNION SELECT f.asked, g.attname, f.domain, false FROM f" \
	"  JOIN f AS g ON g.generated AND g.attrelid = f.attrelid" \
	"  CROSS JOIN pg_catalog.regexp_matches(g.bin, ':varattno (\\d+)', 'g')" \
	"   AS v WHERE f.filled AND v[1]::pg_catalog.int2 = f.attnum" \
	" UNION SELECT f.asked, NULL, true, false FROM f" \
	"  WHERE f.domain AND NOT f.filled" \
	" UNION SELECT f.asked, f.attname, false, true FROM f" \
	"  WHERE f.attname = ANY ($2::pg_catalog.text[]) AND NOT f.filled " \
	"ORDER BY 1, 2, 3, 4"

const char filled_sql[] =
    SQL("pg_catalog.unnest($1::pg_catalog.oid[]) AS u(oid)");
const char filled_named_sql[] =
    SQL("(SELECT pg_catalog.to_regclass($1)::pg_catalog.oid AS oid) AS u");
/* clang-format on */
