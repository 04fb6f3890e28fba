// large: changes of many rows: refused with their counts above diff_bytes_max,
// else paged, streamed and exported by airlock show
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { digest, rowHash } from '../digest/recompute.mjs';
import { scratch } from './lib/place.mjs';
import { release, world } from './lib/world.mjs';

after(release);

const ROWS = 25000;
const T = `CREATE TABLE t(id int PRIMARY KEY, a int, b text); INSERT INTO t SELECT g, g, repeat('b', 40) FROM generate_series(1, ${ROWS}) g;
	CREATE TABLE log(n int); CREATE TABLE k(id int); INSERT INTO k SELECT id FROM t; CREATE VIEW v AS SELECT * FROM t;
	CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (OLD.id); RETURN NULL; END $$;`;
const LOGGED = 'CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();';
const small = '[airlock]\ndiff_bytes_max = 1M\n';
const config = text => ({ url: w => w.cluster.url(w.database), config: text });

const refused = {
	'by what RETURNING gives': ['', 'UPDATE t SET a = 0', /; public\.t: 25000 updated/],
	'by what a search finds': ['', 'UPDATE v SET a = 0', /; public\.t: 25000 updated/],
	'by what a trigger writes': [LOGGED, 'UPDATE t SET a = 0', /; public\.log: 25000 inserted; public\.t: 25000 updated/],
	'by what ON CONFLICT replaces': ['', 'INSERT INTO t SELECT id, 0 FROM k ON CONFLICT (id) DO UPDATE SET a = 0', /; public\.t: 25000 updated/],
};
for (const [name, [setup, sql, counts]] of Object.entries(refused))
	test(`a change above diff_bytes_max is refused with its counts: ${name}`, async t => {
		const w = await world(t, { setup: T + setup, ...config(small) });
		const { error, text } = await w.agent.execute(sql);
		assert.equal(error, true);
		assert.match(text, /^REFUSED DIFF_TOO_LARGE: the rows changed take more than 1048576 bytes \(diff_bytes_max\)/);
		assert.match(text, counts);
		assert.equal(await w.sql('SELECT count(*) FROM t WHERE a = 0'), '0');
	});

test('an added statement that is too large leaves the change as it was', async t => {
	const w = await world(t, { setup: T, ...config(small) });
	const { json } = await w.agent.execute('UPDATE t SET a = 0 WHERE id = 1');
	const { text } = await w.agent.execute('UPDATE t SET a = 1 WHERE id > 1', { change_id: json.change_id });
	assert.match(text, /^REFUSED DIFF_TOO_LARGE: .*; public\.t: 24999 updated/);
	const { head, rows } = await w.operator.show(json.change_id);
	assert.equal(rows.length, 1);
	assert.equal((await w.operator.run('commit', `${head.id}@${head.digest}`)).code, 0);
	assert.equal(await w.sql('SELECT count(*) FROM t WHERE a = 0'), '1');
});

test('a change of 50,000 rows is streamed, cut into pages and exported', async t => {
	const w = await world(t, { setup: T + LOGGED });
	const wide = 'w'.repeat(5000);
	const { json, text } = await w.agent.execute('UPDATE t SET a = -id, b = CASE WHEN id = 7 THEN $1 ELSE b END', { params: [wide] });
	assert.equal(json?.complete, true, text);
	const id = json.change_id;
	const ask = async (...args) => {
		const r = await w.operator.run('show', id, ...args);
		assert.equal(r.code, 0, r.stderr);
		return r.stdout;
	};
	const parsed = s => s.trimEnd().split('\n').map(l => JSON.parse(l));

	const [head, ...rows] = parsed(await ask('--json'));
	assert.equal(rows.length, 2 * ROWS);
	assert.equal(digest(head, rows.map(r => rowHash(r))), head.digest);
	assert.equal(rows.find(r => r.key?.id === '7').after.b, wide, 'nothing is cut in JSON');

	// parts of it, as programs get them
	const part = async (...args) => parsed(await ask('--json', ...args)).slice(1);
	assert.deepEqual(await part('--offset', '49998'), rows.slice(49998));
	assert.deepEqual(await part('--offset', '1000', '--limit', '30'), rows.slice(1000, 1030));
	const logged = rows.filter(r => r.table === 'public.log');
	assert.equal(logged.length, ROWS);
	assert.deepEqual(await part('--table', 'public.log'), logged);
	assert.deepEqual(await part('--table', 'public.log', '--offset', '24990', '--limit', '5'), logged.slice(24990, 24995));
	assert.deepEqual(await part('--limit', '0'), []);
	assert.deepEqual(await part('--offset', '50000'), []);

	// and as people read them
	const page = await ask('--table', 'public.t', '--offset', '5', '--limit', '3');
	const of = rows.filter(r => r.table === 'public.t').slice(5, 8).map(r => `update public.t id=${r.key.id}`);
	assert.deepEqual(page.match(/update public\.t id=\d+/g), of);
	assert.match(page, /\.\.\. 24992 more rows: airlock show chg_\w+ --table public\.t --offset 8\n/);
	const all = await ask('--table', 'public.t', '--limit', '20');
	assert.match(all, /b: b{40} -> "w+"\.\.\. \(5000 bytes\)\n/);
	assert.doesNotMatch(all, /w{1000}/);
	const column = await ask('--table', 'public.t', '--limit', '20', '--column', 'b');
	assert.match(column, new RegExp(`-> ${wide}\n`));
	assert.doesNotMatch(column, / a: /);

	const file = join(scratch('alkx-'), 'rows');
	await ask('--export', file);
	assert.deepEqual(parsed(readFileSync(file, 'utf8')), [head, ...rows]);
	const some = join(scratch('alkx-'), 'rows');
	await ask('--export', some, '--table', 'public.log', '--limit', '10');
	assert.deepEqual(parsed(readFileSync(some, 'utf8')).slice(1), logged.slice(0, 10));
	assert.notEqual((await w.operator.run('show', id, '--export', some)).code, 0, 'a file that is there is left alone');
});

test('a row that is too wide to be shown is not held, and hides no other change', async t => {
	const w = await world(t, { setup: `CREATE TABLE d(id int PRIMARY KEY, v text, n int); INSERT INTO d VALUES (1, repeat('x', 35000000), 0), (2, 'y', 0);
		CREATE TABLE f(id int); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE d SET n = 1 WHERE id = 1; RETURN NULL; END $$;
		CREATE TRIGGER f AFTER INSERT ON f FOR EACH ROW EXECUTE FUNCTION f();` });
	const held = await w.agent.execute('UPDATE d SET n = 1 WHERE id = 2');
	const wide = /^REFUSED DIFF_TOO_LARGE: a row of public\.d takes \d+ bytes written down, before and after, and 67108864 can be shown; /;
	for (const sql of ['UPDATE d SET n = 1 WHERE id = 1', 'INSERT INTO f VALUES (1)', 'INSERT INTO d VALUES (3, repeat(chr(1), 12000000), 0)'])
		assert.match((await w.agent.execute(sql)).text, wide, sql);
	const settled = await w.agent.execute('DELETE FROM d WHERE id = 1');
	assert.match((await w.agent.execute('INSERT INTO d VALUES (1, repeat(\'z\', 35000000), 0)', { change_id: settled.json.change_id })).text, wide);
	assert.deepEqual((await w.operator.pending()).map(c => c.id).includes(held.json.change_id), true);
	await w.operator.commit(held.json.change_id);
});
