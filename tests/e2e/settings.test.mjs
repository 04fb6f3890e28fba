// settings: what a function inside a statement does to its session must not
// change what the diff says of it
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Cluster } from './lib/cluster.mjs';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const counts = x => [x.inserted, x.updated, x.deleted, x.unchanged];
const texts = rows => rows.map(x => [x.op, x.before?.v ?? null, x.after?.v ?? null]).sort();

// A table of every type whose text a setting decides, and a trigger that runs
// `body` for each row.
const odd = (body, when = 'BEFORE UPDATE') => `
	CREATE TYPE pair AS (f float8, d date);
	CREATE TABLE f(id int PRIMARY KEY, x float8, ts timestamptz, iv interval,
		b bytea, m money, r regclass, p pair, a float8[]);
	INSERT INTO f VALUES (1, 0.1, '2020-01-02 03:04:05+00', '1 day 2 hours', '\\x00ff', 12.5, 'f', '(0.3,2020-01-02)', '{0.1}'),
		(2, 0.2, '2021-01-02 03:04:05+00', '1 mon', '\\x01', 1, 'f', NULL, NULL);
	CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} RETURN NEW; END $$;
	CREATE TRIGGER tr ${when} ON f FOR EACH ROW EXECUTE FUNCTION g();`;
const CHANGE = 'UPDATE f SET x = x + 0.01, ts = ts + \'1 us\', a = a || 1e-9::float8';
const set = (name, value) => `PERFORM set_config('${name}', '${value}', true);`;
const all = set('extra_float_digits', '-13') + set('DateStyle', 'German') + set('IntervalStyle', 'iso_8601') +
	set('TimeZone', 'Asia/Tokyo') + set('bytea_output', 'escape') + set('lc_monetary', 'C.UTF-8') +
	set('search_path', 'pg_catalog') + set('quote_all_identifiers', 'on') + set('xmloption', 'document');

// What the same change shows where no function meddles.
async function plain(t) {
	const w = await world(t, { setup: odd('') });
	const { json } = await w.agent.execute(CHANGE);
	return (await w.operator.show(json.change_id)).rows;
}

test('a trigger that changes how values are printed changes no image', async t => {
	const expected = await plain(t);
	assert.equal(expected.length, 2);
	assert.deepEqual([expected[0].before.r, expected[0].after.x], ['f', '0.11']);
	for (const [body, when] of [
		[set('extra_float_digits', '-13')],
		[all],
		[all, 'AFTER UPDATE'],
		// set for the first row, and back for the second
		[`IF NEW.id = 1 THEN ${all} ELSE RESET ALL; END IF;`],
		[`IF NEW.id = 2 THEN ${all} ELSE RESET ALL; END IF;`],
	]) {
		const w = await world(t, { setup: odd(body, when) });
		const { json, text } = await w.agent.execute(CHANGE);
		assert.ok(json, text);
		assert.deepEqual([json.complete, counts(json.tables[0])], [true, [0, 2, 0, 0]], text);
		assert.deepEqual((await w.operator.show(json.change_id)).rows, expected, body);
		const more = await w.agent.execute('UPDATE f SET x = x + 0.01', { change_id: json.change_id });
		assert.deepEqual([more.json?.complete, counts(more.json.tables[0])], [true, [0, 2, 0, 0]], more.text);
		await w.operator.commit(json.change_id);
		assert.equal(await w.sql('SELECT x FROM f WHERE id = 1'), '0.12');
	}
});

test('images are read anew also where deferred work fails', async t => {
	const w = await world(t, { setup: `${odd(set('extra_float_digits', '-13'))}
		CREATE TABLE pa(id int PRIMARY KEY);
		ALTER TABLE f ADD COLUMN pa int CONSTRAINT f_pa REFERENCES pa DEFERRABLE INITIALLY DEFERRED;` });
	const { json, text } = await w.agent.execute('UPDATE f SET x = x + 0.001, pa = 7 WHERE id = 1');
	assert.match(json?.reasons.find(x => x.code === 'DEFERRED_FAILURE')?.text ?? '', /23503 f_pa/, text);
	assert.deepEqual([json.complete, counts(json.tables[0])], [true, [0, 1, 0, 0]], text);
	const { rows } = await w.operator.show(json.change_id);
	assert.deepEqual([rows[0].before.x, rows[0].after.x, rows[0].after.pa], ['0.1', '0.101', '7']);
});

test('a setting that a function has of its own is its own', async t => {
	const expected = await plain(t);
	const w = await world(t, { setup: `${odd('')} ALTER FUNCTION g() SET extra_float_digits = '-13';
		ALTER FUNCTION g() SET DateStyle = 'German';` });
	const { json, text } = await w.agent.execute(CHANGE);
	assert.equal(json?.complete, true, text);
	assert.deepEqual((await w.operator.show(json.change_id)).rows, expected);
});

test('ON CONFLICT, cascades and deferred triggers are printed alike too', async t => {
	const w = await world(t, { setup: `
		CREATE TABLE k(id int PRIMARY KEY, v float8);
		CREATE TABLE c(id int PRIMARY KEY, k int REFERENCES k ON DELETE CASCADE, v float8);
		CREATE TABLE log(v float8);
		INSERT INTO k VALUES (1, 0.1), (2, 0.2); INSERT INTO c VALUES (1, 1, 0.1::float8 + 0.2), (2, 2, 0.3);
		CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO public.log VALUES (0.1::float8 + 0.2); ${all} RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE ON k DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION g();
		CREATE TRIGGER tr AFTER DELETE ON c FOR EACH ROW EXECUTE FUNCTION g();
		CREATE FUNCTION s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${all} RETURN NULL; END $$;
		CREATE TRIGGER tr AFTER INSERT ON k EXECUTE FUNCTION s();` });
	for (const [sql, expected] of [
		['INSERT INTO k VALUES (1, 0.30000000000000004), (3, 1e-15) ON CONFLICT (id) DO UPDATE SET v = excluded.v',
			{ 'public.k': [['insert', null, '1e-15'], ['update', '0.1', '0.30000000000000004']],
				'public.log': [['insert', null, '0.30000000000000004'], ['insert', null, '0.30000000000000004']] }],
		['DELETE FROM k WHERE id = 1', { 'public.k': [['delete', '0.1', null]],
			'public.c': [['delete', '0.30000000000000004', null]], 'public.log': [['insert', null, '0.30000000000000004']] }],
	]) {
		const { json, text } = await w.agent.execute(sql);
		assert.equal(json?.complete, true, text);
		const { rows } = await w.operator.show(json.change_id);
		for (const [name, want] of Object.entries(expected))
			assert.deepEqual(texts(rows.filter(x => x.table === name)), want, `${sql}: ${name}`);
		await w.operator.rollback(json.change_id);
	}
});

test('a function that changes whom or what the rest runs as is refused', async t => {
	const w = await world(t, { role: 'postgres', setup: `
		CREATE TABLE t(id int PRIMARY KEY, s text, v text); INSERT INTO t VALUES (1, '', ''), (2, '', '');
		CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			PERFORM set_config(NEW.s, NEW.v, true); RETURN NULL; END $$;
		CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW WHEN (NEW.s <> '') EXECUTE FUNCTION g();
		CREATE FUNCTION h() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			PERFORM set_config('role', 'app', true); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER late AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION h();` });
	const held = await w.agent.execute('UPDATE t SET v = \'first\' WHERE id = 2');
	const { change_id } = held.json;
	for (const [name, value] of [['session_replication_role', 'replica'], ['role', 'app'], ['row_security', 'off'],
		['session_authorization', 'app'], ['client_encoding', 'LATIN1'], ['track_counts', 'off'],
		['standard_conforming_strings', 'off']]) {
		const sql = 'UPDATE t SET s = $1, v = $2 WHERE id = 1';
		const alone = await w.agent.execute(sql, { params: [name, value] });
		assert.equal(outcome(alone), 'SETTING_CHANGED', alone.text);
		assert.match(alone.text, new RegExp(name));
		const added = await w.agent.execute(sql, { params: [name, value], change_id });
		assert.equal(outcome(added), 'SETTING_CHANGED', added.text);
	}
	assert.equal(outcome(await w.agent.execute('INSERT INTO t VALUES (3)')), 'SETTING_CHANGED');
	const more = await w.agent.execute('UPDATE t SET v = v || \'!\' WHERE id = 2', { change_id });
	assert.equal(more.json?.complete, true, more.text);
	await w.operator.commit(change_id);
	assert.equal(await w.sql('SELECT string_agg(s || v, \',\' ORDER BY id) FROM t'), ',first!');
});

test('a login whose triggers and foreign keys would not act is not used', async t => {
	const w = await world(t, { setup: `CREATE TABLE t(id int);
		DROP ROLE IF EXISTS silent; CREATE ROLE silent LOGIN; GRANT app TO silent;
		ALTER ROLE silent SET session_replication_role = replica;`, role: 'silent' });
	const answer = await w.agent.execute('INSERT INTO t VALUES (1)');
	assert.equal(answer.error, true, answer.text);
	assert.match(answer.text, /session_replication_role/);
});

test('both sides of a row are printed by the change\'s own search path', async t => {
	const w = await world(t, {
		setup: `CREATE SCHEMA own; GRANT USAGE ON SCHEMA own TO app; CREATE TABLE own.f(id int PRIMARY KEY, r regclass, n int);
			GRANT ALL ON own.f TO app; INSERT INTO own.f VALUES (1, 'own.f', 0), (2, 'own.f', 0);
			CREATE TABLE public.t(id int); INSERT INTO t VALUES (1);
			CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE own.f SET n = id - 1; RETURN NULL; END $$;
			CREATE TRIGGER tr AFTER UPDATE ON public.t FOR EACH ROW EXECUTE FUNCTION g();`,
		config: '[agent agent]\naccess = data\nsearch_path = own\n',
	});
	for (const sql of ['UPDATE public.t SET id = 2', 'INSERT INTO f VALUES (1, \'f\', 0), (2, \'f\', 1) ON CONFLICT (id) DO UPDATE SET n = excluded.n']) {
		const { json, text } = await w.agent.execute(sql);
		assert.equal(json?.complete, true, text);
		const rows = (await w.operator.show(json.change_id)).rows.filter(x => x.table === 'own.f');
		assert.deepEqual(rows.map(x => [x.key.id, x.before, x.after]),
			[['2', { id: '2', n: '0', r: 'f' }, { id: '2', n: '1', r: 'f' }]], sql);
		await w.operator.rollback(json.change_id);
	}
});

// What only the last run of deferred work sets is seen by nothing but COMMIT:
// one that does not wait leaves its record to the WAL writer, which sleeps here.
test('COMMIT waits for the disk, whatever a deferred trigger set just before', async t => {
	const c = await Cluster.start({ settings: { fsync: 'off', autovacuum: 'off', wal_writer_delay: '10s', wal_level: 'minimal', max_wal_senders: 0 } });
	t.after(() => c.stop());
	const w = await world(t, { cluster: c, setup: `
		CREATE TABLE t(id int); CREATE SEQUENCE s; GRANT USAGE ON SEQUENCE s TO app;
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('s') = 1 THEN RAISE 'not yet'; END IF;
			PERFORM set_config('synchronous_commit', 'off', true); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER tr AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f();` });
	const { json, text } = await w.agent.execute('INSERT INTO t VALUES (1)');
	assert.match(json?.reasons.find(x => x.code === 'DEFERRED_FAILURE')?.text ?? '', /not yet/, text);
	await w.sql('SELECT pg_logical_emit_message(true, \'test\', \'\')'); // all so far is on disk
	const before = await w.sql('SELECT pg_current_wal_flush_lsn()');
	await w.operator.commit(json.change_id);
	assert.equal(await w.sql(`SELECT pg_current_wal_flush_lsn() > '${before}'`), 't');
	assert.equal(await w.sql('SELECT count(*) || \' \' || last_value FROM t, s GROUP BY last_value'), '1 2');
});
