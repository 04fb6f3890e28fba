// hold: what a held write is shown to have done, against what it did
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const SHOP = `
	CREATE TABLE t(id int PRIMARY KEY, a int, b text);
	INSERT INTO t SELECT g, g, 'text ' || g FROM generate_series(1, 10) g;`;

// Holds one statement; { w, r: the agent's answer, head, rows }.
async function hold(t, setup, sql, more = {}) {
	const w = await world(t, { setup, ...more });
	const answer = await w.agent.execute(sql, more.args2);
	assert.equal(outcome(answer), 'pending', answer.text);
	return { w, r: answer.json, ...await w.operator.show(answer.json.change_id) };
}

const table = (r, name) => r.tables.find(x => x.table === name);
const brief = row => [row.op, row.key, row.before, row.after];
const counts = x => [x.inserted, x.updated, x.deleted, x.unchanged];

test('INSERT, UPDATE and DELETE give the exact image of every row', async t => {
	const w = await world(t, { setup: SHOP });
	const cases = [
		['INSERT INTO t VALUES (11, NULL, \'\')', [1, 0, 0, 0], [10, 11],
			[['insert', { id: '11' }, null, { id: '11', a: null, b: '' }]]],
		['UPDATE t SET a = a + 1 WHERE id = 3', [0, 1, 0, 0], [10, 10],
			[['update', { id: '3' }, { id: '3', a: '3', b: 'text 3' }, { id: '3', a: '4', b: 'text 3' }]]],
		['DELETE FROM t WHERE id IN (1, 2)', [0, 0, 2, 0], [10, 8],
			[['delete', { id: '1' }, { id: '1', a: '1', b: 'text 1' }, null],
				['delete', { id: '2' }, { id: '2', a: '2', b: 'text 2' }, null]]],
		['UPDATE t SET id = 100 WHERE id = 5', [0, 1, 0, 0], [10, 10],
			[['update', { id: '5' }, { id: '5', a: '5', b: 'text 5' }, { id: '100', a: '5', b: 'text 5' }]]],
		['INSERT INTO t SELECT g, 0, \'x\' FROM generate_series(20, 21) g', [2, 0, 0, 0], [10, 12],
			[['insert', { id: '20' }, null, { id: '20', a: '0', b: 'x' }],
				['insert', { id: '21' }, null, { id: '21', a: '0', b: 'x' }]]],
	];
	for (const [sql, n, [before, now], rows] of cases) {
		const { json } = await w.agent.execute(sql);
		const shown = await w.operator.show(json.change_id);
		assert.equal(json.complete, true, sql);
		assert.deepEqual(counts(json.tables[0]), n, sql);
		assert.deepEqual([json.tables[0].rows_before, json.tables[0].rows_after], [before, now], sql);
		assert.deepEqual(shown.rows.map(brief), rows, sql);
		await w.operator.rollback(json.change_id);
	}
	assert.equal(await w.sql('SELECT count(*), sum(a) FROM t'), '10|55');
});

test('rows matched but unchanged are counted apart', async t => {
	const { r, rows } = await hold(t, SHOP, 'UPDATE t SET a = 5 WHERE id BETWEEN 4 AND 6');
	assert.deepEqual(counts(r.tables[0]), [0, 2, 0, 1]);
	assert.deepEqual(rows.map(x => x.key.id), ['4', '6']);
});

test('UPDATE with FROM, an alias, a subquery and parameters', async t => {
	const w = await world(t, { setup: `${SHOP} CREATE TABLE o(id int, v int); INSERT INTO o VALUES (1, 70), (1, 70), (2, 80);` });
	const answer = await w.agent.execute(
		'WITH k AS (SELECT 1) UPDATE t AS x SET a = o.v, b = $1 FROM o WHERE o.id = x.id AND x.id <= $2 RETURNING x.*, o.v;  -- done',
		{ params: ['new', '2'], intent: 'because' });
	assert.equal(outcome(answer), 'pending', answer.text);
	assert.deepEqual(counts(table(answer.json, 'public.t')), [0, 2, 0, 0]);
	assert.deepEqual(answer.json.returned.columns.map(c => c.name), ['id', 'a', 'b', 'v']);
	assert.deepEqual(answer.json.returned.rows.sort(), [['1', '70', 'new', '70'], ['2', '80', 'new', '80']]);
	const { head } = await w.operator.show(answer.json.change_id);
	assert.equal(head.intent, 'because');
	assert.deepEqual(head.statements[0].params, ['new', '2']);
});

test('RETURNING is answered as written, stars and duplicates and all', async t => {
	const w = await world(t, { setup: SHOP });
	for (const [sql, names, row] of [
		['UPDATE t SET a = 0 WHERE id = 1 RETURNING *', ['id', 'a', 'b'], ['1', '0', 'text 1']],
		['UPDATE t SET a = 0 WHERE id = 2 RETURNING *, id, *', ['id', 'a', 'b', 'id', 'id', 'a', 'b'],
			['2', '0', 'text 2', '2', '2', '0', 'text 2']],
		['DELETE FROM t WHERE id = 3 RETURNING id AS "airlock_x", 1', ['airlock_x', '?column?'], ['3', '1']],
		['INSERT INTO t VALUES (30, 1, \'z\') RETURNING b, t', ['b', 't'], ['z', '(30,1,z)']],
	]) {
		const { json, text } = await w.agent.execute(sql);
		assert.ok(json, text);
		assert.deepEqual(json.returned.columns.map(c => c.name), names, sql);
		assert.deepEqual(json.returned.rows, [row], sql);
		assert.equal(json.complete, true, sql);
	}
	const none = await w.agent.execute('UPDATE t SET a = 0 WHERE id = -1 RETURNING id');
	assert.deepEqual(none.json.returned, { columns: [{ name: 'id', type: 'integer' }], rows: [], row_count: 0, truncated: false });
});

const PARTS = `
	CREATE TABLE ev(id int, d date, v text, PRIMARY KEY (id, d)) PARTITION BY RANGE (d);
	CREATE TABLE ev_23(v text, d date NOT NULL, id int NOT NULL);
	ALTER TABLE ev ATTACH PARTITION ev_23 FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
	CREATE TABLE ev_24 PARTITION OF ev FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
	INSERT INTO ev VALUES (1, '2023-05-05', 'a'), (2, '2024-05-05', 'b');`;

test('a row that moves to another partition is one update', async t => {
	const { r, rows } = await hold(t, PARTS, 'UPDATE ev SET d = \'2024-06-06\' WHERE id = 1');
	assert.equal(r.complete, true);
	assert.deepEqual(r.tables.map(x => x.table), ['public.ev']);
	assert.deepEqual(rows.map(brief), [['update', { id: '1', d: '2023-05-05' },
		{ id: '1', d: '2023-05-05', v: 'a' }, { id: '1', d: '2024-06-06', v: 'a' }]]);
});

test('ON CONFLICT tells inserted from updated, with before-images', async t => {
	const { r, rows } = await hold(t, PARTS, `INSERT INTO ev VALUES (1, '2023-05-05', 'z'),
		(7, '2023-05-06', 'n'), (2, '2024-05-05', 'b')
		ON CONFLICT (id, d) DO UPDATE SET v = excluded.v`);
	assert.equal(r.complete, true);
	assert.deepEqual(counts(r.tables[0]), [1, 1, 0, 1]);
	assert.deepEqual(rows.map(brief).sort(), [
		['insert', { id: '7', d: '2023-05-06' }, null, { id: '7', d: '2023-05-06', v: 'n' }],
		['update', { id: '1', d: '2023-05-05' }, { id: '1', d: '2023-05-05', v: 'a' },
			{ id: '1', d: '2023-05-05', v: 'z' }]]);
});

test('ON CONFLICT of more rows than one question holds', async t => {
	const { r } = await hold(t, `CREATE TABLE u(k text PRIMARY KEY, n int);
		INSERT INTO u SELECT 'k "\\' || g, g FROM generate_series(1, 3000) g;`,
	`INSERT INTO u SELECT 'k "\\' || g, 0 FROM generate_series(2001, 5000) g
		ON CONFLICT (k) DO UPDATE SET n = excluded.n`);
	assert.equal(r.complete, true);
	assert.deepEqual(counts(r.tables[0]), [2000, 1000, 0, 0]);
	assert.equal(r.risk, 'high');
});

// type of the key: a value that is there, and one that is not
const KEYS = {
	'text[]': ['{a,NULL,"b,c"}', '{}'],
	'int[][]': ['{{1,2},{3,4}}', '{{1,2},{3,5}}'],
	'pair[]': ['{"(1,x)",NULL}', '{}'],
	pair: ['(1,"a,b ""c""")', '(,)'],
	bag: ['{1,2}', '{2}'],
	positive: ['1', '2'],
	int4range: ['[1,5)', 'empty'],
	int4multirange: ['{[1,2),[5,7)}', '{}'],
	mood: ['so so', 'sad'],
	jsonb: ['{"a": [1, null]}', '[]'],
	citext: ['Abc', 'b'],
	numeric: ['1.50', '2'],
	float8: ['0.1', '-0'],
	bytea: ['\\x00ff', '\\x'],
	'char(5)': ['ab', 'b'],
	timestamptz: ['2024-01-01 00:00:00+00', 'infinity'],
	interval: ['1 mon', '-1 day'],
	inet: ['10.0.0.0/8', '::1'],
	uuid: ['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
	varbit: ['0101', ''],
	money: ['$12.34', '-$1.00'],
	name: ['n', ''],
	tsvector: ['\'fat\':2', ''],
	hstore: ['"a"=>"1"', ''],
};

test('ON CONFLICT on a key of any type', async t => {
	const w = await world(t, { setup: `CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE TYPE mood AS ENUM ('sad', 'so so');
		CREATE DOMAIN positive AS int CHECK (VALUE > 0); CREATE TYPE pair AS (i int, t text); CREATE DOMAIN bag AS int[];
		${Object.keys(KEYS).map((type, i) => `CREATE TABLE k${i} (k ${type}, n int, v text, PRIMARY KEY (n, k));`).join('\n')}` });
	for (const [i, [type, [old, fresh]]] of Object.entries(KEYS).entries()) {
		await w.sql(`INSERT INTO k${i} VALUES ('${old.replaceAll('\'', '\'\'')}', 1, 'old'), ('${old.replaceAll('\'', '\'\'')}', 2, 'other')`);
		const answer = await w.agent.execute(`INSERT INTO k${i} VALUES ($1, 1, 'new'), ($2, 1, 'new') ON CONFLICT (n, k) DO UPDATE SET v = excluded.v`, { params: [old, fresh] });
		assert.equal(answer.json?.complete, true, `${type}: ${answer.text}`);
		assert.deepEqual(counts(answer.json.tables[0]), [1, 1, 0, 0], type);
		const { rows } = await w.operator.show(answer.json.change_id);
		const row = rows.find(r => r.op === 'update');
		assert.deepEqual([row.before.v, row.after.v, row.before.k.trim()], ['old', 'new', old], type);
		await w.operator.rollback(answer.json.change_id);
	}
	assert.doesNotMatch(w.daemon.log.text(), /could not read the rows/);
});

test('ON CONFLICT on a row that another session deletes before the observer looks', async t => {
	const w = await world(t, { setup: `${SHOP} CREATE TABLE u (id int PRIMARY KEY, v text); INSERT INTO u VALUES (1, 'old'), (2, 'old'), (3, 'old');` });
	const first = await w.agent.execute('UPDATE t SET a = 0 WHERE id = 1');
	const id = first.json.change_id;
	await w.sql('DELETE FROM u WHERE id = 1; UPDATE u SET id = 30 WHERE id = 3');
	const more = await w.agent.execute(
		'INSERT INTO u VALUES (1, \'new\'), (2, \'new\'), (3, \'new\') ON CONFLICT (id) DO UPDATE SET v = excluded.v', { change_id: id });
	assert.equal(more.json?.complete, true, more.text);
	const { rows } = await w.operator.show(id);
	assert.deepEqual(rows.filter(r => r.table === 'public.u').map(r => [r.op, r.key.id]).sort(),
		[['insert', '1'], ['insert', '3'], ['update', '2']]);
	await w.operator.commit(id);
	assert.equal(await w.sql('SELECT string_agg(id || v, \',\' ORDER BY id) FROM u'), '1new,2new,3new,30old');
});

test('ON CONFLICT whose pairing by key is not certain is searched for', async t => {
	const w = await world(t, { setup: `${SHOP} CREATE TABLE n(a int UNIQUE, b int); INSERT INTO n VALUES (1, 1);` });
	const moved = await w.agent.execute('INSERT INTO t VALUES (1, 1, \'\') ON CONFLICT (id) DO UPDATE SET id = 99');
	assert.equal(moved.json.complete, true, moved.text);
	const { rows } = await w.operator.show(moved.json.change_id);
	assert.deepEqual(rows.map(brief), [
		['update', { id: '1' }, { id: '1', a: '1', b: 'text 1' }, { id: '99', a: '1', b: 'text 1' }]]);
	const keyless = await w.agent.execute('INSERT INTO n VALUES (1, 2) ON CONFLICT (a) DO UPDATE SET b = 3');
	assert.equal(keyless.json.complete, true, keyless.text);
	assert.deepEqual(counts(keyless.json.tables[0]), [0, 1, 0, 0]);
});

test('what cascades and triggers do elsewhere is in the diff', async t => {
	const { r, rows } = await hold(t, `
		CREATE TABLE par(id int PRIMARY KEY);
		CREATE TABLE kid(id int PRIMARY KEY, p int REFERENCES par ON DELETE CASCADE);
		CREATE TABLE log(n int);
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (1), (2); RETURN NULL; END $$;
		CREATE TRIGGER tr AFTER DELETE ON kid FOR EACH ROW EXECUTE FUNCTION f();
		INSERT INTO par VALUES (1), (2); INSERT INTO kid VALUES (10, 1), (11, 1), (12, 2);`,
	'DELETE FROM par WHERE id = 1');
	assert.equal(r.complete, true);
	assert.equal(r.risk, 'high');
	assert.deepEqual(counts(table(r, 'public.par')), [0, 0, 1, 0]);
	assert.deepEqual([table(r, 'public.kid').deleted, table(r, 'public.kid').collateral], [2, true]);
	assert.deepEqual([table(r, 'public.log').inserted, table(r, 'public.log').complete], [4, true]);
	assert.deepEqual(rows.filter(x => x.table === 'public.kid').map(brief), [
		['delete', { id: '10' }, { id: '10', p: '1' }, null], ['delete', { id: '11' }, { id: '11', p: '1' }, null]]);
	assert.deepEqual(rows.filter(x => x.table === 'public.log').map(x => x.after.n).sort(), ['1', '1', '2', '2']);
	assert.ok(r.reasons.some(x => x.code === 'COLLATERAL_DELETE'));
});

test('a row that a trigger writes again is shown as it was stored', async t => {
	const { r, rows } = await hold(t, `${SHOP}
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.a = 7 THEN UPDATE t SET a = 8 WHERE id = NEW.id; END IF; RETURN NULL; END $$;
		CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();`,
	'UPDATE t SET a = 7 WHERE id = 1');
	assert.equal(r.complete, true);
	assert.deepEqual(rows.map(brief), [['update', { id: '1' },
		{ id: '1', a: '1', b: 'text 1' }, { id: '1', a: '8', b: 'text 1' }]]);
	assert.deepEqual(counts(r.tables[0]), [0, 1, 0, 0]);
});

test('a table above sweep_limit, or emptied whole, is incomplete by its counts', async t => {
	const w = await world(t, {
		setup: `${SHOP} CREATE TABLE log(n int);
			CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (1), (2); RETURN NULL; END $$;
			CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();
			CREATE TABLE gone(n int); INSERT INTO gone VALUES (1);
			CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN TRUNCATE gone; RETURN NULL; END $$;
			CREATE TRIGGER tr2 AFTER DELETE ON t FOR EACH STATEMENT EXECUTE FUNCTION g();
			INSERT INTO log SELECT 1 FROM generate_series(1, 10000);`,
		config: '[airlock]\nsweep_limit = 64K\n',
	});
	const large = await w.agent.execute('UPDATE t SET a = 0 WHERE id = 1');
	assert.equal(large.json.complete, false, large.text);
	assert.equal(large.json.risk, 'high');
	assert.equal(table(large.json, 'public.t').complete, true);
	assert.deepEqual([table(large.json, 'public.log').inserted, table(large.json, 'public.log').complete], [2, false]);
	assert.match(large.json.reasons.find(x => x.code === 'INCOMPLETE').text, /sweep_limit/);
	const emptied = await w.agent.execute('DELETE FROM t WHERE id = 2');
	assert.equal(emptied.json.complete, false, emptied.text);
	assert.equal(table(emptied.json, 'public.gone').complete, false);
});

test('DDL hidden in a function shows', async t => {
	const { r } = await hold(t, `${SHOP} CREATE FUNCTION sneak() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
		$$ BEGIN GRANT SELECT ON t TO PUBLIC; RETURN 1; END $$;`,
	'INSERT INTO t SELECT 50, sneak(), \'\'');
	assert.equal(r.complete, false);
	assert.ok(r.reasons.some(x => x.code === 'HIDDEN_DDL'), JSON.stringify(r.reasons));
});

test('BEFORE triggers that change or suppress rows show what was stored', async t => {
	const { r, rows } = await hold(t, `${SHOP}
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.id = 2 THEN RETURN NULL; END IF; NEW.b := 'stamped'; RETURN NEW; END $$;
		CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();`,
	'UPDATE t SET a = 0 WHERE id IN (1, 2)');
	assert.equal(r.complete, true);
	assert.deepEqual(rows.map(x => [x.key.id, x.after]), [['1', { id: '1', a: '0', b: 'stamped' }]]);
});

test('other shapes give their rows too', async t => {
	const w = await world(t, {
		setup: `${SHOP} CREATE VIEW v AS SELECT * FROM t; CREATE TABLE rl(id int, o text);
			INSERT INTO rl VALUES (1, 'app'), (2, 'x'); ALTER TABLE rl ENABLE ROW LEVEL SECURITY;
			CREATE POLICY p ON rl USING (o = current_user); CREATE TABLE base(id int); CREATE TABLE child() INHERITS (base);
			INSERT INTO child VALUES (1);
			GRANT SELECT, INSERT, UPDATE, DELETE ON v TO app;`,
	});
	for (const [sql, name, n] of [
		['UPDATE v SET a = 0 WHERE id = 1', 'public.t', 1],
		['WITH u AS (UPDATE t SET a = 1 WHERE id IN (8, 9) RETURNING 1) SELECT count(*) FROM u', 'public.t', 2],
		['MERGE INTO t USING (VALUES (10)) s(i) ON t.id = s.i WHEN MATCHED THEN UPDATE SET a = 5', 'public.t', 1],
		['DELETE FROM rl', 'public.rl', 1],
		['UPDATE rl SET o = o', 'public.rl', 0],
		['UPDATE base SET id = 2 WHERE id = 1', 'public.child', 1],
	]) {
		const { json, text } = await w.agent.execute(sql);
		assert.ok(json, text);
		assert.equal(table(json, name).updated + table(json, name).deleted, n, `${sql}: ${text}`);
		assert.equal(json.complete, true, `${sql}: ${text}`);
		const { rows } = await w.operator.show(json.change_id);
		assert.ok(rows.filter(x => x.table === name).length >= n, sql);
		await w.operator.rollback(json.change_id);
	}
	const nothing = await w.agent.execute('UPDATE v SET a = 0 WHERE id = -1');
	assert.equal(nothing.json.complete, true, 'counters that did not move prove it');
});

test('statements added to a change fold into net rows', async t => {
	const w = await world(t, { setup: SHOP });
	const { json: { change_id } } = await w.agent.execute('UPDATE t SET a = 100 WHERE id IN (1, 2)');
	const add = async sql => {
		const answer = await w.agent.execute(sql, { change_id });
		assert.equal(answer.json?.change_id, change_id, answer.text);
	};
	const { head: first } = await w.operator.show(change_id);
	await add('UPDATE t SET a = 101 WHERE id IN (2, 3)');
	await add('UPDATE t SET a = a WHERE id IN (3, 4)');
	await add('DELETE FROM t WHERE id = 1');
	await add('INSERT INTO t VALUES (50, 1, \'q\'), (51, 1, \'q\')');
	await add('DELETE FROM t WHERE id = 50');
	await add('UPDATE t SET a = 3 WHERE id = 3');
	const failed = await w.agent.execute('INSERT INTO t VALUES (51, 0, \'\')', { change_id });
	assert.equal(outcome(failed), '23505');
	const { head, rows } = await w.operator.show(change_id);
	assert.notEqual(head.digest, first.digest);
	assert.equal(head.complete, true);
	assert.equal(head.statements.length, 7, 'the one that failed is not listed');
	assert.deepEqual(rows.map(x => [x.op, x.key.id, x.before?.a, x.after?.a]), [
		['delete', '1', '1', undefined], ['update', '2', '2', '101'], ['insert', '51', undefined, '1']]);
	assert.equal((await w.agent.query('SELECT count(*) FROM t', { change_id })).json.rows[0][0], '10');
	assert.equal((await w.agent.query('SELECT a FROM t WHERE id = 1')).json.rows[0][0], '1', 'nobody else sees it');
	assert.equal((await w.operator.run('commit', `${change_id}@${first.digest}`)).code, 1, 'the digest has moved');
	await w.operator.commit(change_id);
	assert.equal(await w.sql('SELECT string_agg(id || \':\' || a, \',\' ORDER BY id) FROM t WHERE id < 4 OR id > 10'), '2:101,3:3,51:1');
});

test('a deferred constraint that fails is known before anyone approves', async t => {
	const w = await world(t, {
		setup: `CREATE TABLE pa(id int PRIMARY KEY);
			CREATE TABLE ch(id int PRIMARY KEY, p int REFERENCES pa DEFERRABLE INITIALLY DEFERRED);`,
	});
	const { json } = await w.agent.execute('INSERT INTO ch VALUES (1, 999)');
	assert.equal(json.risk, 'high');
	assert.match(json.reasons.find(x => x.code === 'DEFERRED_FAILURE').text, /23503 ch_p_fkey/);
	const two = await w.agent.execute('INSERT INTO ch VALUES (2, 5)');
	const refused = await w.operator.run('commit', (await w.operator.pending()).find(c => c.id === two.json.change_id).token);
	assert.equal(refused.code, 1);
	assert.match(refused.stderr + refused.stdout, /23503/);
	assert.equal((await w.agent.status(two.json.change_id)).json.status, 'failed');
	const mended = await w.agent.execute('INSERT INTO pa VALUES (999)', { change_id: json.change_id });
	assert.ok(!mended.json.reasons.some(x => x.code === 'DEFERRED_FAILURE'), mended.text);
	await w.operator.commit(json.change_id);
	assert.equal(await w.sql('SELECT p FROM ch'), '999');
});

test('sequences that move are listed', async t => {
	const { head } = await hold(t, 'CREATE TABLE s(id serial PRIMARY KEY, t text);', 'INSERT INTO s(t) VALUES (\'x\')',
		{ role: 'postgres' });
	assert.deepEqual(head.effects.map(x => x.code), ['SEQUENCE']);
	assert.match(head.effects[0].text, /public\.s_id_seq/);
});

test('a large table is not counted, and says so', async t => {
	const { r } = await hold(t, `CREATE TABLE big(id int PRIMARY KEY);
		INSERT INTO big SELECT generate_series(1, 60000); ANALYZE big;`, 'DELETE FROM big WHERE id = 7');
	assert.equal(r.tables[0].rows_estimated, true);
	assert.equal(r.tables[0].rows_before, 60000);
	assert.equal(r.tables[0].rows_after, 59999);
	assert.equal(r.complete, true);
});

test('names that need quoting, many columns, no key, duplicate rows', async t => {
	const wide = Array.from({ length: 300 }, (_, i) => `"c ${i}" int`).join(', ');
	const w = await world(t, {
		setup: `CREATE SCHEMA "Odd ""x"; CREATE TABLE "Odd ""x"."T.1"("1" int, "Sel ect" text, "é" int);
			INSERT INTO "Odd ""x"."T.1" VALUES (1, 'a', NULL), (1, 'a', NULL);
			CREATE TABLE wide(id int PRIMARY KEY, ${wide}); INSERT INTO wide(id) VALUES (1);
			GRANT USAGE ON SCHEMA "Odd ""x" TO app;`,
	});
	const odd = await w.agent.execute('UPDATE "Odd ""x"."T.1" AS "sel""f" SET "1" = 2 RETURNING "sel""f"."é"');
	assert.equal(outcome(odd), 'pending', odd.text);
	const { rows, head } = await w.operator.show(odd.json.change_id);
	assert.equal(head.tables[0].table, '"Odd ""x"."T.1"');
	assert.deepEqual(rows.map(brief), Array(2).fill(['update', null,
		{ 1: '1', 'Sel ect': 'a', 'é': null }, { 1: '2', 'Sel ect': 'a', 'é': null }]));
	const many = await w.agent.execute('UPDATE wide SET "c 299" = 1');
	assert.equal(many.json?.complete, true, many.text);
	await w.operator.commit(odd.json.change_id);
});

test('a table that changes its shape meanwhile is diffed by its new one', async t => {
	const w = await world(t, { setup: SHOP });
	const one = await w.agent.execute('UPDATE t SET a = 0 WHERE id = 1');
	await w.operator.rollback(one.json.change_id);
	for (const [ddl, columns] of [['ADD COLUMN c int DEFAULT 5', 'a b c id'], ['DROP COLUMN b', 'a c id'],
		['RENAME COLUMN c TO d', 'a d id'], ['ALTER COLUMN a TYPE text', 'a d id']]) {
		await w.sql(`ALTER TABLE t ${ddl}`);
		for (const sql of ['UPDATE t SET a = \'7\' WHERE id = 2', 'DELETE FROM t WHERE id = 3']) {
			const answer = await w.agent.execute(sql);
			assert.equal(outcome(answer), 'pending', `${ddl}: ${answer.text}`);
			const { rows } = await w.operator.show(answer.json.change_id);
			assert.equal(Object.keys(rows[0].before).sort().join(' '), columns, ddl);
			assert.equal(answer.json.complete, true);
			await w.operator.rollback(answer.json.change_id);
		}
	}
	const { json: { change_id } } = await w.agent.execute('UPDATE t SET a = \'1\' WHERE id = 4');
	assert.equal(outcome(await w.agent.execute('UPDATE t SET nope = 1', { change_id })), '42703');
	const { head } = await w.operator.show(change_id);
	assert.equal(head.statements.length, 1);
});

test('a second change that needs a lock of the first is told which', async t => {
	const w = await world(t, { setup: SHOP });
	const first = await w.agent.execute('UPDATE t SET a = 0 WHERE id = 1');
	const other = await w.agent.execute('UPDATE t SET a = 0 WHERE id = 2');
	const second = await w.agent.execute('UPDATE t SET a = 1 WHERE id = 1');
	assert.equal(outcome(second), '55P03');
	assert.match(second.text, new RegExp(first.json.change_id));
	assert.doesNotMatch(second.text, new RegExp(other.json.change_id));
	assert.equal((await w.operator.pending()).length, 2);
});

const LEAVES = `
	CREATE TABLE k(a int NOT NULL, b int NOT NULL, v text, UNIQUE (b, a)) PARTITION BY LIST (a);
	CREATE TABLE k1(v text, b int NOT NULL PRIMARY KEY, a int NOT NULL); ALTER TABLE k ATTACH PARTITION k1 FOR VALUES IN (1);
	CREATE TABLE k2 PARTITION OF k(UNIQUE (b)) FOR VALUES IN (2);
	CREATE TABLE n(a int NOT NULL, b int NOT NULL, v text) PARTITION BY LIST (a);
	CREATE TABLE n1 PARTITION OF n(PRIMARY KEY (b)) FOR VALUES IN (1); CREATE TABLE n2 PARTITION OF n FOR VALUES IN (2);
	INSERT INTO k VALUES (1, 10, 'x'), (2, 20, 'x'); INSERT INTO n VALUES (1, 10, 'x'), (2, 20, 'x');
	CREATE TABLE o(id int);
	CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE k SET v = 'y'; UPDATE n SET v = 'y'; RETURN NULL; END $$;
	CREATE TRIGGER tr AFTER INSERT ON o EXECUTE FUNCTION f();`;

test('a partition\'s row is told by its table\'s key, by whatever way it is written', async t => {
	const w = await world(t, { setup: LEAVES });
	const seen = async sql => {
		const { json, text } = await w.agent.execute(sql);
		assert.equal(json?.complete, true, `${sql}: ${text}`);
		const { rows } = await w.operator.show(json.change_id);
		await w.operator.rollback(json.change_id);
		return rows.filter(x => x.table !== 'public.o').map(x => [x.table, x.after.b, x.key && Object.entries(x.key).sort()]).sort();
	};
	const k = (a, b) => ['public.k', b, [['a', a], ['b', b]]], n = b => ['public.n', b, null];
	for (const [sql, expected] of [
		['UPDATE k SET v = \'y\'', [k('1', '10'), k('2', '20')]], ['UPDATE k1 SET v = \'y\'', [k('1', '10')]], ['UPDATE k2 SET v = \'y\'', [k('2', '20')]],
		['UPDATE n SET v = \'y\'', [n('10'), n('20')]], ['UPDATE n1 SET v = \'y\'', [n('10')]],
		['WITH u AS (UPDATE k1 SET v = \'y\' RETURNING 1) SELECT count(*) FROM u', [k('1', '10')]],
		['INSERT INTO k1 VALUES (\'z\', 10, 1) ON CONFLICT (b) DO UPDATE SET v = excluded.v', [k('1', '10')]],
		['INSERT INTO n1 VALUES (1, 10, \'z\') ON CONFLICT (b) DO UPDATE SET v = excluded.v', [n('10')]],
		['INSERT INTO o VALUES (1)', [k('1', '10'), k('2', '20'), n('10'), n('20')]],
	])
		assert.deepEqual(await seen(sql), expected, sql);
});
