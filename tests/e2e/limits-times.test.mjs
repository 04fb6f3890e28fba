// limits-times: what comes in time is let through, what does not is refused
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { cluster } from './lib/cluster.mjs';
import { Proxy } from './lib/proxy.mjs';
import { ask } from './lib/wait.mjs';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const setup = 'CREATE TABLE t(id int PRIMARY KEY, a text); INSERT INTO t SELECT g, \'x\' FROM generate_series(1, 20) g;';
const slow = 'SELECT count(*) FROM generate_series(1, 100000000)';
const HOUR = 3600000;

// How long it took, in milliseconds, and what came of it.
async function timed(answer) {
	const began = performance.now();
	const a = await answer();
	return Object.assign(a, { took: performance.now() - began });
}

test('read_timeout and write_timeout are what the server ends a statement at', async t => {
	const w = await world(t, { setup, config: '[airlock]\nread_timeout = 301ms\nwrite_timeout = 302ms\n' });
	const settings = 'current_setting(\'statement_timeout\')';
	assert.deepEqual((await w.agent.query(`SELECT ${settings}`)).json.rows, [['301ms']], 'under it');
	const read = await timed(() => w.agent.query(slow));
	assert.match(read.text, /^ERROR 57014: .*301 ms \(read_timeout\)/);
	assert.ok(read.took >= 301, `${read.took}`);
	const { json } = await w.agent.execute(`UPDATE t SET a = ${settings} WHERE id = 1`);
	assert.equal(json.status, 'pending', 'under it');
	const { rows } = await w.operator.show(json.change_id);
	assert.match(JSON.stringify(rows), /"302ms"/);
	const write = await timed(() => w.agent.execute(`UPDATE t SET a = (${slow}) WHERE id = 2`));
	assert.match(write.text, /^ERROR 57014: .*write_timeout is 302 ms/);
	assert.ok(write.took >= 302, `${write.took}`);
	assert.equal((await w.agent.status(json.change_id)).json.status, 'pending', 'what was held is');
});

test('lock_timeout', async t => {
	const waits = async w => {
		const holder = await w.agent.execute('UPDATE t SET a = \'y\' WHERE id = 1');
		assert.equal(outcome(holder), 'pending', holder.text);
		const answer = timed(() => w.agent.execute('UPDATE t SET a = \'z\' WHERE id = 1'));
		return [holder.json.change_id, answer];
	};
	const over = await world(t, { setup, config: '[airlock]\nlock_timeout = 101ms\n' });
	const [, late] = await waits(over);
	const refused = await late;
	assert.match(refused.text, /^ERROR 55P03: /);
	assert.ok(refused.took >= 101, `${refused.took}`);
	const { json } = await over.agent.execute('UPDATE t SET a = current_setting(\'lock_timeout\') WHERE id = 2');
	assert.match(JSON.stringify((await over.operator.show(json.change_id)).rows), /"101ms"/);

	const under = await world(t, { setup, config: '[airlock]\nlock_timeout = 10m\nwrite_timeout = 1h\n' });
	const [holder, answer] = await waits(under);
	await ask(async () => await under.sql('SELECT count(*) FROM pg_locks WHERE NOT granted') !== '0', 'it to wait for the lock');
	await under.operator.rollback(holder);
	assert.equal(outcome(await answer), 'pending', 'the lock was had in time');
});

test('ttl', async t => {
	const w = await world(t, { setup, config: '[airlock]\nttl = 2s\n' });
	const hold = async (x, id) => {
		const began = Date.now();
		const { json, text } = await x.agent.execute(`UPDATE t SET a = 'y' WHERE id = ${id}`);
		assert.equal(json?.status, 'pending', text);
		return { id: json.change_id, began, held: Date.now(), expires: Date.parse(json.expires_at) };
	};
	const change = await hold(w, 1);
	const end = await w.agent.status(change.id, { wait_s: 50 });
	assert.deepEqual([end.json.status, end.json.why], ['rolled_back', 'expired']);
	assert.ok(Date.now() >= change.began + 2000, 'not before its time');
	assert.equal(await w.sql('SELECT a FROM t WHERE id = 1'), 'x');

	const long = await world(t, { setup, config: '[airlock]\nttl = 1h\n' });
	const { began, held, expires, id } = await hold(long, 1);
	assert.ok(expires >= began + HOUR && expires <= held + HOUR, `${began} ${expires} ${held}`);
	assert.equal((await long.operator.commit(id)).code, 0, 'what is decided in time is done');
	assert.equal(await long.sql('SELECT a FROM t WHERE id = 1'), 'y');
});

test('connect_timeout', async t => {
	const c = await cluster();
	const start = async config => {
		const proxy = await Proxy.start(c);
		const stalled = new Set();
		proxy.on = m => m.from === 'server' && stalled.add(m.link) ? 'stall' : undefined;
		const w = await world(t, { setup, cluster: c, url: x => proxy.url(x.database), config });
		t.after(() => proxy.close());
		await ask(() => stalled.size > 0, 'the server to be asked');
		return { ...w, proxy, stalled };
	};
	const status = async w => (await w.operator.json('status')).database;
	const over = await start('[airlock]\nconnect_timeout = 200ms\n');
	await ask(async () => (await over.operator.json('status')).logins.some(l => /did not answer the connection in time/.test(l.why)), 'it to give up');
	assert.equal(outcome(await over.agent.query('SELECT 1')), 'DATABASE_DOWN');
	over.proxy.on = () => undefined;
	await ask(async () => await status(over) === 'up', 'the next connection, which is answered');
	assert.equal(outcome(await over.agent.query('SELECT 1')), 'rows');

	const under = await start('[airlock]\nconnect_timeout = 10m\n');
	assert.notEqual(await status(under), 'up', 'it waits');
	under.proxy.on = () => undefined;
	for (const link of under.stalled)
		link.release();
	await ask(async () => await status(under) === 'up', 'the same connection, which is answered in time');
	assert.equal(outcome(await under.agent.query('SELECT 1')), 'rows');
	assert.equal(under.daemon.log.all.filter(l => /in time/.test(l)).length, 0);
});
