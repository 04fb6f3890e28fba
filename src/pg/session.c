/* session: the settings every link is pinned to, and the questions it is ready
 * to ask */
#include "pg/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/mem.h"
#include "base/text.h"
#include "pg/catalog.h"
#include "pg/reach.h"

/* What a setting decides; a statement may have changed it from inside. */
enum matter {
	OURS,   /* how we work; set again before each step */
	IMAGES, /* how a value is printed */
	RULES,  /* what else runs, as whom, and whether it is counted */
};

/* value NULL: not ours to set, but to look at. */
/* clang-format off */
static const struct pin {
	const char *name, *value;
	enum matter matter;
} pins[] = {
	{ "standard_conforming_strings", "on", RULES },
	{ "DateStyle", "ISO, MDY", IMAGES },
	{ "IntervalStyle", "postgres", IMAGES },
	{ "TimeZone", "UTC", IMAGES },
	{ "extra_float_digits", "1", IMAGES },
	{ "bytea_output", "hex", IMAGES },
	{ "xmloption", "content", IMAGES },
	{ "lc_monetary", "C", IMAGES },
	{ "quote_all_identifiers", "off", IMAGES }, /* regclass, our own names */
	{ "row_security", "on", RULES },
	{ "session_replication_role", NULL, RULES },
	{ "role", NULL, RULES },
	{ "session_authorization", NULL, RULES },
	{ "client_encoding", NULL, RULES },
	{ "track_counts", NULL, RULES },
	{ "synchronous_commit", "on", OURS },
	{ "default_transaction_read_only", "off", OURS },
	{ "jit", "off", OURS }, /* the probes would pay for it, not gain by it */
	/* Ours are planned once; the agent's own as the server would. */
	{ "plan_cache_mode", "auto", OURS },
};
#define NPINS (sizeof(pins) / sizeof(pins[0]))

/* Written by hand and complete: their names are what session.h says. */
static const char open_sql[] =
    "SELECT pg_catalog.pg_current_xact_id()::pg_catalog.text,"
    " pg_catalog.pg_current_xact_id()::pg_catalog.xid::pg_catalog.text,"
    " pg_catalog.pg_export_snapshot(),"
    " (pg_catalog.mxid_age('1'::pg_catalog.xid)::pg_catalog.int8 + 1)"
    "  & 4294967295,"
    " COALESCE((SELECT pg_catalog.string_agg(pg_catalog.quote_ident(s.name) ||"
    "   ', ', '' ORDER BY s.n) FROM pg_catalog.unnest("
    "   pg_catalog.current_schemas(false)) WITH ORDINALITY AS s(name, n)"
    "  WHERE s.name !~ '^pg_temp_'::pg_catalog.text), '') || 'pg_temp'";

/* pg_locks is the witness for tables, the counters for the catalogs: catalog
 * code lets its locks go early.  The transaction's snapshot shows the catalogs
 * as they were when it began; what somebody else has made, named or attached
 * since is written all the same, so that names and partitions are asked of
 * functions, which see them as they are. */
static const char counts_sql[] =
    "WITH l AS ("
    "  SELECT l.relation AS oid,"
    "   pg_catalog.string_agg(DISTINCT l.mode, ',') AS modes"
    "  FROM pg_catalog.pg_locks l"
    "  WHERE l.pid = pg_catalog.pg_backend_pid()"
    "   AND l.locktype = 'relation' AND l.granted"
    "   AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d"
    "    WHERE d.datname = pg_catalog.current_database())"
    "   AND l.mode <> 'AccessShareLock' AND l.mode <> 'RowShareLock'"
    "  GROUP BY l.relation), "
    "s AS (SELECT u.oid FROM pg_catalog.unnest(COALESCE("
    "   $1::pg_catalog.oid[], (SELECT pg_catalog.array_agg(k.oid)"
    "    FROM pg_catalog.pg_class k WHERE k.relnamespace = '11'"
    "     AND k.relkind = 'r' AND k.oid < '16384'))) AS u(oid)"
    "  WHERE pg_catalog.pg_stat_get_xact_tuples_inserted(u.oid)"
    "   + pg_catalog.pg_stat_get_xact_tuples_updated(u.oid)"
    "   + pg_catalog.pg_stat_get_xact_tuples_deleted(u.oid) > 0) "
    "SELECT x.oid, i.identity, i.kind, i.persistence, x.modes,"
    " pg_catalog.pg_stat_get_xact_tuples_inserted(x.oid),"
    " pg_catalog.pg_stat_get_xact_tuples_updated(x.oid),"
    " pg_catalog.pg_stat_get_xact_tuples_deleted(x.oid), x.catalog,"
    " CASE WHEN p.root <> x.oid THEN (SELECT r.identity FROM"
    "  pg_catalog.pg_identify_object('1259', p.root, '0') AS r) END,"
    " i.triggers, i.triggers AND (i.unseen OR EXISTS"
    "  (SELECT FROM pg_catalog.pg_trigger g"
    "   WHERE g.tgrelid = x.oid AND g.tgdeferrable)) "
    "FROM (SELECT l.oid, l.modes, false AS catalog FROM l"
    "  WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.oid = l.oid)"
    "  UNION ALL SELECT s.oid, '', true FROM s) x "
    /* by index, one by one: a table's price is not the number of tables */
    "LEFT JOIN LATERAL (SELECT k.oid, k.relkind, k.relpersistence,"
    "  k.relhastriggers FROM pg_catalog.pg_class k"
    "  WHERE k.oid = x.oid OFFSET 0) c ON true "
    "CROSS JOIN LATERAL (SELECT o.identity, COALESCE("
    "   c.relkind::pg_catalog.text, CASE o.type WHEN 'table' THEN 'r'"
    "    WHEN 'sequence' THEN 'S' WHEN 'foreign table' THEN 'f'"
    "    WHEN 'materialized view' THEN 'm' ELSE 'v' END) AS kind,"
    "   COALESCE(c.relpersistence, 'p') AS persistence,"
    "   COALESCE(c.relhastriggers, true) AS triggers,"
    "   c.oid IS NULL AS unseen"
    "  FROM pg_catalog.pg_identify_object('1259', COALESCE(c.oid, x.oid),"
    "   '0') AS o WHERE o.identity IS NOT NULL AND CASE WHEN c.oid IS NULL"
    "   THEN o.type <> 'index'"
    "   ELSE c.relkind IN ('r', 'p', 't', 'm', 'v', 'f', 'S') END) i "
    "CROSS JOIN LATERAL (SELECT"
    "  pg_catalog.pg_partition_root(x.oid)::pg_catalog.oid AS root) p "
    "ORDER BY 2";

static const char facts_sql[] =
    "SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery(),"
    " pg_catalog.current_setting('track_counts'),"
    " r.rolsuper, r.rolreplication, r.rolbypassrls, r.rolcreaterole,"
    " pg_catalog.pg_has_role(r.oid, 'pg_execute_server_program', 'MEMBER')"
    "  OR pg_catalog.pg_has_role(r.oid, 'pg_write_server_files', 'MEMBER')"
    "  OR pg_catalog.pg_has_role(r.oid, 'pg_read_server_files', 'MEMBER'),"
    " EXISTS (SELECT 1 FROM pg_catalog.pg_class c WHERE c.relowner = r.oid"
    "  AND c.relkind IN ('r', 'p') AND c.oid >= '16384'),"
    " r.rolname, pg_catalog.current_database(),"
    " (SELECT system_identifier FROM pg_catalog.pg_control_system()),"
    /* the control file is behind for a while after a promotion */
    " CASE WHEN pg_catalog.pg_is_in_recovery() THEN '' ELSE ('x' ||"
    "  pg_catalog.substr(pg_catalog.pg_walfile_name("
    "   pg_catalog.pg_current_wal_insert_lsn()), 1, 8))"
    "  ::pg_catalog.bit(32)::pg_catalog.int4::pg_catalog.text END,"
    " pg_catalog.pg_postmaster_start_time()::pg_catalog.text,"
    " pg_catalog.current_setting('session_replication_role') "
    "FROM pg_catalog.pg_roles r WHERE r.rolname = current_user";
/* clang-format on */

static void
add_escaped(struct text *t, const char *value)
{
	for (; *value != '\0'; value++) {
		if (*value == ' ' || *value == '\\')
			text_addc(t, '\\');
		text_addc(t, *value);
	}
}

/* pg_temp is searched first unless it is listed, so that a temporary table
 * would stand before the real one. */
static void
add_search_path(struct text *t, const char *path)
{
	text_add(t, path);
	if (strstr(path, "pg_temp") == NULL)
		text_add(t, *path != '\0' ? ", pg_temp" : "pg_temp");
}

char *
session_startup(const struct session_options *o)
{
	struct text t = { 0 }, path = { 0 };

	for (size_t i = 0; i < NPINS; i++) {
		if (pins[i].value == NULL)
			continue;
		text_addf(&t, "-c %s=", pins[i].name);
		add_escaped(&t, pins[i].value);
		text_addc(&t, ' ');
	}
	text_add(&t, "-c plan_cache_mode=force_generic_plan ");
	add_search_path(&path, o->search_path);
	text_add(&t, "-c search_path=");
	add_escaped(&t, text_str(&path));
	text_addf(&t, " -c lock_timeout=%d -c statement_timeout=%d",
	    o->lock_timeout_ms, o->statement_timeout_ms);
	text_add(&t, " -c idle_in_transaction_session_timeout=60000");
	text_release(&path);
	return text_take(&t);
}

/* What each setting was, in the order of pins and then the path, before it is
 * set: a target list is worked off from left to right. */
static void
add_pin(struct text *t)
{
	text_add(t,
	    "PREPARE " SESSION_PIN "(text, text, text, text, text) AS SELECT");
	for (size_t i = 0; i < NPINS; i++)
		text_addf(t, " pg_catalog.current_setting('%s'),",
		    pins[i].name);
	text_add(t, " pg_catalog.current_setting('search_path'),"
		    " pg_catalog.set_config('lock_timeout', $1, true),"
		    " pg_catalog.set_config('statement_timeout', $2, true),"
		    " pg_catalog.set_config("
		    "'idle_in_transaction_session_timeout', $3, true),"
		    " pg_catalog.set_config('application_name', $4, true),"
		    " pg_catalog.set_config('search_path', $5, true)");
	for (size_t i = 0; i < NPINS; i++)
		if (pins[i].value != NULL &&
		    strcmp(pins[i].name, "default_transaction_read_only") != 0)
			text_addf(t,
			    ", pg_catalog.set_config('%s', '%s', true)",
			    pins[i].name, pins[i].value);
}

enum session_moved
session_moved(const struct batch *b, size_t was, size_t is,
    const char *search_path, const char **name)
{
	const char *path = batch_cell(b, is, 0, NPINS);
	enum session_moved moved = SESSION_SAME;

	*name = NULL;
	for (size_t i = 0; i < NPINS; i++) {
		const char *before = pins[i].value != NULL
		                         ? pins[i].value
		                         : batch_cell(b, was, 0, (int)i);
		const char *after = batch_cell(b, is, 0, (int)i);

		if (pins[i].matter == OURS ||
		    (before != NULL && after != NULL &&
			strcmp(before, after) == 0))
			continue;
		*name = pins[i].name;
		if (pins[i].matter == RULES)
			return SESSION_RULES;
		moved = SESSION_IMAGES;
	}
	if (path != NULL && strcmp(path, search_path) == 0)
		return moved;
	*name = "search_path";
	return SESSION_IMAGES;
}

#define NPREPARED 6

/* What this session has prepared, in the order of their names. */
static void
add_texts(struct text t[NPREPARED])
{
	text_addf(&t[0], "PREPARE " SESSION_COUNTS "(oid[]) AS %s", counts_sql);
	text_addf(&t[1], "PREPARE " REACH_SESSION_NOW "(text) AS %s",
	    reach_now_sql);
	text_addf(&t[2], "PREPARE " SESSION_OPEN " AS %s", open_sql);
	add_pin(&t[3]);
	text_addf(&t[4],
	    "PREPARE " REACH_SESSION
	    "(text[], name[], oid[], oid[], oid[], text) AS %s",
	    reach_same_sql);
	text_addf(&t[5], "PREPARE " CATALOG_SESSION "(text) AS %s",
	    catalog_verify_sql);
}

void
session_prepare(struct batch *b)
{
	struct text t[NPREPARED] = { 0 };

	batch_add(b, "DEALLOCATE ALL", 0, NULL);
	add_texts(t);
	for (size_t i = 0; i < NPREPARED; i++) {
		batch_add(b, text_str(&t[i]), 0, NULL);
		text_release(&t[i]);
	}
}

/* The longest are planned before anybody waits for them. */
static void
add_prepares(struct batch *b)
{
	session_prepare(b);
	batch_add(b, "EXPLAIN EXECUTE " CATALOG_SESSION "('')", 0, NULL);
	batch_add(b, "EXPLAIN EXECUTE " SESSION_COUNTS "('{}')", 0, NULL);
	batch_add(b,
	    "EXPLAIN EXECUTE " REACH_SESSION
	    "('{}', '{}', '{}', '{}', '{}', '')",
	    0, NULL);
}

/* Settings that RESET ALL undoes, of which not every version has all.  The
 * counters are flushed when the batch ends, before any transaction of anybody's
 * begins. */
static void
add_settings(struct batch *b, const struct link *l)
{
	static const struct {
		const char *sql;
		int since;
	} settings[] = {
		{ "SET idle_session_timeout = 0", 140000 },
		{ "SET transaction_timeout = 0", 170000 },
		{ "SELECT pg_catalog.pg_stat_force_next_flush()", 150000 },
	};

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (link_server_version(l) >= settings[i].since)
			batch_add(b, settings[i].sql, 0, NULL);
	if (strcmp(link_encoding(l), "UTF8") != 0)
		batch_add(b, "SET client_encoding = 'SQL_ASCII'", 0, NULL);
	batch_sync(b);
	/* Not every system can tell that a client has gone. */
	batch_add(b, "SET client_connection_check_interval = '5s'", 0, NULL);
	batch_optional(b);
}

struct batch *
session_begin(const struct link *l)
{
	struct batch *b = batch_new();

	batch_add(b, facts_sql, 0, NULL);
	batch_sync(b);
	add_prepares(b);
	add_settings(b, l);
	return b;
}

static bool
is_true(const struct batch *b, int col)
{
	const char *v = batch_cell(b, 0, 0, col);

	return v == NULL || v[0] == 't'; /* unknown counts as the worse */
}

static void
copy_cell(char *dst, size_t size, const struct batch *b, int col)
{
	const char *v = batch_cell(b, 0, 0, col);

	snprintf(dst, size, "%s", v != NULL ? v : "");
}

static int
check_facts(const struct link *l, const struct batch *b,
    const struct session_facts *f, struct err *e)
{
	const char *pid = batch_cell(b, 0, 0, 0);
	const char *role = batch_cell(b, 0, 0, 14);

	if (pid == NULL || strtol(pid, NULL, 10) != link_backend_pid(l))
		return err_set(e, ERR_UNFIT,
		    "a connection pooler stands between Airlock and the "
		    "server: connect to the server itself");
	if (f->standby)
		return err_set(e, ERR_UNFIT,
		    "the server is a standby: connect to the primary");
	if (!f->track_counts)
		return err_set(e, ERR_UNFIT,
		    "the server's track_counts is off, and without it no diff "
		    "can be proved complete: set it on");
	if (role == NULL || strcmp(role, "origin") != 0)
		return err_set(e, ERR_UNFIT,
		    "the login's session_replication_role is '%.20s', under "
		    "which triggers and foreign keys do not act: leave it at "
		    "origin",
		    role != NULL ? role : "");
	return link_check_pins(l, e);
}

int
session_began(const struct link *l, const struct batch *b,
    struct session_facts *f, struct err *e)
{
	const char *counts = batch_cell(b, 0, 0, 2);

	if (batch_is_lost(b)) {
		*e = *batch_err(b);
		return -1;
	}
	if (batch_state(b, 0) != BATCH_OK || batch_ntuples(b, 0) != 1)
		return err_set(e, ERR_DATABASE,
		    "cannot ask about the session: %s",
		    result_message(batch_result(b, 0)));
	memset(f, 0, sizeof(*f));
	f->version = link_server_version(l);
	f->standby = is_true(b, 1);
	f->track_counts = counts != NULL && strcmp(counts, "on") == 0;
	f->superuser = is_true(b, 3);
	f->replication = is_true(b, 4);
	f->bypassrls = is_true(b, 5);
	f->createrole = is_true(b, 6);
	f->server_files = is_true(b, 7);
	f->owns_tables = is_true(b, 8);
	copy_cell(f->user, sizeof(f->user), b, 9);
	copy_cell(f->database, sizeof(f->database), b, 10);
	copy_cell(f->system, sizeof(f->system), b, 11);
	copy_cell(f->timeline, sizeof(f->timeline), b, 12);
	copy_cell(f->started, sizeof(f->started), b, 13);
	/* First: what is wrong here may be why something else failed. */
	if (check_facts(l, b, f, e) == -1)
		return -1;
	if (!batch_is_ok(b))
		return err_set(e, ERR_DATABASE,
		    "cannot prepare the session: %s",
		    result_message(batch_result(b, batch_failed(b))));
	return 0;
}

bool
session_is_same_server(const struct session_facts *a,
    const struct session_facts *b)
{
	return strcmp(a->system, b->system) == 0 &&
	       strcmp(a->timeline, b->timeline) == 0 &&
	       strcmp(a->started, b->started) == 0;
}

bool
session_can_clean(const struct link *l)
{
	return link_server_version(l) >= 150000;
}

/* What is prepared, as the server adds it up; a text of anybody else's that
 * cannot be had in UTF-8 is an error, and that is not the same either. */
#define PREPARED                                                               \
	"pg_catalog.sha256(pg_catalog.convert_to("                             \
	"pg_catalog.string_agg(p.statement, '' ORDER BY p.name), 'UTF8'))"     \
	" = $1::pg_catalog.bytea"

/* The same of all that session_begin prepares, as a bytea's text. */
static const char *
prepared(void)
{
	static char sum[2 + DIGEST_HEX_SIZE];
	struct text all = { 0 }, t[NPREPARED] = { 0 };

	if (sum[0] != '\0')
		return sum;
	add_texts(t);
	for (size_t i = 0; i < NPREPARED; i++) {
		text_add(&all, text_str(&t[i]));
		text_release(&t[i]);
	}
	memcpy(sum, "\\x", 2);
	digest_hex(sum + 2, text_str(&all), all.len);
	text_release(&all);
	return sum;
}

/* What a ROLLBACK leaves of what a statement did to its session: advisory
 * locks, let go here, statements prepared or replaced, what random() gives
 * next, counters that would be added to those of the next transaction, and the
 * last values of sequences.  Asked as a text: what is prepared cannot vouch for
 * itself. */
static size_t
look_over(struct batch *b)
{
	static const char sql[] =
	    "SELECT " PREPARED ", pg_catalog.pg_advisory_unlock_all(),"
	    " pg_catalog.setseed($2::pg_catalog.float8),"
	    " pg_catalog.pg_stat_force_next_flush() "
	    "FROM pg_catalog.pg_prepared_statement() AS p";
	char seed[16];
	const char *values[] = { prepared(), seed };
	uint32_t any;
	size_t i;

	mem_random(&any, sizeof(any));
	snprintf(seed, sizeof(seed), "0.%010" PRIu32, any);
	i = batch_add(b, sql, 2, values);
	batch_optional(b);
	batch_add(b, "DISCARD SEQUENCES", 0, NULL);
	batch_optional(b);
	return i;
}

size_t
session_vouch(struct batch *b)
{
	static const char sql[] = "SELECT " PREPARED " AND NOT " SESSION_HOLDS
				  " FROM pg_catalog.pg_prepared_statement() "
				  "AS p WHERE p.name ~ '^airlock_'";
	const char *values[] = { prepared() };

	return batch_add(b, sql, 1, values);
}

bool
session_vouched(const struct batch *b, size_t i)
{
	const char *same = batch_cell(b, i, 0, 0);

	return batch_state(b, i) == BATCH_OK && same != NULL && same[0] == 't';
}

bool
session_misses(const struct batch *b)
{
	size_t failed = batch_failed(b);

	return failed != (size_t)-1 &&
	       strcmp(result_sqlstate(batch_result(b, failed)), "26000") == 0;
}

struct batch *
session_unwind(size_t *looked)
{
	struct batch *b = batch_new();

	batch_add(b, "ROLLBACK", 0, NULL); /* does not fail */
	if (looked != NULL)
		*looked = look_over(b);
	return b;
}

bool
session_is_as_begun(const struct link *l, const struct batch *b, size_t i)
{
	const char *same = batch_cell(b, i, 0, 0);

	return !batch_is_lost(b) && batch_state(b, i) == BATCH_OK &&
	       batch_state(b, i + 1) == BATCH_OK && same != NULL &&
	       same[0] == 't' && link_transaction(l) == PQTRANS_IDLE;
}

/* DISCARD ALL but for what is prepared, which is looked at instead: to prepare
 * and to plan it again would cost more than all else. */
struct batch *
session_clean(const struct link *l, size_t *looked)
{
	static const char *const discard[] = {
		"SET SESSION AUTHORIZATION DEFAULT",
		"RESET ALL",
		"CLOSE ALL",
		"UNLISTEN *",
		"DISCARD TEMP",
	};
	struct batch *b = batch_new();

	if (link_transaction(l) != PQTRANS_IDLE) {
		batch_add(b, "ROLLBACK", 0, NULL);
		batch_sync(b);
	}
	for (size_t i = 0; i < sizeof(discard) / sizeof(discard[0]); i++)
		batch_add(b, discard[i], 0, NULL);
	*looked = look_over(b);
	add_settings(b, l);
	return b;
}

struct batch *
session_renew(const struct link *l)
{
	struct batch *b = batch_new();

	batch_add(b, "DISCARD ALL", 0, NULL);
	batch_sync(b);
	add_prepares(b);
	add_settings(b, l);
	return b;
}
