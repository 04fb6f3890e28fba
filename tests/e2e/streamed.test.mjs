// streamed: many old rows, paired while more of them come
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { Agent, RawAgent } from './lib/agent.mjs';
import { Daemon } from './lib/daemon.mjs';
import { Proxy } from './lib/proxy.mjs';
import { cluster, release } from './lib/cluster.mjs';
import { ask } from './lib/wait.mjs';
import { world } from './lib/world.mjs';

after(release);

const ROWS = 24000;
const UPDATE = 'UPDATE v SET n = n + 1';

// The writer is asked about the first rows, and does not hear it until it is
// released; the observer goes straight to the server.
async function stalled(t) {
	const c = await cluster();
	const database = await c.database(`CREATE TABLE t(n int, b text); CREATE VIEW v AS SELECT * FROM t;
		INSERT INTO t SELECT g, repeat('b', 1500) FROM generate_series(1, ${ROWS}) g;`);
	const proxy = await Proxy.start(c);
	const config = ['[database d]', `writer_dsn = ${proxy.url(database)}`, `observer_dsn = ${c.url(database)}`, '[agent agent]', 'access = data', ''];
	const daemon = await Daemon.start({ config: config.join('\n') });
	const agent = await Agent.connect(daemon, {});
	const raw = RawAgent.open(daemon);
	t.after(async () => {
		await agent.close();
		await raw.close();
		await daemon.stop();
		proxy.close();
	});
	const w = { agent, raw, daemon, sql: text => c.sql(database, text) };
	w.rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${daemon.pid}/status`, 'utf8'))[1]);
	w.idle = w.rss();
	w.held = proxy.meet(m => m.from === 'client' && m.type === 'P' && m.body.includes('currtid2('), 'stall');
	w.waits = async () => {
		const link = await w.held;
		await ask(async () => await w.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'") === '1',
			'the observer to wait for airlockd');
		return link;
	};
	// That nothing is left of it, and the daemon goes on.
	w.isOver = async () => {
		await ask(async () => await w.sql(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND (state LIKE 'idle in transaction%' OR wait_event = 'ClientWrite')`) === '0', 'its transactions to be gone');
		assert.equal(await w.sql(`SELECT sum(n) = ${ROWS} * ${ROWS + 1} / 2 FROM t`), 't');
		const { json, text } = await agent.execute('UPDATE v SET n = 0 WHERE n < 10');
		assert.equal(json?.complete, true, text);
	};
	return w;
}

test('rows wait in the server while the writer is asked about those before', async t => {
	const w = await stalled(t);
	const answer = w.agent.execute(UPDATE);
	const writer = await w.waits();
	assert.ok(w.rss() - w.idle < 16 * 1024, `36 MB are to be read, and ${w.rss() - w.idle} kB of them are held`);
	writer.release();
	const { json, text } = await answer;
	assert.equal(json?.complete, true, text);
	assert.equal(json.tables[0].updated, ROWS);
});

test('an observer that is lost meanwhile ends the statement', async t => {
	const w = await stalled(t);
	const answer = w.agent.execute(UPDATE);
	const writer = await w.waits();
	await w.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'");
	writer.release();
	assert.match((await answer).text, /^REFUSED UNAVAILABLE: the observer's link was lost/);
	await w.isOver();
});

test('a writer that is lost meanwhile ends the statement', async t => {
	const w = await stalled(t);
	const answer = w.agent.execute(UPDATE);
	const writer = await w.waits();
	writer.cut();
	assert.match((await answer).text, /^REFUSED LOST: /);
	await w.isOver();
});

test('a call that is cancelled meanwhile leaves nothing', async t => {
	const w = await stalled(t);
	w.raw.send({ id: 'i', method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } } });
	await w.raw.answer('i');
	w.raw.send({ method: 'notifications/initialized' });
	w.raw.send({ id: 7, method: 'tools/call', params: { name: 'db_execute', arguments: { sql: UPDATE } } });
	const writer = await w.waits();
	w.raw.send({ method: 'notifications/cancelled', params: { requestId: 7 } });
	await w.raw.tool('db_query', { sql: 'SELECT 1' }); // it has been read
	writer.release();
	await w.isOver();
});

test('pieces of rows that are large, and of many, come back whole', async t => {
	const w = await world(t, { setup: `CREATE TABLE t(id int, n int, b text); CREATE VIEW v AS SELECT * FROM t;
		INSERT INTO t SELECT g, NULLIF(g % 5, 0), CASE WHEN g % 500 = 0 THEN repeat(md5(g::text), 8000) ELSE g::text END FROM generate_series(1, 5000) g;` });
	const was = await w.sql("SELECT id || ' ' || md5(b) || ' ' || coalesce(n, -1) FROM t WHERE id > 100 ORDER BY id");
	const { json, text } = await w.agent.execute("UPDATE v SET b = 'x' || b WHERE id > 100");
	assert.equal(json?.complete, true, text);
	const { rows } = await w.operator.show(json.change_id);
	assert.ok(rows.every(r => r.op === 'update' && r.after.b === `x${r.before.b}` && r.after.n === r.before.n && r.after.id === r.before.id));
	assert.equal(rows.map(r => r.before).sort((a, b) => a.id - b.id)
		.map(r => `${r.id} ${createHash('md5').update(r.b).digest('hex')} ${r.n ?? -1}`).join('\n'), was);
});
