// wrap: transaction ids that have come round are told from our own
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { join } from 'node:path';
import { bindir, Cluster } from './lib/cluster.mjs';
import { run } from './lib/place.mjs';
import { world } from './lib/world.mjs';

let cluster;
before(async () => { cluster = await Cluster.start({ settings: { fsync: 'off', autovacuum: 'off' } }); });
after(() => cluster.stop());

// So many ids have their fate in one file.
const SEGMENT = 1048576;

// Freezes all rows, and goes on with another id.
async function jump(name, epoch, xid) {
	for (const db of ['postgres', 'template1', 'template0', name])
		await cluster.sql(db, 'VACUUM (FREEZE)');
	const fates = join(cluster.data, 'pg_xact', Math.floor(xid / SEGMENT).toString(16).toUpperCase().padStart(4, '0'));
	await reset(fates, ['-e', String(epoch), '-x', String(xid)]);
}

// Ends the server, makes the file that it needs then, and starts it elsewhere.
async function reset(file, where) {
	await cluster.restart('fast', async () => {
		for (const [program, args] of [['truncate', ['-s', String(SEGMENT / 4), file]],
			[join(bindir, 'pg_resetwal'), ['-f', ...where, '-D', cluster.data]]]) {
			const { code, stderr } = await run(program, args, { home: cluster.dir });
			assert.equal(code, 0, stderr);
		}
	});
}

// By their numbers alone ids of subtransactions look like multixacts while
// those are few; where they are many, only what is asked of ids finds them.
test('rows written in a block are found where multixacts have larger numbers', async t => {
	await reset(join(cluster.data, 'pg_multixact/offsets', (50000000 / 65536 | 0).toString(16).toUpperCase().padStart(4, '0')), ['-m', '50000000,50000000']);
	const w = await world(t, { cluster, setup: `
		CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'old'), (2, 'old');
		CREATE TABLE u (id int PRIMARY KEY);
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			BEGIN UPDATE t SET v = 'new' WHERE id = 1; EXCEPTION WHEN division_by_zero THEN NULL; END; RETURN NULL; END $$;
		CREATE TRIGGER tr AFTER INSERT ON u FOR EACH ROW EXECUTE FUNCTION f();` });
	const answer = await w.agent.execute('INSERT INTO u VALUES (1)');
	assert.equal(answer.json?.complete, true, answer.text);
	const { rows } = await w.operator.show(answer.json.change_id);
	assert.deepEqual(rows.filter(r => r.table === 'public.t').map(r => [r.op, r.before, r.after]),
		[['update', { id: '1', v: 'old' }, { id: '1', v: 'new' }]]);
});

// Rows that were frozen an epoch ago keep the id that wrote them, and by its 32
// bits it can be one of ours.
test('rows of an earlier epoch with ids like ours are not ours', async t => {
	const name = await cluster.database(`
		CREATE TABLE t (id int PRIMARY KEY, v text);
		CREATE TABLE u (id int PRIMARY KEY);
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			UPDATE t SET v = 'new' WHERE id = 1; INSERT INTO t VALUES (100, 'new'); RETURN NULL; END $$;
		CREATE TRIGGER tr AFTER INSERT ON u FOR EACH ROW EXECUTE FUNCTION f();`);
	await cluster.sql(name, Array.from({ length: 40 }, (_, i) => `INSERT INTO t VALUES (${i}, 'old');`).join('\n'));
	const xid = Number(await cluster.sql(name, 'SELECT min(xmin::text::int8) FROM t'));
	await cluster.sql('postgres', 'ALTER DATABASE template0 ALLOW_CONNECTIONS true');
	// in steps, none of them further than ids reach
	await jump(name, 0, 1400 * SEGMENT);
	await jump(name, 0, 2800 * SEGMENT);
	await jump(name, 1, xid + 1);
	const w = await world(t, { cluster, url: () => cluster.url(name) });
	const answer = await w.agent.execute('INSERT INTO u VALUES (1)');
	assert.equal(answer.json?.complete, true, answer.text);
	const ours = Number(await cluster.sql(name, 'SELECT txid_current() & 4294967295'));
	assert.ok(ours > xid && ours < xid + 40, `${ours} is among the ids of the rows`);
	const { rows } = await w.operator.show(answer.json.change_id);
	assert.deepEqual(rows.filter(r => r.table === 'public.t').map(r => [r.op, r.before, r.after]).sort(),
		[['insert', null, { id: '100', v: 'new' }], ['update', { id: '1', v: 'old' }, { id: '1', v: 'new' }]]);
});
