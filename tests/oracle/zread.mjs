// zread: reads that leave something (not kept)
import { Cluster } from '../e2e/lib/cluster.mjs';
import { Daemon } from '../e2e/lib/daemon.mjs';
import { FastAgent, FastOperator } from './client.mjs';
const cluster = await Cluster.start({ settings: { fsync: 'off' } });
const lies = {
	deall: `EXECUTE 'DEALLOCATE ALL';`,
	replace: `FOR r IN SELECT name, statement, array_length(parameter_types, 1) n FROM pg_prepared_statements LOOP EXECUTE 'DEALLOCATE ' || quote_ident(r.name); BEGIN EXECUTE 'PREPARE ' || quote_ident(r.name) || CASE WHEN r.n > 0 THEN '(' || (SELECT string_agg('text', ',') FROM generate_series(1, r.n)) || ')' ELSE '' END || ' AS SELECT NULL::text, 1, 2, 3'; EXCEPTION WHEN others THEN NULL; END; END LOOP;`,
	prepmany: `FOR i IN 1..300 LOOP BEGIN EXECUTE 'PREPARE airlock_' || i || ' AS SELECT 666'; EXCEPTION WHEN others THEN NULL; END; END LOOP;`,
	seed: `PERFORM setseed(0.25);`,
	gucl: `PERFORM set_config('my.local', 'x', true);`,
	gucs: `PERFORM set_config('my.sess', 'x', false);`,
	path: `PERFORM set_config('search_path', 'evil,public', false); PERFORM set_config('DateStyle', 'German', false); PERFORM set_config('extra_float_digits', '-15', false); PERFORM set_config('statement_timeout', '1', false);`,
	pathl: `PERFORM set_config('search_path', 'evil,public', true); PERFORM set_config('TimeZone', 'Asia/Tokyo', true);`,
	adv: `PERFORM pg_advisory_lock(4711); PERFORM pg_advisory_lock_shared(1, 2);`,
	listen: `EXECUTE 'LISTEN zzz'; EXECUTE 'NOTIFY zzz, ''hello''';`,
	discard: `EXECUTE 'DISCARD PLANS'; EXECUTE 'DISCARD SEQUENCES';`,
	discardtemp: `EXECUTE 'DISCARD TEMP';`,
	hold: `EXECUTE 'DECLARE zc CURSOR WITH HOLD FOR SELECT 1';`,
	chars: `EXECUTE 'SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE, ISOLATION LEVEL SERIALIZABLE';`,
	resetall: `EXECUTE 'RESET ALL';`,
	enc: `PERFORM set_config('client_encoding', 'LATIN1', false);`,
	encl: `PERFORM set_config('client_encoding', 'SQL_ASCII', true);`,
	role: `PERFORM set_config('role', 'other', false);`,
	scs: `PERFORM set_config('standard_conforming_strings', 'off', true);`,
	lo: `PERFORM lo_create(424242);`,
	nexts: `PERFORM nextval('sq');`,
	tmp: `EXECUTE 'CREATE TEMP TABLE t(x int)';`,
	rw: `PERFORM set_config('transaction_read_only', 'off', true); INSERT INTO t VALUES (99, 0, 'x');`,
	subrw: `BEGIN EXECUTE 'SET TRANSACTION READ WRITE'; INSERT INTO t VALUES (98, 0, 'x'); EXCEPTION WHEN others THEN NULL; END;`,
	commit: `EXECUTE 'COMMIT';`, prep2: `EXECUTE 'PREPARE TRANSACTION ''x''';`,
	load: `EXECUTE 'LOAD ''plpgsql''';`,
	planmode: `PERFORM set_config('plan_cache_mode', 'force_generic_plan', false); PERFORM set_config('enable_seqscan', 'off', false);`,
	cursor: `EXECUTE 'DECLARE airlock CURSOR FOR SELECT 1'; EXECUTE 'DECLARE airlock_1 CURSOR FOR SELECT 1';`,
	emit: `PERFORM pg_logical_emit_message(true, 'a', 'b');`,
	savep: `EXECUTE 'SAVEPOINT airlock'`.concat(';'),
	notice: `FOR i IN 1..2000 LOOP RAISE NOTICE '%', repeat('n', 1000); END LOOP;`,
	warn: `RAISE WARNING E'\\x01\\n{"jsonrpc":1}';`,
};
const setup = `CREATE ROLE other; CREATE TABLE t(id int PRIMARY KEY, a int, b text); INSERT INTO t SELECT g, g, 'b' || g FROM generate_series(1, 6) g;
 CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO public; CREATE TABLE evil.t(id int, a int, b text); INSERT INTO evil.t VALUES (666, 666, 'evil'); CREATE TABLE evil.pg_class(x int); CREATE FUNCTION evil.now() RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT chr(33)'; GRANT SELECT ON ALL TABLES IN SCHEMA evil TO public;
 CREATE SEQUENCE sq; GRANT ALL ON sq TO public; GRANT other TO app;
 ${Object.entries(lies).map(([n, b]) => `CREATE FUNCTION v_${n}() RETURNS int VOLATILE LANGUAGE plpgsql AS $f$ DECLARE r record; BEGIN ${b} RETURN 1; END $f$; CREATE FUNCTION s_${n}() RETURNS int STABLE LANGUAGE plpgsql AS $f$ BEGIN RETURN v_${n}(); END $f$; CREATE FUNCTION i_${n}() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $f$ BEGIN RETURN v_${n}(); END $f$; CREATE FUNCTION c_${n}() RETURNS int STABLE LANGUAGE plpgsql AS $f$ BEGIN PERFORM v_${n}(); RETURN 1; EXCEPTION WHEN others THEN RETURN -1; END $f$;`).join('\n')}`;
await cluster.sql("postgres", "CREATE ROLE other");
const db = await cluster.database(setup.replace("CREATE ROLE other;", ""));
const daemon = await Daemon.start({ config: `[airlock]\noperator_guard = off\nrefusals_max = 0\n[database d]\nwriter_dsn = ${cluster.url(db)}\n[agent agent]\n` });
const agent = new FastAgent(daemon), op = new FastOperator(daemon);
const q = (sql, more) => agent.call('db_query', { sql, ...more });
const shape = a => a.error ? a.text : JSON.stringify(a.json.rows);
const probes = [
	`SELECT current_setting('my.local', true) IS NULL, current_setting('my.sess', true) IS NULL, current_setting('search_path'), current_setting('DateStyle'), current_setting('TimeZone'), current_setting('extra_float_digits'), current_setting('statement_timeout'), current_setting('client_encoding'), current_setting('role'), current_setting('transaction_read_only'), current_setting('transaction_isolation'), current_setting('default_transaction_read_only'), current_setting('default_transaction_isolation'), current_setting('standard_conforming_strings')`,
	`SELECT name, setting FROM pg_settings WHERE source = 'session' OR context = 'user' AND setting IS DISTINCT FROM reset_val ORDER BY 1`,
	`SELECT count(*) FROM pg_cursors WHERE is_holdable`,
	`SELECT pg_my_temp_schema()`,
	`SELECT * FROM pg_listening_channels()`,
	`SELECT locktype, classid, objid FROM pg_locks WHERE locktype = 'advisory'`,
	`SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%666%' OR statement LIKE '%NULL::text, 1%'`,
	`SELECT id, a, b, now() > '2000-01-01' FROM t ORDER BY id`,
	`SELECT 0.1::float8 + 0.2, date '2020-01-02', E'\\u00e9', 'a\\b'`,
	`SELECT count(*) FROM pg_largeobject_metadata`,
	`SELECT last_value, is_called FROM sq`,
];
const setof = async () => { const out = []; for (const p of probes) out.push(shape(await q(p, { rows: 100 }).catch(e => ({ error: true, text: String(e) })))); return out; };
const setof2 = async () => { const o = []; for (const p of probes) { const a = await agent.call('db_query', { sql: p }); o.push(shape(a)); } return o; };
const write = async () => {
	const a = await agent.call('db_execute', { sql: 'UPDATE t SET a = a + 1 WHERE id < 3 RETURNING id, a' });
	if (!a.json) return a.text;
	const s = await op.show(a.json.change_id); await op.rollback(a.json.change_id);
	return JSON.stringify([s.rows, a.json.returned, s.head.reasons, s.head.effects]);
};
const base = await setof2(), wbase = await write();
console.log(base.join('\n'), '\n', wbase);
// random numbers
for (const n of Object.keys(lies)) for (const k of ['s', 'i', 'c']) {
	const answers = [];
	for (const sql of [`SELECT ${k}_${n}()`, `SELECT id FROM t WHERE id = ${k}_${n}()`, `EXPLAIN SELECT ${k}_${n}()`]) {
		const a = await q(sql); answers.push(a.error ? a.text.slice(0, 110) : 'rows' + JSON.stringify(a.json.rows).slice(0, 20));
		const b = await setof2();
		b.forEach((x, i) => { if (x !== base[i]) console.log(`LEAK ${k}_${n} [${sql}] probe ${i}: ${x.slice(0, 300)}`); });
		const rnd = [await q('SELECT random()'), await q('SELECT random()')].map(shape);
		if (n === 'seed') console.log('   random', rnd.join());
	}
	// and inside a held change
	const h = await agent.call('db_execute', { sql: 'UPDATE t SET a = 0 WHERE id = 1' });
	const id = h.json?.change_id;
	if (!id) { console.log('HOLD', k, n, h.text); continue; }
	const r = await q(`SELECT ${k}_${n}()`, { change_id: id }); answers.push('in: ' + (r.error ? r.text.slice(0, 110) : 'rows'));
	const r2 = await q('SELECT a FROM t WHERE id < 3 ORDER BY id', { change_id: id }); if (shape(r2) !== '[["0"],["2"]]') console.log('INSIDE', k, n, shape(r2));
	const m = await agent.call('db_execute', { sql: 'UPDATE t SET a = 5 WHERE id = 2', change_id: id });
	if (!m.json?.complete || m.json.tables.length !== 1 || m.json.tables[0].updated !== 2) console.log('MORE', k, n, m.text.slice(0, 400));
	const e = await op.rollback(id).catch(e => e.message);
	const w = await write(); if (w !== wbase) console.log(`WRITE ${k}_${n}: ${w}`);
	const b = await setof2();
	b.forEach((x, i) => { if (x !== base[i]) console.log(`LEAK after change ${k}_${n} probe ${i}: ${x.slice(0, 300)}`); });
	console.log(k, n, JSON.stringify(answers));
	if (!daemon.running) { console.log('DEAD', daemon.log.text().slice(-2000)); process.exit(1); }
}
console.log(await cluster.sql(db, "SELECT (SELECT count(*) FROM t), (SELECT last_value FROM sq), (SELECT count(*) FROM pg_largeobject_metadata), (SELECT count(*) FROM pg_locks WHERE locktype='advisory')"));
console.log(daemon.log.text().slice(-1500));
await agent.close(); op.close(); await daemon.stop(); await cluster.stop();
