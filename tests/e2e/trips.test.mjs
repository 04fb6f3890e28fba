// trips: how often a call waits for the server, once it is known
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Cluster } from './lib/cluster.mjs';
import { Proxy } from './lib/proxy.mjs';
import { Trips } from './lib/trips.mjs';
import { outcome, world } from './lib/world.mjs';

// A server of its own: a commit of anybody, in any database, makes the next
// look a longer one.
let cluster;
after(() => cluster?.stop());

test('a warm read waits for the server once, a warm write two or three times', async t => {
	cluster = await Cluster.start({ settings: { autovacuum: 'off' } });
	const proxy = await Proxy.start(cluster);
	const trips = new Trips(proxy);
	t.after(() => proxy.close());
	const w = await world(t, { cluster, url: w => proxy.url(w.database), setup: `
		CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t SELECT g, g FROM generate_series(1, 100) g;` });
	const read = sql => trips.of(() => w.agent.query(sql));
	const write = () => trips.of(() => w.agent.execute('UPDATE t SET n = n + 1 WHERE id = 7'));
	const withdraw = r => w.agent.call('db_withdraw', { change_id: r.answer.json.change_id });

	for (let i = 0; i < 5; i++) {
		for (const sql of ['SELECT 1', 'SELECT n FROM t WHERE id = 7']) {
			const r = await read(sql);
			assert.equal(outcome(r.answer), 'rows');
			if (i > 2)
				assert.equal(r.trips, 1, `${sql}, the ${i}th time`);
		}
	}
	// Also where others commit in between, so that the definitions are looked at
	// the long way, but once.  What is sent in two parts may pass for two turns.
	for (const others of ['SELECT 1', 'SELECT pg_current_xact_id()'])
		for (let i = 0; i < 8; i++) {
			await w.sql(others);
			const r = await write();
			assert.equal(outcome(r.answer), 'pending', r.answer.text);
			await withdraw(r);
			if (i < 2)
				continue;
			assert.ok(r.trips >= 2 && r.trips <= 3, `${r.trips} the ${i}th time`);
			assert.ok(r.bound.filter(name => name === 'airlock_same').length <= 1, r.bound.join());
		}
});

// As long as a question is, the server plans it once.
test('what is always asked alike is prepared on the link that asks, once', async t => {
	const c = cluster ?? await Cluster.start();
	const proxy = await Proxy.start(c);
	t.after(() => proxy.close());
	const w = await world(t, { cluster: c, url: w => proxy.url(w.database), setup: `
		CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t SELECT g, g FROM generate_series(1, 100) g;
		CREATE TABLE log(id bigserial PRIMARY KEY, t int, at timestamptz DEFAULT now());
		CREATE FUNCTION logged() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO log(t) VALUES (NEW.id);
			RETURN NULL;
		END $$;
		CREATE TRIGGER logged AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION logged();` });
	let long = [], bound = [], spoil = false;
	proxy.on = ({ from, type, body }) => {
		const [name, sql] = from === 'client' && type === 'P' ? body.toString().split('\0') : [];
		if (sql?.length > 800)
			long.push(sql);
		if (from === 'client' && type === 'B')
			bound.push(body.toString().split('\0')[1]);
		if (!spoil || !name?.startsWith('airlock_kept_'))
			return undefined;
		spoil = false;
		const bad = Buffer.from(`${name}\0SELECT FROM\0\0\0`);
		const head = Buffer.alloc(5, 'P');
		head.writeUInt32BE(bad.length + 4, 1);
		return Buffer.concat([head, bad]);
	};
	const write = async () => {
		long = [];
		bound = [];
		const r = await w.agent.execute('UPDATE t SET n = n + 1 WHERE id = 7');
		if (r.json?.change_id)
			await w.agent.call('db_withdraw', { change_id: r.json.change_id });
		return r;
	};
	// One that cannot be prepared says so, and is tried again.
	spoil = true;
	assert.match((await write()).text, /syntax error/);
	assert.equal(spoil, false);
	for (let i = 0; i < 3; i++) {
		const r = await write();
		assert.equal(outcome(r), 'pending', r.text);
		assert.equal(r.json.complete, true);
		assert.deepEqual(r.json.tables.map(x => [x.table, x.inserted, x.updated]), [['public.t', 0, 1], ['public.log', 1, 0]]);
	}
	assert.deepEqual(long, []);
	// What is known of the other table is only looked over, unless it has changed.
	const looks = () => bound.filter(name => name === 'airlock_table').length;
	assert.equal(looks(), 2);
	await w.sql('ALTER TABLE log ADD COLUMN why text DEFAULT \'new\'');
	const r = await w.agent.execute('UPDATE t SET n = n + 1 WHERE id = 7');
	const { head, rows } = await w.operator.show(r.json.change_id);
	assert.equal(head.complete, true);
	assert.deepEqual(Object.keys(rows.find(x => x.table === 'public.log').after), ['id', 't', 'at', 'why']);
});
