/* facts: each statement's kind, and what it reads, writes and calls */
#include "sql/facts.h"

#include <pg_query.h>
#include <pg_query/pg_query.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/text.h"
#include "sql/classify.h"
#include "sql/parcel.h"
#include "sql/parse.h"
#include "sql/tree.h"

static struct facts
read_facts(const char *sql)
{
	struct err e = ERR_INIT;
	struct facts f;
	struct parse p;
	long position;

	if (parse_text(sql, strlen(sql), &p, &position, &e) == -1)
		fail_msg("%s: %s", sql, e.text);
	if (facts_read(&p, &f, &e) == -1)
		fail_msg("%s: %s", sql, e.text);
	parse_release(&p);
	return f;
}

static void
add_names(struct text *t, const char *label, const struct facts_names *v)
{
	if (v->n == 0)
		return;
	text_addf(t, "%s%s:", t->len > 0 ? " " : "", label);
	for (size_t i = 0; i < v->n; i++) {
		const struct facts_name *n = &v->v[i];

		text_addf(t, "%s%s%s%s", i > 0 ? "," : "", n->nested ? "*" : "",
		    n->schema != NULL ? n->schema : "",
		    n->schema != NULL ? "." : "");
		text_add(t, n->name);
		if (strchr("iudmx", n->op) != NULL)
			text_addf(t, "/%c", n->op);
		if (strchr("fo", n->op) != NULL)
			text_addf(t, "/%d", n->nargs);
	}
}

static void
add_flag(struct text *t, bool set, const char *name)
{
	if (set)
		text_addf(t, "%s%s", t->len > 0 ? " " : "", name);
}

/* All that differs from a plain SELECT 1, in a fixed order. */
static void
describe(struct text *t, const struct facts *f)
{
	add_names(t, "r", &f->reads);
	add_names(t, "w", &f->writes);
	add_names(t, "f", &f->functions);
	add_flag(t, f->explain_analyze, "analyze");
	add_flag(t, f->locking, "lock");
	add_flag(t, f->into, "into");
	add_flag(t, f->opaque, "opaque");
	add_flag(t, f->only, "only");
	add_flag(t, f->current_of, "current");
	add_flag(t, f->has_where, "where");
	add_flag(t, f->where_vacuous, "vacuous");
	add_flag(t, f->where_ignores_target, "ignores");
	add_flag(t, f->has_returning, "returning");
	add_flag(t, f->conflict == CONFLICT_NOTHING, "nothing");
	add_flag(t, f->conflict == CONFLICT_UPDATE, "upsert");
	for (size_t i = 0; i < f->set_columns.n; i++)
		text_addf(t, " =%s", f->set_columns.v[i]);
	for (size_t i = 0; i < f->careless.n; i++)
		text_addf(t, " careless:%s/%c", f->careless.v[i].name,
		    f->careless.v[i].op);
	for (size_t i = 0; i < f->not_null_any.n; i++)
		text_addf(t, " any:%s", f->not_null_any.v[i]);
	for (size_t i = 0; i < f->not_null_all.n; i++)
		text_addf(t, " all:%s", f->not_null_all.v[i]);
	if (f->params > 0)
		text_addf(t, " $%d", f->params);
}

struct touch {
	const char *sql, *what;
};

/* clang-format off */
static const struct touch touches[] = {
	/* CTE scoping */
	{ "WITH a AS (SELECT 1) SELECT * FROM a", "" },
	{ "WITH a AS (SELECT * FROM a) SELECT * FROM a", "r:a" },
	{ "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM b", "r:b" },
	{ "WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a) SELECT * FROM a", "" },
	{ "WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a", "" },
	{ "WITH a AS (SELECT 1) SELECT * FROM public.a", "r:public.a" },
	{ "WITH a AS (SELECT 1) SELECT * FROM \"A\"", "r:A" },
	{ "SELECT * FROM a WHERE EXISTS (WITH a AS (SELECT 1) SELECT * FROM a)", "r:a" },
	{ "SELECT (WITH a AS (SELECT 1) SELECT * FROM a), (SELECT x FROM a)", "r:a" },
	{ "WITH a AS (SELECT 1) SELECT * FROM (SELECT * FROM a, b) q", "r:b" },
	{ "WITH a AS (WITH b AS (SELECT 1) SELECT * FROM b) SELECT * FROM a, b", "r:b" },
	{ "WITH a AS (SELECT 1) (SELECT * FROM a UNION SELECT * FROM c)", "r:c" },
	{ "WITH a AS (SELECT 1) DELETE FROM a", "w:a/d" },
	{ "WITH a AS (SELECT 1) INSERT INTO a SELECT * FROM a", "w:a/i" },
	{ "WITH a AS (SELECT 1) UPDATE a SET x = 1 FROM a q WHERE true", "w:a/u where vacuous ignores =x" },
	{ "INSERT INTO t WITH a AS (SELECT 1) SELECT * FROM a", "w:t/i" },
	/* nested writes */
	{ "WITH g AS (DELETE FROM i RETURNING *) SELECT * FROM g", "w:*i/d careless:i/n" },
	{ "WITH g AS (INSERT INTO i VALUES (1)), h AS (UPDATE j SET a = 1) DELETE FROM t", "w:t/d,*i/i,*j/u careless:j/n" },
	{ "EXPLAIN WITH g AS (DELETE FROM i RETURNING *) SELECT * FROM g", "w:*i/d careless:i/n" },
	{ "PREPARE p AS DELETE FROM i", "w:*i/d" },
	{ "COPY (DELETE FROM i RETURNING *) TO STDOUT", "w:*i/d" },
	/* functions, wherever they stand */
	{ "SELECT f(1, 2)", "f:f/2" },
	{ "SELECT evil.f()", "f:evil.f/0" },
	{ "SELECT a.b.f()", "f:b.f/0" },
	{ "SELECT count(*), count(x)", "f:count/0,count/1" },
	{ "SELECT f(VARIADIC a)", "f:f/-1" },
	{ "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", "f:percentile_cont/2" },
	{ "SELECT * FROM f(g(1))", "f:f/1,g/1" },
	{ "SELECT * FROM ROWS FROM (f(1), g(2) AS (a int))", "f:f/1,g/1" },
	{ "SELECT * FROM t, LATERAL f(t.a) WITH ORDINALITY", "r:t f:f/1" },
	{ "SELECT * FROM t JOIN f(1) ON g(2)", "r:t f:f/1,g/1" },
	{ "SELECT 1 LIMIT f() OFFSET g()", "f:g/0,f/0" },
	{ "SELECT 1 FETCH FIRST (f()) ROWS ONLY", "f:f/0" },
	{ "SELECT 1 GROUP BY f() HAVING g() ORDER BY h()", "f:f/0,g/0,h/0" },
	{ "SELECT sum(x) FILTER (WHERE f()) OVER (PARTITION BY g() ORDER BY h() ROWS BETWEEN i() PRECEDING AND j() FOLLOWING)",
	    "f:sum/1,f/0,g/0,h/0,i/0,j/0" },
	{ "SELECT 1 FROM t WINDOW w AS (PARTITION BY f())", "r:t f:f/0" },
	{ "VALUES (1), (f())", "f:f/0" },
	{ "SELECT CASE f() WHEN g() THEN h() ELSE i() END", "f:f/0,g/0,h/0,i/0" },
	{ "SELECT ARRAY[f()], ROW(g()), (h()).x, a[i()], COALESCE(j()), GREATEST(k())", "f:f/0,g/0,h/0,i/0,j/0,k/0" },
	{ "SELECT f() IS NULL, g() IN (h()), NOT i(), j() BETWEEN k() AND l()", "f:f/0,g/0,h/0,i/0,j/0,k/0,l/0" },
	{ "SELECT * FROM XMLTABLE(f() PASSING g() COLUMNS a int PATH h() DEFAULT i())", "f:g/0,f/0,h/0,i/0" },
	{ "SELECT xmlelement(name a, xmlattributes(f() AS b), g())", "f:f/0,g/0" },
	{ "SELECT f()::text::regclass", "f:f/0" },
	{ "SELECT 'pg_class'::regclass, CAST('f' AS regproc), current_user, current_timestamp(3)", "" },
	{ "SELECT extract(year FROM f()), substring('a' FROM 1)", "f:pg_catalog.extract/2,f/0,pg_catalog.substring/2" },
	{ "SELECT x AT TIME ZONE f()", "f:pg_catalog.timezone/2,f/0" },
	{ "SELECT DISTINCT ON (f()) 1", "f:f/0" },
	{ "SELECT 1 UNION SELECT f()", "f:f/0" },
	{ "WITH a AS (DELETE FROM t RETURNING 1), b AS (UPDATE s.u SET x = 1 WHERE true RETURNING 1), c AS (DELETE FROM v WHERE EXISTS (SELECT FROM w) RETURNING 1), d AS (DELETE FROM y WHERE y.z = 1 RETURNING 1) SELECT 1",
	    "r:w w:*t/d,*s.u/u,*v/d,*y/d careless:t/n careless:u/v careless:v/g" },
	{ "EXPLAIN WITH a AS (DELETE FROM t RETURNING 1) INSERT INTO u SELECT 1", "w:u/i,*t/d careless:t/n" },
	{ "DELETE FROM t WHERE id IS NOT NULL AND (n IS NOT NULL OR true)", "w:t/d where any:id all:id all:n" },
	{ "SELECT * FROM t TABLESAMPLE system (f()) REPEATABLE (g())", "r:t f:f/0,g/0" },
	{ "INSERT INTO t (a[f()]) VALUES (g()) ON CONFLICT (h()) WHERE i() DO UPDATE SET a = j() WHERE k() RETURNING l()",
	    "w:t/i f:f/0,g/0,h/0,i/0,j/0,k/0,l/0 returning upsert =a" },
	{ "UPDATE t SET a = f() WHERE b = g() RETURNING h()", "w:t/u f:f/0,g/0,h/0 where returning =a" },
	{ "DELETE FROM t USING f() WHERE g(t.a)", "w:t/d f:f/0,g/1 where" },
	{ "SELECT f(1), f(2), F(3)", "f:f/1" },
	{ "SELECT * FROM generate_series(1, 2) f(x), f(x)", "f:generate_series/2,f/1" },
	/* operators that say their schema */
	{ "SELECT 1 OPERATOR(evil.+) 2, 1 OPERATOR(pg_catalog.+) 2", "f:evil.+/2" },
	{ "SELECT OPERATOR(evil.-) 2", "f:evil.-/1" },
	{ "SELECT 1 OPERATOR(evil.=) ANY (SELECT 1)", "f:evil.=/2" },
	{ "SELECT 1 ORDER BY 1 USING OPERATOR(evil.<)", "f:evil.</2" },
	/* locks, INTO, parameters */
	{ "SELECT * FROM t FOR UPDATE", "r:t lock" },
	{ "SELECT * FROM t AS q FOR NO KEY UPDATE OF q SKIP LOCKED", "r:t lock" },
	{ "SELECT * FROM (SELECT * FROM t FOR SHARE) q", "r:t lock" },
	{ "SELECT 1 WHERE EXISTS (SELECT 1 FROM t FOR KEY SHARE)", "r:t lock" },
	{ "SELECT a INTO n FROM t", "r:t w:n/x into" },
	{ "SELECT a INTO TEMP n FROM t UNION SELECT 1", "r:t w:n/x into" },
	{ "EXPLAIN CREATE TABLE n AS SELECT 1", "w:n/x into" },
	{ "SELECT $3, $1", " $3" },
	{ "SELECT 1 LIMIT $2", " $2" },
	{ "TABLE t", "r:t" },
	{ "SELECT * FROM ONLY t, s.t, t AS u", "r:t,s.t" },
	/* EXPLAIN */
	{ "EXPLAIN ANALYZE DELETE FROM t", "w:t/d analyze" },
	{ "EXPLAIN (ANALYZE) DELETE FROM t", "w:t/d analyze" },
	{ "EXPLAIN (analyse, COSTS OFF) DELETE FROM t", "w:t/d analyze" },
	{ "EXPLAIN (ANALYZE on) SELECT 1", "analyze" },
	{ "EXPLAIN (ANALYZE 'TRUE') SELECT 1", "analyze" },
	{ "EXPLAIN (ANALYZE 1) SELECT 1", "analyze" },
	{ "EXPLAIN (ANALYZE false) SELECT 1", "" },
	{ "EXPLAIN (ANALYZE off) SELECT 1", "" },
	{ "EXPLAIN (ANALYZE 'Off') SELECT 1", "" },
	{ "EXPLAIN (ANALYZE 0) SELECT 1", "" },
	{ "EXPLAIN (COSTS, VERBOSE true) SELECT 1", "" },
	{ "EXPLAIN (ANALYZE, ANALYZE off) SELECT 1", "analyze" },
	{ "EXPLAIN VERBOSE UPDATE t SET a = 1", "w:t/u =a" },
	/* the own target */
	{ "UPDATE ONLY t SET a = 1, (b, c) = (1, 2), d[1] = 3", "w:t/u only =a =b =c =d" },
	{ "DELETE FROM t WHERE CURRENT OF c", "w:t/d current where" },
	{ "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", "w:t/i nothing" },
	{ "INSERT INTO t DEFAULT VALUES RETURNING *", "w:t/i returning" },
	{ "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE", "r:s w:t/m where" },
	{ "MERGE INTO t p USING (SELECT 1 AS k) q ON true WHEN MATCHED THEN UPDATE SET w = 0", "w:t/m where vacuous ignores" },
	{ "COPY t TO STDOUT", "r:t" },
	{ "COPY t FROM '/etc/passwd'", "w:t/i" },
	{ "LOCK TABLE a, s.b", "w:a/x,s.b/x" },
	{ "TRUNCATE a, b", "w:a/x,b/x" },
	{ "CREATE VIEW v AS SELECT f() FROM t", "r:t w:v/x f:f/0" },
	{ "CALL p(f())", "f:p/1,f/0" },
#if PG_VERSION_NUM >= 170000
	/* names that an older server takes for anybody's functions */
	{ "SELECT json_value(f(), '$'), json_exists('1', '$'), json_query('1', '$')",
	    "f:json_value/-1,f/0,json_exists/-1,json_query/-1" },
	{ "SELECT json_object('a': f()), json_array(1), json_scalar(1), json('1')",
	    "f:json_object/-1,f/0,json_array/-1,json_scalar/-1,json/-1" },
	{ "SELECT * FROM json_table(f(), '$' COLUMNS (a int PATH '$')) q", "f:json_table/-1,f/0" },
	{ "SELECT json_arrayagg(a), json_objectagg(a: b)", "f:json_arrayagg/-1,json_objectagg/-1" },
	{ "SELECT a IS JSON FROM t", "r:t" },
	{ "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE RETURNING merge_action()",
	    "r:s w:t/m f:merge_action/-1 where returning" },
	{ "WITH m AS (MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED BY SOURCE THEN DELETE RETURNING 1) SELECT * FROM m",
	    "r:s w:*t/m" },
#endif
};

static const struct {
	const char *sql;
	enum stmt_kind kind;
	const char *tag;
} kinds[] = {
	{ "", STMT_EMPTY, "" },
	{ " ;; -- nothing here", STMT_EMPTY, "" },
	{ "SELECT 1;", STMT_SELECT, "SELECT" },
	{ "VALUES (1), (2)", STMT_SELECT, "SELECT" },
	{ "INSERT INTO t VALUES (1)", STMT_INSERT, "INSERT" },
	{ "UPDATE t SET a = 1", STMT_UPDATE, "UPDATE" },
	{ "DELETE FROM t", STMT_DELETE, "DELETE" },
	{ "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE", STMT_MERGE, "MERGE" },
	{ "EXPLAIN SELECT 1", STMT_EXPLAIN, "EXPLAIN" },
	{ "SHOW ALL", STMT_SHOW, "SHOW" },
	{ "COPY t TO STDOUT", STMT_COPY, "COPY" },
	{ "CALL p()", STMT_CALL, "CALL" },
	{ "DO $$ BEGIN END $$", STMT_DO, "DO" },
	{ "BEGIN", STMT_TRANSACTION, "BEGIN" },
	{ "START TRANSACTION", STMT_TRANSACTION, "START" },
	{ "END", STMT_TRANSACTION, "COMMIT" },
	{ "ABORT", STMT_TRANSACTION, "ROLLBACK" },
	{ "ROLLBACK TO a", STMT_TRANSACTION, "ROLLBACK TO" },
	{ "SAVEPOINT a", STMT_TRANSACTION, "SAVEPOINT" },
	{ "COMMIT PREPARED 'x'", STMT_TRANSACTION, "COMMIT PREPARED" },
	{ "SET a = 1", STMT_SESSION, "SET" },
	{ "SET TRANSACTION READ WRITE", STMT_SESSION, "SET" },
	{ "SET ROLE x", STMT_SESSION, "SET" },
	{ "SET SCHEMA 'pg_temp'", STMT_SESSION, "SET" },
	{ "SET SESSION AUTHORIZATION DEFAULT", STMT_SESSION, "SET" },
	{ "RESET ALL", STMT_SESSION, "RESET" },
	{ "SET CONSTRAINTS ALL DEFERRED", STMT_SESSION, "SET CONSTRAINTS" },
	{ "DISCARD ALL", STMT_SESSION, "DISCARD" },
	{ "PREPARE p AS SELECT 1", STMT_SESSION, "PREPARE" },
	{ "EXECUTE p", STMT_SESSION, "EXECUTE" },
	{ "DEALLOCATE p", STMT_SESSION, "DEALLOCATE" },
	{ "DECLARE c CURSOR FOR SELECT 1", STMT_SESSION, "DECLARE CURSOR" },
	{ "FETCH c", STMT_SESSION, "FETCH" },
	{ "MOVE c", STMT_SESSION, "MOVE" },
	{ "CLOSE c", STMT_SESSION, "CLOSE" },
	{ "LISTEN a", STMT_SESSION, "LISTEN" },
	{ "UNLISTEN *", STMT_SESSION, "UNLISTEN" },
	{ "NOTIFY a", STMT_SESSION, "NOTIFY" },
	{ "LOAD 'x'", STMT_SESSION, "LOAD" },
	{ "CHECKPOINT", STMT_SESSION, "CHECKPOINT" },
	{ "LOCK t", STMT_LOCK, "LOCK TABLE" },
	{ "TRUNCATE t", STMT_TRUNCATE, "TRUNCATE" },
	{ "CREATE TABLE t (a int)", STMT_DDL, "CREATE TABLE" },
	{ "CREATE TABLE t AS SELECT 1", STMT_DDL, "CREATE TABLE" },
	{ "CREATE MATERIALIZED VIEW v AS SELECT 1", STMT_DDL, "CREATE MATERIALIZED VIEW" },
	{ "CREATE AGGREGATE a (int) (sfunc = f, stype = int)", STMT_DDL, "CREATE AGGREGATE" },
	{ "CREATE TEXT SEARCH CONFIGURATION c (parser = p)", STMT_DDL, "CREATE TEXT SEARCH CONFIGURATION" },
	{ "CREATE FUNCTION f2(x int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT x; END", STMT_DDL, "CREATE FUNCTION" },
	{ "ALTER TABLE t ADD a int", STMT_DDL, "ALTER TABLE" },
	{ "ALTER TABLE t RENAME TO u", STMT_DDL, "ALTER TABLE" },
	{ "ALTER TABLE t RENAME a TO b", STMT_DDL, "ALTER TABLE" },
	{ "ALTER TABLE t OWNER TO x", STMT_DDL, "ALTER TABLE" },
	{ "ALTER VIEW v SET SCHEMA s", STMT_DDL, "ALTER VIEW" },
	{ "ALTER TABLE t DETACH PARTITION p", STMT_DDL, "ALTER TABLE" },
	{ "ALTER TABLE t DETACH PARTITION p CONCURRENTLY", STMT_MAINTENANCE, "ALTER TABLE" },
	{ "DROP TABLE t", STMT_DDL, "DROP TABLE" },
	{ "DROP MATERIALIZED VIEW v", STMT_DDL, "DROP MATERIALIZED VIEW" },
	{ "DROP FOREIGN TABLE t", STMT_DDL, "DROP FOREIGN TABLE" },
	{ "DROP INDEX i", STMT_DDL, "DROP INDEX" },
	{ "DROP INDEX CONCURRENTLY i", STMT_MAINTENANCE, "DROP INDEX" },
	{ "CREATE INDEX ON t (a)", STMT_DDL, "CREATE INDEX" },
	{ "CREATE INDEX CONCURRENTLY ON t (a)", STMT_MAINTENANCE, "CREATE INDEX" },
	{ "COMMENT ON TABLE t IS 'x'", STMT_DDL, "COMMENT ON TABLE" },
	{ "SECURITY LABEL ON TABLE t IS 'x'", STMT_DDL, "SECURITY LABEL ON TABLE" },
	{ "REFRESH MATERIALIZED VIEW CONCURRENTLY v", STMT_DDL, "REFRESH MATERIALIZED VIEW" },
	{ "GRANT ALL ON t TO PUBLIC", STMT_GRANT, "GRANT" },
	{ "REVOKE ALL ON t FROM PUBLIC", STMT_GRANT, "REVOKE" },
	{ "GRANT a TO b", STMT_GRANT, "GRANT ROLE" },
	{ "REVOKE a FROM b", STMT_GRANT, "REVOKE ROLE" },
	{ "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO x", STMT_GRANT, "ALTER DEFAULT PRIVILEGES" },
	{ "DROP OWNED BY x", STMT_GRANT, "DROP OWNED" },
	{ "REASSIGN OWNED BY x TO y", STMT_GRANT, "REASSIGN OWNED" },
	{ "ALTER SYSTEM SET a = 1", STMT_SYSTEM, "ALTER SYSTEM" },
	{ "CREATE USER x", STMT_SYSTEM, "CREATE ROLE" },
	{ "ALTER ROLE x SET a = 1", STMT_SYSTEM, "ALTER ROLE" },
	{ "ALTER ROLE a RENAME TO b", STMT_SYSTEM, "ALTER ROLE" },
	{ "DROP ROLE x", STMT_SYSTEM, "DROP ROLE" },
	{ "CREATE DATABASE d", STMT_SYSTEM, "CREATE DATABASE" },
	{ "ALTER DATABASE d OWNER TO x", STMT_SYSTEM, "ALTER DATABASE" },
	{ "COMMENT ON DATABASE d IS 'x'", STMT_SYSTEM, "COMMENT ON DATABASE" },
	{ "CREATE TABLESPACE s LOCATION '/x'", STMT_SYSTEM, "CREATE TABLESPACE" },
	{ "CREATE EXTENSION dblink", STMT_SYSTEM, "CREATE EXTENSION" },
	{ "DROP EXTENSION dblink", STMT_SYSTEM, "DROP EXTENSION" },
	{ "CREATE LANGUAGE plpython3u", STMT_SYSTEM, "CREATE EXTENSION" },
	{ "DROP LANGUAGE x", STMT_SYSTEM, "DROP LANGUAGE" },
	{ "CREATE PUBLICATION p FOR ALL TABLES", STMT_SYSTEM, "CREATE PUBLICATION" },
	{ "DROP PUBLICATION p", STMT_SYSTEM, "DROP PUBLICATION" },
	{ "CREATE SUBSCRIPTION s CONNECTION '' PUBLICATION p", STMT_SYSTEM, "CREATE SUBSCRIPTION" },
	{ "CREATE SERVER s FOREIGN DATA WRAPPER f", STMT_SYSTEM, "CREATE SERVER" },
	{ "DROP SERVER s", STMT_SYSTEM, "DROP SERVER" },
	{ "CREATE USER MAPPING FOR u SERVER s", STMT_SYSTEM, "CREATE USER MAPPING" },
	{ "IMPORT FOREIGN SCHEMA s FROM SERVER x INTO y", STMT_SYSTEM, "IMPORT FOREIGN SCHEMA" },
	{ "DROP EVENT TRIGGER e", STMT_SYSTEM, "DROP EVENT TRIGGER" },
	{ "DROP ACCESS METHOD a", STMT_SYSTEM, "DROP ACCESS METHOD" },
	{ "VACUUM t", STMT_MAINTENANCE, "VACUUM" },
	{ "ANALYZE", STMT_MAINTENANCE, "ANALYZE" },
	{ "CLUSTER t", STMT_MAINTENANCE, "CLUSTER" },
	{ "REINDEX TABLE t", STMT_MAINTENANCE, "REINDEX TABLE" },
};
/* clang-format on */

static void
reads_what_is_touched(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(touches) / sizeof(touches[0]); i++) {
		struct facts f = read_facts(touches[i].sql);
		struct text t = { 0 };

		describe(&t, &f);
		if (strcmp(text_str(&t), touches[i].what) != 0)
			fail_msg("%s\n  gives  %s\n  not    %s", touches[i].sql,
			    text_str(&t), touches[i].what);
		text_release(&t);
		facts_release(&f);
	}
}

static void
tells_kinds(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct facts f = read_facts(kinds[i].sql);

		if (f.kind != kinds[i].kind || strcmp(f.tag, kinds[i].tag) != 0)
			fail_msg("%s: %s, %s", kinds[i].sql,
			    stmt_kind_name[f.kind], f.tag);
		facts_release(&f);
	}
}

/* Nodes that end in Stmt and are never a statement of their own. */
static bool
is_no_statement(const char *name)
{
	static const char *const names[] = { "RawStmt", "SetOperationStmt",
		"ReturnStmt", "PLAssignStmt", "ReplicaIdentityStmt" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* Whatever statement the library can parse is known by name. */
static void
knows_every_statement(void **state UNUSED)
{
	const ProtobufCMessageDescriptor *node = &pg_query__node__descriptor;
	unsigned n = 0;

	for (unsigned i = 0; i < node->n_fields; i++) {
		const ProtobufCMessageDescriptor *d =
		    node->fields[i].descriptor;
		size_t len = strlen(d->short_name);
		ProtobufCMessage *m;
		char *tag;

		if (len < 4 || strcmp(d->short_name + len - 4, "Stmt") != 0 ||
		    is_no_statement(d->short_name))
			continue;
		m = mem_new(d->sizeof_message);
		protobuf_c_message_init(d, m);
		if (classify(m, &tag) == STMT_OTHER)
			fail_msg("%s is not known", d->short_name);
		free(tag);
		free(m);
		n++;
	}
	assert_true(n > 100);
}

static void
unknown_is_other(void **state UNUSED)
{
	PgQuery__ReplicaIdentityStmt s;
	char *tag;

	pg_query__replica_identity_stmt__init(&s);
	assert_int_equal(classify(NULL, &tag), STMT_OTHER);
	free(tag);
	assert_int_equal(classify(&s.base, &tag), STMT_OTHER);
	assert_string_equal(tag, "ReplicaIdentityStmt");
	free(tag);
}

/* An empty node where the grammar puts none is something that libpg_query
 * could not say. */
static void
an_empty_node_is_opaque(void **state UNUSED)
{
	const char *sql = "SELECT DISTINCT f(1) FROM g(2)";
	struct err e = ERR_INIT;
	PgQuery__SelectStmt *s;
	struct facts f;
	struct parse p;
	long position;

	assert_int_equal(parse_text(sql, strlen(sql), &p, &position, &e), 0);
	assert_int_equal(facts_read(&p, &f, &e), 0);
	assert_false(f.opaque);
	facts_release(&f);
	s = tree_as(parse_single(&p), &pg_query__select_stmt__descriptor);
	assert_non_null(s);
	s->target_list[0]->node_case = PG_QUERY__NODE__NODE__NOT_SET;
	assert_int_equal(facts_read(&p, &f, &e), 0);
	assert_true(f.opaque);
	assert_string_equal(f.opaque_node, "target_list");
	facts_release(&f);
	p.tree->stmts[0]->stmt->node_case = PG_QUERY__NODE__NODE__NOT_SET;
	assert_int_equal(facts_read(&p, &f, &e), 0);
	assert_true(f.opaque);
	assert_int_equal(f.kind, STMT_OTHER);
	facts_release(&f);
	parse_release(&p);
}

static void
counts_statements(void **state UNUSED)
{
	static const struct {
		const char *sql;
		size_t n;
		long second;
	} cases[] = {
		{ "SELECT 1", 1, -1 },
		{ " SELECT 1 ;; -- done", 1, -1 },
		{ "SELECT 1;  DELETE FROM t", 2, 11 },
		{ "SELECT 2 /* a /* b */ */ ; DELETE FROM t", 2, 27 },
		{ "SELECT 1 /* /* nested */ ; DROP TABLE t */", 1, -1 },
		{ "SELECT $a$ $b$ $a$; DELETE FROM t; --$b$", 2, 20 },
		{ "SELECT '\\'' ; DELETE FROM t --'", 1, -1 },
		{ "SELECT /*/ ' */ 1 AS one", 1, -1 },
		{ "", 0, -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct facts f = read_facts(cases[i].sql);

		if (f.statements != cases[i].n ||
		    f.second_position != cases[i].second)
			fail_msg("%s: %zu statements, second at %ld",
			    cases[i].sql, f.statements, f.second_position);
		facts_release(&f);
	}
}

static void
names_the_target(void **state UNUSED)
{
	struct facts f = read_facts("UPDATE s.t AS \"Q\" SET a = 1");

	assert_string_equal(f.target_ref, "Q");
	assert_true(f.target_has_alias);
	assert_int_equal(f.target_position, 7);
	assert_int_equal(f.writes.v[0].position, 7);
	assert_string_equal(f.writes.v[0].schema, "s");
	facts_release(&f);
	f = read_facts("DELETE FROM U&\"\\0061ccounts\"");
	assert_string_equal(f.target_ref, "accounts");
	assert_false(f.target_has_alias);
	facts_release(&f);
	f = read_facts("SELECT 1");
	assert_null(f.target_ref);
	assert_int_equal(f.target_position, -1);
	facts_release(&f);
}

static char *
nested(const char *before, const char *one, size_t n, const char *after)
{
	struct text t = { 0 };

	text_add(&t, before);
	for (size_t i = 0; i < n; i++)
		text_add(&t, one);
	text_add(&t, after);
	return text_take(&t);
}

static void
depth_is_limited(void **state UNUSED)
{
	static const struct {
		const char *before, *one, *after;
		size_t fine, deep;
	} cases[] = {
		{ "SELECT 1", "+1", "", 450, 600 },
		{ "SELECT 1", " UNION SELECT 1", "", 450, 600 },
		{ "SELECT ", "NOT ", "true", 450, 600 },
		{ "SELECT * FROM a", " JOIN a ON true", "", 450, 600 },
		{ "SELECT ", "a OR ", "true", 600, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *fine = nested(cases[i].before, cases[i].one,
		    cases[i].fine, cases[i].after);
		char *deep = nested(cases[i].before, cases[i].one,
		    cases[i].deep, cases[i].after);
		struct facts f = read_facts(fine);
		struct err e = ERR_INIT;
		struct parse p;
		long position;
		int rc = parse_text(deep, strlen(deep), &p, &position, &e);

		facts_release(&f);
		assert_int_equal(rc, cases[i].deep != 0 ? -1 : 0);
		if (rc == -1)
			assert_int_equal(e.code, ERR_LIMIT);
		else
			parse_release(&p);
		free(fine);
		free(deep);
	}
}

static void
names_are_limited(void **state UNUSED)
{
	struct err e = ERR_INIT;
	struct text t = { 0 };
	struct facts f;
	struct parse p;
	long position;

	text_add(&t, "SELECT 1");
	for (int i = 0; i < 1001; i++)
		text_addf(&t, ", f%d()", i);
	assert_int_equal(parse_text(t.s, t.len, &p, &position, &e), 0);
	assert_int_equal(facts_read(&p, &f, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	parse_release(&p);
	text_release(&t);
}

static void
syntax_errors_have_a_place(void **state UNUSED)
{
	static const struct {
		const char *sql, *text;
		long position;
	} cases[] = {
		{ "DELETE FROM", "syntax error at end of input", 12 },
		{ "))) ((", "syntax error at or near \")\"", 1 },
		{ "SELECT 'é' FROM FROM", "syntax error at or near \"FROM\"",
		    17 },
		{ "SELECT 1 /*/", "unterminated /* comment at or near \"/*/\"",
		    10 },
		{ "ANALYZE DELETE FROM t", "syntax error at or near \"FROM\"",
		    16 },
	};
	struct err e = ERR_INIT;
	struct parse p;
	long position;
	char *sql;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse_text(cases[i].sql, strlen(cases[i].sql),
				     &p, &position, &e),
		    -1);
		assert_int_equal(e.code, ERR_INPUT);
		assert_string_equal(e.text, cases[i].text);
		assert_int_equal(position, cases[i].position);
	}
	sql = nested("SELECT '", "é", 1000, "");
	assert_int_equal(parse_text(sql, strlen(sql), &p, &position, &e), -1);
	assert_true(strlen(e.text) <= PARSE_MESSAGE_MAX);
	assert_true(strlen(e.text) >= PARSE_MESSAGE_MAX - 1);
	assert_true(text_is_utf8(e.text, strlen(e.text)));
	free(sql);
}

static struct text
packed(const struct facts *f)
{
	struct text t = { 0 };

	assert_true(facts_pack(&t, f));
	return t;
}

static bool
is_taken(const char *p, size_t n, struct facts *f)
{
	struct parcel in = { p, n };
	struct err e = ERR_INIT;

	if (facts_unpack(&in, f, &e) == -1)
		return false;
	if (in.left == 0)
		return true;
	facts_release(f);
	return false;
}

static void
same_after_crossing(void **state UNUSED)
{
	for (size_t i = 0; i < sizeof(touches) / sizeof(touches[0]); i++) {
		struct facts f = read_facts(touches[i].sql), g, h;
		struct text t = packed(&f), u;

		if (!is_taken(t.s, t.len, &g))
			fail_msg("%s", touches[i].sql);
		facts_copy(&h, &g);
		facts_release(&g);
		u = packed(&h);
		assert_string_equal(t.s, u.s);
		text_release(&t);
		text_release(&u);
		facts_release(&f);
		facts_release(&h);
	}
}

/* Each number in turn, counts and lengths too, is given other values: it is
 * refused, or is what is told again. */
static void
change_numbers(const struct text *whole)
{
	static const char *const others[] = { "-2", "-1", "0", "1", "2",
		"100001", "99999999999", "9999999999999999999", "", "x",
		"1.5" };
	enum { NOTHERS = sizeof(others) / sizeof(others[0]) };
	const char *end = whole->s + whole->len;
	struct facts g;
	size_t taken = 0;

	for (const char *at = whole->s; at < end; at++) {
		size_t n = strspn(at, "-0123456789");

		if (n == 0 || at[n] != ' ')
			continue;
		for (size_t i = 0; i < NOTHERS; i++) {
			struct text t = { 0 }, u;

			text_addn(&t, whole->s, (size_t)(at - whole->s));
			text_add(&t, others[i]);
			text_add(&t, at + n);
			if (is_taken(t.s, t.len, &g)) {
				u = packed(&g);
				assert_string_equal(t.s, u.s);
				text_release(&u);
				facts_release(&g);
				taken++;
			}
			text_release(&t);
		}
		at += n;
	}
	assert_true(taken > 0);
}

static void
what_crosses_is_checked(void **state UNUSED)
{
	struct facts f = read_facts("WITH a AS (SELECT f() FROM t) UPDATE u "
				    "SET a = 1 WHERE b = $1"),
		     g;
	struct text t = packed(&f);

	for (size_t n = 0; n < t.len; n++)
		assert_false(is_taken(t.s, n, &g));
	assert_true(is_taken(t.s, t.len, &g));
	facts_release(&g);
	text_addc(&t, ' ');
	assert_false(is_taken(t.s, t.len, &g));
	t.s[--t.len] = '\0';
	change_numbers(&t);
	/* Texts: not UTF-8, and with an end in them. */
	for (int i = 0; i < 2; i++) {
		char *tag = strstr(t.s, "UPDATE");

		assert_non_null(tag);
		tag[0] = i == 0 ? '\xff' : '\0';
		assert_false(is_taken(t.s, t.len, &g));
		tag[0] = 'U';
	}
	/* A kind of name that there is not. */
	f.functions.v[0].op = 'z';
	text_reset(&t);
	assert_true(facts_pack(&t, &f));
	assert_false(is_taken(t.s, t.len, &g));
	/* A name that is not UTF-8 must not get lost. */
	f.functions.v[0].name[0] = '\xff';
	assert_false(facts_pack(&t, &f));
	text_release(&t);
	facts_release(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_is_touched),
		cmocka_unit_test(tells_kinds),
		cmocka_unit_test(knows_every_statement),
		cmocka_unit_test(unknown_is_other),
		cmocka_unit_test(an_empty_node_is_opaque),
		cmocka_unit_test(counts_statements),
		cmocka_unit_test(names_the_target),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(names_are_limited),
		cmocka_unit_test(syntax_errors_have_a_place),
		cmocka_unit_test(same_after_crossing),
		cmocka_unit_test(what_crosses_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
