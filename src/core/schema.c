/* schema: what there is to read and write, as an agent is shown it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/internal.h"
#include "core/nearest.h"

#define TABLES_MAX 200

struct schema {
	struct call call;
	struct gate *gate;
	struct agent *agent;
	struct pool *pool;
	outcome_done *done;
	void *arg;
	char *table;             /* NULL: the list */
	struct nearest *nearest; /* names are being looked for */
	struct reply reply;      /* what is told with them */
};

/* clang-format off */
static const char list_sql[] =
    "SELECT pg_catalog.json_build_object('tables', COALESCE((SELECT"
    "  pg_catalog.json_agg(pg_catalog.json_strip_nulls("
    "   pg_catalog.json_build_object('table', t.name, 'kind', t.kind,"
    "    'rows', t.rows, 'columns', t.columns, 'comment', t.comment)))"
    " FROM (SELECT pg_catalog.quote_ident(n.nspname) || '.' ||"
    "   pg_catalog.quote_ident(c.relname) AS name,"
    "  CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'"
    "   WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' END"
    "   AS kind,"
    "  CASE WHEN c.reltuples >= '0' THEN c.reltuples::pg_catalog.int8 END"
    "   AS rows,"
    "  (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(a.attname) || ' '"
    "    || pg_catalog.format_type(a.atttypid, a.atttypmod) ||"
    "    CASE WHEN i.indrelid IS NOT NULL THEN ' key' ELSE '' END, ', '"
    "    ORDER BY a.attnum)"
    "   FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_index i"
    "    ON i.indrelid = a.attrelid AND i.indisprimary"
    "    AND a.attnum = ANY (i.indkey::pg_catalog.int2[])"
    "   WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)"
    "   AS columns,"
    "  pg_catalog.obj_description(c.oid, 'pg_class') AS comment"
    "  FROM pg_catalog.pg_class c"
    "  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    "  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition"
    "   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"
    "   AND n.nspname !~ '^pg_(temp|toast_temp)_'::pg_catalog.text"
    "   AND (pg_catalog.has_table_privilege(c.oid,"
    "     'SELECT, INSERT, UPDATE, DELETE')"
    "    OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT'))"
    "  ORDER BY n.nspname, c.relname LIMIT $1::pg_catalog.int4) t),"
    " '[]'::pg_catalog.json))";

static const char table_sql[] =
    "SELECT pg_catalog.json_strip_nulls(pg_catalog.json_build_object("
    "'table', pg_catalog.quote_ident(n.nspname) || '.' ||"
    " pg_catalog.quote_ident(c.relname),"
    "'kind', CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view'"
    " WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table'"
    " WHEN 'p' THEN 'partitioned table' END,"
    "'rows', CASE WHEN c.reltuples >= '0' THEN c.reltuples::pg_catalog.int8 END,"
    "'comment', pg_catalog.obj_description(c.oid, 'pg_class'),"
    "'row_security', CASE WHEN pg_catalog.row_security_active(c.oid)"
    " THEN true END,"
    "'you_may', (SELECT pg_catalog.json_agg(p) FROM pg_catalog.unnest("
    "  '{SELECT,INSERT,UPDATE,DELETE}'::pg_catalog.text[]) AS p"
    " WHERE pg_catalog.has_table_privilege(c.oid, p)),"
    "'columns', (SELECT pg_catalog.json_agg(pg_catalog.json_strip_nulls("
    "  pg_catalog.json_build_object('name', a.attname,"
    "   'type', pg_catalog.format_type(a.atttypid, a.atttypmod),"
    "   'not_null', CASE WHEN a.attnotnull THEN true END,"
    "   'default', pg_catalog.pg_get_expr(d.adbin, d.adrelid),"
    "   'generated', CASE WHEN a.attgenerated <> '' THEN true END,"
    "   'identity', CASE a.attidentity WHEN 'a' THEN 'always'"
    "    WHEN 'd' THEN 'by default' END,"
    "   'comment', pg_catalog.col_description(c.oid, a.attnum)))"
    "  ORDER BY a.attnum)"
    " FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d"
    "  ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
    " WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),"
    "'constraints', (SELECT pg_catalog.json_agg(k.conname::pg_catalog.text || ': ' ||"
    "  pg_catalog.pg_get_constraintdef(k.oid) ORDER BY k.conname)"
    " FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid),"
    "'referenced_by', (SELECT pg_catalog.json_agg("
    "  k.conrelid::pg_catalog.regclass::pg_catalog.text || ': ' ||"
    "  pg_catalog.pg_get_constraintdef(k.oid) ORDER BY k.conname)"
    " FROM pg_catalog.pg_constraint k WHERE k.confrelid = c.oid"
    "  AND k.conparentid = '0'),"
    "'indexes', (SELECT pg_catalog.json_agg("
    "  pg_catalog.pg_get_indexdef(i.indexrelid) ORDER BY i.indexrelid)"
    " FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid),"
    "'triggers', (SELECT pg_catalog.json_agg("
    "  pg_catalog.pg_get_triggerdef(t.oid) ORDER BY t.tgname)"
    " FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid"
    "  AND NOT t.tgisinternal))) "
    "FROM pg_catalog.pg_class c "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.oid = pg_catalog.to_regclass($1)::pg_catalog.oid"
    " AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"
    " AND (pg_catalog.has_table_privilege(c.oid,"
    "   'SELECT, INSERT, UPDATE, DELETE')"
    "  OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT'))";
/* clang-format on */

static void
finish(struct schema *s, bool ok, struct reply *reply, json_t *json)
{
	outcome_done *done = s->done;
	void *arg = s->arg;

	s->agent->calls--;
	free(s->table);
	free(s);
	change_told(done, arg, ok, reply->code, text_str(&reply->text), json);
	reply_release(reply);
}

static void
named(void *arg, const char *names)
{
	struct schema *s = arg;
	struct reply reply = s->reply;

	if (*names != '\0')
		text_addf(&reply.text, ". Names near it: %s", names);
	text_add(&reply.text, ". Call db_schema without arguments for the list "
			      "of tables");
	finish(s, false, &reply, NULL);
}

static void
no_such_table(struct schema *s)
{
	struct reply *reply = &s->reply;

	snprintf(reply->code, sizeof(reply->code), "42P01");
	text_add(&reply->text, "ERROR 42P01: relation \"");
	text_quote(&reply->text, s->table, strlen(s->table));
	text_add(&reply->text, "\" does not exist, or is not open to this "
			       "agent");
	s->nearest =
	    nearest_ask(s->pool, reply->code, s->table, NULL, named, s);
}

/* One name that is not UTF-8 is shown so; the rest is as it is. */
static json_t *
parse(const char *text)
{
	struct text t = { 0 };
	json_t *json;

	text_add_utf8(&t, text, strlen(text));
	json = json_loads(text_str(&t), JSON_ALLOW_NUL, NULL);
	text_release(&t);
	return json;
}

static void
described(void *arg, struct link *l UNUSED, struct batch *b)
{
	struct schema *s = arg;
	struct reply reply = { 0 };
	const char *text;
	json_t *json = NULL;

	if (batch_is_lost(b)) {
		reply_link(&reply, batch_err(b), false);
		finish(s, false, &reply, NULL);
		return;
	}
	if (!batch_is_ok(b)) {
		reply_server(&reply, batch_result(b, batch_failed(b)), NULL,
		    NULL, NULL, 0);
		finish(s, false, &reply, NULL);
		return;
	}
	text = batch_cell(b, 0, 0, 0);
	if (text == NULL && s->table != NULL) {
		no_such_table(s);
		return;
	}
	if (text == NULL || (json = parse(text)) == NULL)
		reply_reason(&reply, REASON_UNAVAILABLE,
		    "the catalog's answer is not understood");
	if (json != NULL && s->table == NULL) {
		size_t n = json_array_size(json_object_get(json, "tables"));

		json_object_set_new(json, "truncated",
		    json_boolean(n >= TABLES_MAX));
		json_object_set_new(json, "access",
		    json_string(access_name[s->agent->o->access]));
	}
	finish(s, json != NULL, &reply, json);
}

static void
cancel(struct call *call)
{
	struct schema *s =
	    (struct schema *)(void *)((char *)call -
				      offsetof(struct schema, call));

	nearest_cancel(s->nearest);
	reply_release(&s->reply);
	pool_forget(s->pool, s);
	s->agent->calls--;
	free(s->table);
	free(s);
}

struct call *
schema_run(struct gate *g, struct agent *a, const char *table,
    outcome_done *done, void *arg)
{
	struct schema *s = mem_new(sizeof(*s));
	struct batch *b = batch_new();
	const char *values[1];
	char *max = mem_printf("%d", TABLES_MAX);

	s->call.cancel = cancel;
	s->gate = g;
	s->agent = a;
	s->done = done;
	s->arg = arg;
	s->pool = ((struct agent_logins *)a->links)->reader->pool;
	s->table = table != NULL ? mem_strdup(table) : NULL;
	a->calls++;
	values[0] = table != NULL ? table : max;
	batch_add_kept(b, table != NULL ? table_sql : list_sql, 1, values);
	pool_ask(s->pool, b, described, s);
	free(max);
	return &s->call;
}
