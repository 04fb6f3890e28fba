// visible: rows of a large table found in the pages that its visibility map does
// not call all-visible, where the extension pg_visibility may be asked
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Cluster, cluster } from './lib/cluster.mjs';
import { program, run } from './lib/place.mjs';
import { ask } from './lib/wait.mjs';
import { release, world } from './lib/world.mjs';

after(release);

const BIG = 24000; // more than are counted
const CONFIG = '[airlock]\nsweep_limit = 512K\nnarrow_above = 256K\n'; // big has some 3 MB
const ABOVE = CONFIG.replace('512K', '1G');
const fn = (body, result = 'NULL') => `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} RETURN ${result}; END $$;
	CREATE TRIGGER f AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();`;
const T = 'CREATE TABLE t(id int PRIMARY KEY, a int); INSERT INTO t SELECT g, g FROM generate_series(1, 100) g;';
const ROWS = `INSERT INTO big SELECT g, g, repeat('x', 80) FROM generate_series(1, ${BIG}) g;`;
// By the index the trigger finds its rows; it leads nobody else to them.
const TABLE = `${T} CREATE TABLE big(id int, n int, x text); ${ROWS} CREATE INDEX ON big(n);`;
const SQL = 'UPDATE t SET a = 0 WHERE id < 4';
const CHANGES = fn(`UPDATE big SET n = -1 WHERE n = NEW.id * 5000;`);
const map = (role = 'app', schema = 'public') => `CREATE EXTENSION pg_visibility WITH SCHEMA ${schema};
	GRANT USAGE ON SCHEMA ${schema} TO ${role}; GRANT EXECUTE ON FUNCTION ${schema}.pg_visibility_map(regclass) TO ${role};`;

let skip = false;
before(async () => {
	const c = await cluster();
	const n = await c.sql('postgres', 'SELECT count(*) FROM pg_available_extensions WHERE name = \'pg_visibility\'');
	skip = n === '0' && 'this server has no pg_visibility';
});
const check = (name, body) => test(name, t => skip ? t.skip(skip) : body(t));

// What of big is scanned from one end to the other, as sessions tell when they end.
const scans = w => w.sql('SELECT COALESCE(sum(seq_scan), 0) FROM pg_stat_user_tables WHERE relname ~ \'^big\' AND pg_relation_size(relid) > 0');

// A snapshot of another session can be older than the rows, and VACUUM then leaves
// their pages as they are.
const vacuumed = sql => ask(() => sql(`VACUUM (FREEZE, ANALYZE); SELECT bool_and(relallvisible = relpages) FROM pg_class
	WHERE relname ~ '^big' AND relkind = 'r'`).then(all => all === 't'), 'all pages to be all-visible');

async function held(t, setup, { sql = SQL, config = CONFIG, vacuum = vacuumed, meanwhile, ...more } = {}) {
	const w = await world(t, { setup, config, ...more });
	await vacuum(w.sql);
	await meanwhile?.(w);
	const was = await scans(w);
	const { json, text } = await w.agent.execute(sql);
	assert.equal(json?.status, 'pending', text);
	const { rows } = await w.operator.show(json.change_id);
	return { w, json, was, rows: rows.filter(r => r.table.startsWith('public.big')), big: json.tables.find(x => x.table === 'public.big') };
}

// Whether it was, as expected: what is told may come a moment later.
async function scanned(x, expected) {
	await x.w.operator.rollback(x.json.change_id);
	await x.w.daemon.stop();
	const is = async () => await scans(x.w) - x.was > 0;
	await ask(async () => await x.w.sql('SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = \'client backend\'') === '0',
		'the sessions to end');
	if (expected)
		await ask(is, 'a scan');
	else
		assert.equal(await is(), false);
}

const counts = ({ big }) => [big.inserted, big.updated, big.deleted];
const why = json => json.reasons.find(r => r.code === 'INCOMPLETE')?.text ?? '';

const cases = {
	'rows updated': [TABLE + CHANGES, [0, 3, 0]],
	'rows deleted': [TABLE + fn('DELETE FROM big WHERE n = NEW.id * 5000;'), [0, 0, 3]],
	'rows inserted where others were': [`${TABLE} DELETE FROM big WHERE n % 1000 = 0; VACUUM big;
		${fn('INSERT INTO big VALUES (1000000 + NEW.id, NEW.id, \'new\');')}`, [3, 0, 0]],
	'rows of each kind': [TABLE + fn(`INSERT INTO big VALUES (-NEW.id, NEW.id, 'new'); UPDATE big SET n = -1 WHERE n = NEW.id * 5000;
		DELETE FROM big WHERE n = NEW.id * 7000;`), [3, 3, 3]],
	'values that are kept apart': [`${T} CREATE TABLE big(id int, n int, x text); ALTER TABLE big ALTER x SET STORAGE external;
		INSERT INTO big SELECT g, g, CASE WHEN g % 5000 = 0 THEN repeat('long', 3000) ELSE repeat('x', 80) END FROM generate_series(1, ${BIG}) g;
		CREATE INDEX ON big(n); ${fn('UPDATE big SET x = x || \'er\' WHERE n = NEW.id * 5000;')}`, [0, 3, 0]],
	'rows in parts of a table': [`${T} CREATE TABLE big(id int, n int, x text) PARTITION BY HASH (id);
		CREATE TABLE big1 PARTITION OF big FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE big2 PARTITION OF big FOR VALUES WITH (MODULUS 2, REMAINDER 1);
		${ROWS} CREATE INDEX ON big(n); ${CHANGES}`, [0, 3, 0]],
	'rows of an heir': [`${T} CREATE TABLE big(id int, n int, x text); CREATE TABLE big_more(y int) INHERITS (big);
		${ROWS.replace('INTO big', 'INTO big_more(id, n, x)')} CREATE INDEX ON big_more(n); ${CHANGES}`, [0, 3, 0], 'public.big_more'],
	'rows that others are locked beside': [TABLE + fn(`PERFORM FROM big WHERE n > NEW.id * 5000 - 10 AND n < NEW.id * 5000 + 10 FOR UPDATE;
		UPDATE big SET n = -1 WHERE n = NEW.id * 5000;`), [0, 3, 0]],
};

for (const [name, [setup, expected, table = 'public.big']] of Object.entries(cases))
	check(`above sweep_limit, ${name} are found with the map`, async t => {
		const x = await held(t, setup + map());
		x.big = x.json.tables.find(y => y.table === table);
		assert.equal(x.json.complete, true, JSON.stringify(x.json));
		assert.deepEqual(counts(x), expected);
		assert.equal(x.rows.length, expected[0] + expected[1] + expected[2]);
		await scanned(x, false);
	});

check('above sweep_limit, no row is found without the map', async t => {
	const x = await held(t, TABLE + CHANGES);
	assert.deepEqual([x.json.complete, ...counts(x)], [false, 0, 3, 0]);
	assert.match(why(x.json), /sweep_limit/);
	await scanned(x, false);
});

check('the extension may be in any schema', async t => {
	const x = await held(t, `${TABLE} ${CHANGES} CREATE SCHEMA "Ex, ten's"; ${map('app', '"Ex, ten\'s"')}`);
	assert.deepEqual([x.json.complete, ...counts(x)], [true, 0, 3, 0]);
});

check('more rows than are kept in mind are found too', async t => {
	const setup = `${TABLE} INSERT INTO big SELECT 0, -g, repeat('x', 80) FROM generate_series(1, 100000) g; ${fn('DELETE FROM big WHERE n > 1000;')}`;
	const config = '[airlock]\nsweep_limit = 4M\nnarrow_above = 256K\n', sql = 'UPDATE t SET a = 0 WHERE id = 1';
	const x = await held(t, setup + map(), { config, sql });
	assert.deepEqual([x.json.complete, ...counts(x), x.rows.length], [true, 0, 0, BIG - 1000, BIG - 1000], JSON.stringify(x.json));
	assert.equal((await held(t, setup, { config, sql })).json.complete, false);
});

check('where the login may not ask, all goes as without the map', async t => {
	for (const [config, complete] of [[CONFIG, false], [ABOVE, true]]) {
		const x = await held(t, TABLE + CHANGES + map('postgres'), { config });
		assert.deepEqual([x.json.complete, ...counts(x)], [complete, 0, 3, 0]);
		await scanned(x, complete);
	}
});

check('below sweep_limit a scan is spared, unless it would be as good', async t => {
	const x = await held(t, TABLE + CHANGES + map(), { config: ABOVE });
	assert.deepEqual([x.json.complete, ...counts(x)], [true, 0, 3, 0]);
	await scanned(x, false);
	const y = await held(t, TABLE + CHANGES + map(), { config: ABOVE, meanwhile: w => w.sql('UPDATE big SET x = x WHERE n % 50 = 0') });
	assert.deepEqual([y.json.complete, ...counts(y)], [true, 0, 3, 0]);
	await scanned(y, true);
});

// A function of the name that is not the extension's own would be asked by the
// observer, as its login.
check('a function that is not the extension\'s own is not called', async t => {
	const trap = schema => `CREATE FUNCTION ${schema}.pg_visibility_map(regclass, OUT blkno bigint, OUT all_visible boolean, OUT all_frozen boolean)
		RETURNS SETOF record LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT g, false, false FROM generate_series(0::bigint, 40) g; END $$;`;
	const count = 'DO $$ BEGIN EXECUTE format(\'ALTER DATABASE %I SET track_functions = pl\', current_database()); END $$;';
	const own = 'CREATE EXTENSION pg_visibility;';
	const calls = w => w.sql('SELECT COALESCE(sum(calls), 0) FROM pg_stat_user_functions WHERE funcname LIKE \'pg_visibility%\'');
	for (const [name, setup, complete] of [
		['without the extension', trap('public'), false],
		['beside one of another schema', `CREATE SCHEMA a; ${map('app', 'a')} ${trap('public')}`, true],
		['beside one that may not be asked', `CREATE SCHEMA a; ${map('postgres', 'a')} ${trap('public')}`, false],
		['in the place of its own', `${own} ${trap('public').replace('CREATE', 'CREATE OR REPLACE')}; GRANT EXECUTE ON FUNCTION pg_visibility_map(regclass) TO app;`, false],
		['in the place of one taken out', `${own} ALTER EXTENSION pg_visibility DROP FUNCTION pg_visibility_map(regclass);
			GRANT EXECUTE ON FUNCTION pg_visibility_map(regclass) TO app;`, false],
		['of another list of arguments', `${map()} ${trap('public').replace('regclass', 'oid')}`, true],
	]) {
		const x = await held(t, count + TABLE + CHANGES + setup);
		assert.deepEqual([x.json.complete, ...counts(x)], [complete, 0, 3, 0], name);
		await scanned(x, false);
		assert.equal(await calls(x.w), '0', name);
	}
});

check('a page that a change wrote is not all-visible while the change is held', async t => {
	const x = await held(t, TABLE + CHANGES + map());
	const blocks = await x.w.sql('SELECT string_agg(blkno::text, \',\' ORDER BY blkno) FROM pg_visibility_map(\'big\') WHERE NOT all_visible');
	assert.equal(blocks.split(',').length, 4); // of three rows, and where they are now
	await x.w.sql('VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) big');
	assert.equal(await x.w.sql('SELECT string_agg(blkno::text, \',\' ORDER BY blkno) FROM pg_visibility_map(\'big\') WHERE NOT all_visible'), blocks);
	const { json, text } = await x.w.agent.execute('UPDATE t SET a = 0 WHERE id = 4', { change_id: x.json.change_id });
	assert.equal(json?.complete, true, text);
	assert.equal(json.tables.find(y => y.table === 'public.big').updated, 4);
	await scanned(x, false);
});

check('a map without bits is of no use, and of no harm', async t => {
	const gone = w => w.sql('SELECT pg_truncate_visibility_map(\'big\')');
	const below = await held(t, TABLE + CHANGES + map(), { config: ABOVE, meanwhile: gone });
	assert.deepEqual([below.json.complete, ...counts(below)], [true, 0, 3, 0]);
	await scanned(below, true);
	const above = await held(t, TABLE + CHANGES + map(), { meanwhile: gone });
	assert.deepEqual([above.json.complete, ...counts(above)], [false, 0, 3, 0]);
	assert.match(why(above.json), /sweep_limit/);
});

check('the grants are enough for the observer, and give it to nobody else', async t => {
	const own = await Cluster.start();
	t.after(() => own.stop());
	const grants = await run(program('airlock'), ['grants']);
	const may = login => own.sql('shop', `SET ROLE ${login}; SELECT count(*) FROM "Ex".pg_visibility_map('public.t') WHERE NOT all_visible`)
		.then(n => n === '1', () => false);
	await own.sql('postgres', 'CREATE DATABASE shop');
	await own.sql('shop', `${T} ${grants.stdout}`); // and without the extension it is nothing
	await own.sql('shop', `CREATE SCHEMA "Ex"; CREATE EXTENSION pg_visibility SCHEMA "Ex"; ${grants.stdout}`);
	assert.deepEqual(await Promise.all(['observer', 'writer', 'reader'].map(x => may(`airlock_${x}`))), [true, false, false]);
});

// The map of a table as it was before rows of every page, or of some, were
// written: it calls them all-visible, but the pages know nothing of that, so that
// nobody clears a bit.
check('a map that says too much is not believed', async t => {
	const own = await Cluster.start();
	t.after(() => own.stop());
	const liars = await Promise.all([['', CHANGES], ['AND id < 9000', CHANGES], ['AND id < 20000', fn('DELETE FROM big WHERE n > 1000;')]].map(async ([some, change]) => {
		const name = await own.database(TABLE + change + map());
		await vacuumed(text => own.sql(name, text));
		const path = join(own.data, await own.sql(name, 'SELECT pg_relation_filepath(\'big\')'));
		await own.sql(name, 'CHECKPOINT');
		const said = readFileSync(`${path}_vm`);
		await own.sql(name, `UPDATE big SET n = n WHERE id % 10 = 5 ${some}`);
		return { name, path, said };
	}));
	await own.restart('fast', () => liars.forEach(({ path, said }) => writeFileSync(`${path}_vm`, said)));
	const many = await held(t, '', { cluster: own, from: liars.pop().name, config: CONFIG.replace('512K', '2M'), vacuum: async () => {}, sql: 'UPDATE t SET a = 0 WHERE id = 1' });
	assert.deepEqual([many.json.complete, ...counts(many), many.rows.length], [false, 0, 0, BIG - 1000, 0]);
	for (const { name } of liars)
		for (const [config, complete] of [[ABOVE, true], [CONFIG, false]]) {
			const x = await held(t, '', { cluster: own, from: name, config, vacuum: async () => {} });
			assert.equal(await x.w.sql('SELECT bool_and(all_visible) FROM pg_visibility_map(\'big\') WHERE blkno = (SELECT (ctid::text::point)[0] FROM big WHERE n = 5000)'), 't');
			assert.deepEqual([x.json.complete, ...counts(x)], [complete, 0, 3, 0]);
			assert.deepEqual(x.rows.map(r => Number(r.before.n)).sort((a, b) => a - b), complete ? [5000, 10000, 15000] : []);
			await scanned(x, complete);
		}
});
