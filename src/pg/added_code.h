/* added_code: whether functions somebody made may run for a table's rows */
#ifndef AIRLOCK_PG_ADDED_CODE_H
#define AIRLOCK_PG_ADDED_CODE_H

/*
 * SQL, true where functions that somebody made stand behind defaults, checks
 * and indexes of the relation that is the row `c` of pg_class, as such or as
 * operators; and wherever it has rules, policies, children or columns of a
 * domain, whatever is behind those.  Triggers are not asked about.
 */
/* clang-format off */
#define ADDED_CODE(c) \
	c ".relkind <> 'r' OR " c ".relhassubclass OR " c ".relhasrules" \
	" OR pg_catalog.row_security_active(" c ".oid)" \
	" OR EXISTS (SELECT FROM pg_catalog.pg_attribute a" \
	"  JOIN pg_catalog.pg_type t ON t.oid = a.atttypid" \
	"  LEFT JOIN pg_catalog.pg_type m ON m.oid = t.typelem" \
	"  WHERE a.attrelid = " c ".oid AND a.atttypid >= '16384'" \
	"   AND 'd' IN (t.typtype, m.typtype))" \
	" OR EXISTS (SELECT FROM (" \
	"  SELECT '2604'::pg_catalog.oid AS class, x.oid FROM pg_catalog.pg_attrdef x" \
	"   WHERE x.adrelid = " c ".oid" \
	"  UNION ALL SELECT '2606', x.oid FROM pg_catalog.pg_constraint x" \
	"   WHERE x.conrelid = " c ".oid" \
	"  UNION ALL SELECT '1259', x.indexrelid FROM pg_catalog.pg_index x" \
	"   WHERE x.indrelid = " c ".oid) b" \
	"  JOIN pg_catalog.pg_depend d ON d.classid = b.class AND d.objid = b.oid" \
	"  WHERE d.refclassid IN ('1255', '2617'))"
/* clang-format on */

#endif
