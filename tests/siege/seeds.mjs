// seeds: the red cases, the calls that reach outside, and user functions that lie
import { coverage, fixture, load } from '../e2e/lib/cases.mjs';

// What the statements find: the fixture of the red cases, that of the field
// cases, and functions whose labels do not say what they do.
export const setup = `${fixture}
-- as many as tell the cases apart: each write and each comparison is of every row
DELETE FROM scan_event WHERE scan_id > 500; DELETE FROM parcel WHERE parcel_id > 500;
DELETE FROM contract WHERE contract_id > 300; DELETE FROM locker WHERE locker_id > 300; DELETE FROM ops.parcel;
INSERT INTO ops.parcel SELECT 1, 'n' FROM generate_series(1, 50);
CREATE TABLE accounts(id int PRIMARY KEY, owner text, balance numeric(12,2));
INSERT INTO accounts VALUES (1,'ann',100),(2,'bob',50),(3,'cy',0);
CREATE TABLE sessions(id int PRIMARY KEY, ok bool); INSERT INTO sessions SELECT g, g%2=0 FROM generate_series(1,20) g;
CREATE TABLE t(id int PRIMARY KEY, s text); CREATE TABLE audit(a int); CREATE TABLE users(id int PRIMARY KEY);
CREATE SCHEMA evil;
CREATE FUNCTION evil.abs(int) RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $f$ BEGIN RETURN pg_read_file('PG_VERSION'); END $f$;
CREATE FUNCTION evil.upper(x text) RETURNS text LANGUAGE sql VOLATILE AS $f$ SELECT pg_read_file('PG_VERSION') $f$;
CREATE FUNCTION wild() RETURNS int LANGUAGE plpgsql VOLATILE AS $f$ BEGIN DELETE FROM invoice; PERFORM pg_advisory_lock(501); RETURN 1; END $f$;
CREATE FUNCTION wild_rows() RETURNS SETOF int LANGUAGE plpgsql VOLATILE AS $f$ BEGIN DELETE FROM invoice; RETURN NEXT 1; END $f$;
CREATE FUNCTION wild_card(depot) RETURNS text LANGUAGE plpgsql VOLATILE AS $f$ BEGIN PERFORM pg_advisory_lock(502); RETURN 'x'; END $f$;
CREATE FUNCTION wild_sum(int, int) RETURNS int LANGUAGE plpgsql VOLATILE AS $f$ BEGIN PERFORM pg_advisory_lock(503); RETURN $2; END $f$;
CREATE FUNCTION wild_less(int, int) RETURNS bool LANGUAGE plpgsql VOLATILE AS $f$ BEGIN PERFORM pg_advisory_lock(504); RETURN true; END $f$;
CREATE FUNCTION wild_cast(depot) RETURNS text LANGUAGE plpgsql VOLATILE AS $f$ BEGIN PERFORM pg_advisory_lock(505); RETURN ''; END $f$;
CREATE AGGREGATE wild_agg(int) (SFUNC = wild_sum, STYPE = int, INITCOND = '0');
CREATE OPERATOR <<<# (LEFTARG = int, RIGHTARG = int, FUNCTION = wild_less);
CREATE OPERATOR evil.= (LEFTARG = int, RIGHTARG = int, FUNCTION = wild_less);
CREATE CAST (depot AS text) WITH FUNCTION wild_cast(depot);
CREATE FUNCTION wild_name(depot) RETURNS varchar LANGUAGE plpgsql VOLATILE AS $f$ BEGIN PERFORM pg_advisory_lock(506); RETURN ''; END $f$;
CREATE CAST (depot AS varchar) WITH FUNCTION wild_name(depot);
CREATE DOMAIN wild_text AS text;
CREATE FUNCTION wild_both(depot, depot) RETURNS bool LANGUAGE plpgsql VOLATILE AS $f$ BEGIN PERFORM pg_advisory_lock(507); RETURN true; END $f$;
CREATE OPERATOR %%# (LEFTARG = depot, RIGHTARG = depot, FUNCTION = wild_both);
CREATE FUNCTION wild_many(depot[], int) RETURNS bool LANGUAGE plpgsql VOLATILE AS $f$ BEGIN PERFORM pg_advisory_lock(508); RETURN true; END $f$;
CREATE OPERATOR @@# (LEFTARG = depot[], RIGHTARG = int, FUNCTION = wild_many);
CREATE VIEW wild_view AS SELECT wild() AS w;
CREATE VIEW wild_cards AS SELECT wild_card(d) AS w FROM depot d;
CREATE FUNCTION liar_lock(int) RETURNS int LANGUAGE plpgsql STABLE AS $f$ BEGIN PERFORM pg_advisory_lock($1); RETURN $1; END $f$;
CREATE FUNCTION liar_same(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN PERFORM pg_advisory_lock($1); RETURN $1; END $f$;
CREATE FUNCTION liar_set() RETURNS text LANGUAGE sql STABLE AS $f$ SELECT set_config('search_path', 'evil, public', false) $f$;
CREATE FUNCTION liar_note() RETURNS int LANGUAGE plpgsql STABLE AS $f$ BEGIN PERFORM pg_notify('siege', 'x'); RETURN 1; END $f$;
CREATE FUNCTION liar_blob() RETURNS oid LANGUAGE plpgsql STABLE AS $f$ BEGIN RETURN lo_create(0); END $f$;
CREATE FUNCTION liar_write() RETURNS int LANGUAGE plpgsql STABLE AS $f$ BEGIN EXECUTE 'DELETE FROM invoice'; RETURN 1; END $f$;
CREATE FUNCTION liar_call() RETURNS int LANGUAGE sql STABLE AS $f$ SELECT wild() $f$;
CREATE FUNCTION liar_temp() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN EXECUTE 'CREATE TEMP TABLE parcel(a int) ON COMMIT PRESERVE ROWS'; RETURN 1; END $f$;
CREATE FUNCTION liar_role() RETURNS int LANGUAGE plpgsql STABLE AS $f$ BEGIN EXECUTE 'SET ROLE f_other'; RETURN 1; END $f$;
CREATE FUNCTION liar_prep() RETURNS int LANGUAGE plpgsql STABLE AS $f$ BEGIN EXECUTE 'PREPARE siege_p AS SELECT 1'; RETURN 1; END $f$;
CREATE FUNCTION liar_listen() RETURNS int LANGUAGE plpgsql STABLE AS $f$ BEGIN EXECUTE 'LISTEN siege'; RETURN 1; END $f$;
`;

// Whether dblink is there is the server's own matter.
export const extensions = `DO $$ BEGIN IF EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'dblink') THEN
	CREATE EXTENSION dblink; END IF; END $$;`;

// Calls that reach outside: refused by both tools, wherever they stand.
// VICTIM is the pid of another session of the same role.
export const scalars = `
pg_sleep(30) | pg_sleep_for('30 s') | pg_sleep_until(now() + interval '30 s') | pg_advisory_lock(77) | pg_advisory_lock(7, 7)
pg_try_advisory_lock(77) | pg_advisory_lock_shared(78) | pg_advisory_xact_lock(79) | pg_advisory_unlock_all()
set_config('search_path', 'ops', false) | set_config('standard_conforming_strings', 'off', false)
set_config('transaction_read_only', 'off', true) | set_config('role', 'f_other', false)
pg_read_file('postgresql.conf') | pg_read_file('postgresql.conf', 0, 10) | pg_read_binary_file('PG_VERSION')
pg_stat_file('PG_VERSION') | pg_terminate_backend(VICTIM) | pg_cancel_backend(VICTIM) | pg_reload_conf() | pg_rotate_logfile()
setval('ticket_no', 1) | setval('ticket_no', 99, true) | pg_notify('siege', 'in') | lo_create(0) | lo_creat(-1)
lo_import('/etc/hostname') | lo_from_bytea(0, 'x') | lo_unlink(1) | lo_put(1, 0, 'x') | lo_export(1, '/tmp/airlock_case_siege')
pg_switch_wal() | pg_create_restore_point('siege') | pg_export_snapshot() | pg_logical_emit_message(false, 'siege', 'x')
pg_create_physical_replication_slot('siege') | pg_create_physical_replication_slot('siege', true)
pg_create_logical_replication_slot('siege', 'pgoutput') | pg_replication_origin_create('siege') | pg_stat_reset()
pg_stat_reset_shared('bgwriter') | pg_stat_reset_slru('notify') | pg_log_backend_memory_contexts(VICTIM) | setseed(0.5)
query_to_xml('DELETE FROM invoice', true, true, '') | query_to_xml('SELECT pg_advisory_lock(80)', true, true, '')
query_to_xmlschema('SELECT 1', true, true, '') | query_to_xml_and_xmlschema('SELECT lo_create(0)', true, true, '')
table_to_xml('vault_key', true, true, '') | schema_to_xml('hr', true, true, '') | database_to_xml(true, true, '')
ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, lo_create(0)::text::tsquery')
dblink_exec(DBLINK, 'DELETE FROM accounts') | dblink_connect('siege', DBLINK) | dblink_send_query('siege', 'SELECT 1')
pg_promote(false) | pg_import_system_collations('public') | brin_summarize_new_values('depot_pkey')
binary_upgrade_set_next_pg_authid_oid(1) | pg_file_write('x', 'y', true)`.trim().split(/ \| |\n/);

export const rows = ['pg_ls_dir(\'.\')', 'pg_ls_waldir()', 'pg_ls_logdir()', 'pg_ls_tmpdir()', 'pg_hba_file_rules()',
	'ts_stat(\'SELECT lo_create(0)::text::tsvector\')', 'pg_show_all_file_settings()',
	'pg_logical_slot_get_changes(\'siege\', NULL, NULL)'];

// A user's own VOLATILE functions by every way that they can be reached:
// no read for db_query.
export const volatile = ['SELECT wild()', 'SELECT public.wild()', 'SELECT * FROM wild_rows()', 'SELECT w FROM wild_view',
	'TABLE wild_view', 'SELECT w FROM wild_cards', 'SELECT count(w) FROM wild_cards', 'SELECT wild_agg(depot_id) FROM depot', 'SELECT d.wild_card FROM depot d', 'SELECT (d).wild_card FROM depot d',
	'SELECT wild_card FROM depot', 'SELECT (SELECT d.wild_card) FROM depot d',
	'SELECT depot_id FROM depot WHERE depot_id <<<# 3', 'SELECT 1 OPERATOR(public.<<<#) 2', 'SELECT 1 OPERATOR(evil.=) 2',
	'SELECT d.text FROM depot d', 'SELECT text(d) FROM depot d',
	'SELECT depot_id FROM depot WHERE depot_id <<<# ANY (ARRAY[1,2])', 'SELECT sum(depot_id) FILTER (WHERE wild() = 1) FROM depot',
	'SELECT wild_agg(depot_id) OVER () FROM depot', 'SELECT evil.abs(1)', 'SELECT evil.upper(\'a\')', 'EXPLAIN SELECT * FROM wild_view',
	'EXPLAIN ANALYZE SELECT * FROM wild_view', 'SELECT (ROW(1, \'a\', \'b\')::depot).wild_card',
	'SELECT 1 FROM depot d GROUP BY d.wild_card', 'SELECT a.depot_id FROM depot a JOIN depot b ON a.depot_id <<<# b.depot_id'];

// A cast's function is named nowhere in the statement.
export const casts = ['SELECT d::text FROM depot d', 'SELECT CAST(d AS text) FROM depot d', 'SELECT count(d::text) FROM depot d',
	'SELECT 1 FROM depot d WHERE d::text = \'\'', 'SELECT concat(d::text) FROM depot d', 'SELECT d::varchar FROM depot d',
	'SELECT CAST(d AS character varying(3)) FROM depot d', 'SELECT (ARRAY[d])[1]::text FROM depot d', 'SELECT x::text FROM (SELECT d FROM depot d) AS s(x)',
	'SELECT d::wild_text FROM depot d', 'SELECT \'a\' || d FROM depot d WHERE d %%# d', 'SELECT ARRAY[d] @@# 1 FROM depot d'];

// Labelled STABLE or IMMUTABLE: they may be called, but must not leave a trace.
export const liars = ['liar_lock(601)', 'liar_same(602)', 'liar_set()', 'liar_note()', 'liar_blob()', 'liar_write()',
	'liar_call()', 'liar_temp()', 'liar_role()', 'liar_prep()', 'liar_listen()'];

const fields = [...load('field')].filter(c => c.area === 'readonly' || c.area === 'parser')
	.flatMap(c => [c.agent_sql].flat().map((sql, i) => ({ id: `${c.id}.${i}`, sql: sql.replace(/ \.\.\. \(.*/, '') })));

export const reds = load('red').map(c => ({ id: c.id, sql: c.sql, outcome: coverage.red[c.id].split(' ') }));
export { fields };
