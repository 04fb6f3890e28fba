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
