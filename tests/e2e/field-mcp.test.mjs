// field-mcp: field cases about what an MCP client sees of the server
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { load } from './lib/cases.mjs';
import { program, run, scratch } from './lib/place.mjs';
import { ask, exited, within } from './lib/wait.mjs';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const find = id => load('field').find(c => c.id === id);
const jsonLines = text => text.split('\n').filter(Boolean).map(line => JSON.parse(line));

test('F099: what fails at start never speaks on stdout but in JSON-RPC', async t => {
	const home = scratch();
	const hello = JSON.stringify({
		jsonrpc: '2.0', id: 1, method: 'initialize',
		params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
	});
	const bridge = await within(10000, run(program('airlock-mcp'),
		['--state-dir', join(home, 'nobody')], { home, input: `${hello}\n` }), 'the bridge to give up');
	assert.ok(bridge.code !== 0 || jsonLines(bridge.stdout).some(m => m.error));
	for (const message of jsonLines(bridge.stdout))
		assert.equal(message.jsonrpc, '2.0');
	assert.match(bridge.stderr, /airlockd/);

	const bad = [['--db', 'postgresql://%zz/'], ['--db', 'dbname=x', '--config', join(home, 'none.conf')]];
	for (const [i, args] of bad.entries()) {
		const r = await within(20000, run(program('airlockd'),
			[...args, '--state-dir', join(home, `s${i}`)], { home }), 'airlockd to refuse');
		assert.notEqual(r.code, 0);
		assert.equal(r.stdout, '');
		assert.notEqual(r.stderr, '');
	}
	const w = await world(t);
	const second = await within(20000, run(program('airlockd'), w.daemon.args, { home }), 'the second to refuse');
	assert.notEqual(second.code, 0);
	assert.equal(second.stdout, '');
	assert.match(second.stderr, /state|running|lock/);
	assert.equal((await w.daemon.ping()).code, 0);
});

test('F101: a client that goes leaves its change to the operator, and no process', async t => {
	const c = find('F101');
	for (const way of ['end of input', 'SIGTERM', 'SIGINT', 'SIGKILL']) {
		await t.test(way, async t => {
			const w = await world(t, { setup: c.setup });
			const raw = w.raw();
			const held = await raw.tool('db_execute', { sql: c.agent_sql });
			const { change_id } = JSON.parse(held.text);
			raw.send({
				id: 77, method: 'tools/call', params: {
					name: 'db_query', arguments: { sql: 'SELECT count(*) FROM generate_series(1, 2000000000)' },
				},
			});
			const working = `SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND query LIKE '%2000000000%' AND state = 'active'
				AND pid <> pg_backend_pid()`;
			await ask(async () => await w.sql(working) === '1', 'the read to run');
			if (way === 'end of input')
				raw.child.stdin.end();
			else
				process.kill(raw.child.pid, way);
			await within(2000, exited(raw.child), `the bridge to end by ${way}`);
			await ask(async () => await w.sql(working) === '0', 'the read to be cancelled');
			const [pending] = await w.operator.pending();
			assert.equal(pending.id, change_id);
			await w.operator.rollback(change_id);
			assert.equal(await w.sql(`SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND state = 'idle in transaction'`), '0');
		});
	}
});

test('F102: a cut result says so, a whole one does not', async t => {
	const w = await world(t);
	const series = n => `SELECT g FROM generate_series(1, ${n}) g`;
	for (const [n, max_rows, rows, truncated] of [
		[5000, 10, 10, true], [11, 10, 10, true], [10, 10, 10, false], [0, 10, 0, false], [5000, 500, 500, true]]) {
		const { json, text } = await w.agent.query(series(n), { max_rows });
		assert.deepEqual([json?.row_count, json?.rows.length, json?.truncated], [rows, rows, truncated], text);
	}
	const { json } = await w.agent.query(find('F102').agent_sql);
	assert.equal(json.truncated, true);
});

test('F103: wide rows are cut and marked, within the byte cap', async t => {
	const w = await world(t);
	const peak = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${w.daemon.pid}/status`, 'utf8'))[1]);
	await w.agent.query('SELECT 1');
	const before = peak();
	const { json, text } = await w.agent.query(find('F103').agent_sql);
	assert.ok(text.length <= 40000, `${text.length} bytes`);
	assert.ok(json.rows.length >= 1);
	assert.match(text, /"truncated":true|cut|truncated/);
	if (!readFileSync(program('airlockd')).includes('__asan_init'))
		assert.ok(peak() - before < 40 * 1024, `the daemon grew by ${peak() - before} kB`);
});

test('F105: an error has its SQLSTATE and position, and no connection string', async t => {
	const secret = 'p@ss/w:rd#%?&+ "x';
	const w = await world(t, {
		setup: `DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'f_pw')
			THEN CREATE ROLE f_pw LOGIN; END IF; END $$; ALTER ROLE f_pw PASSWORD '${secret}'`,
		url: w => w.cluster.url(w.database, 'f_pw', secret),
	});
	const answer = await w.agent.query(find('F105').agent_sql);
	assert.equal(outcome(answer), '42P01', answer.text);
	assert.match(answer.text, /15/, 'the position of the name');
	const argv = readFileSync(`/proc/${w.daemon.pid}/cmdline`, 'latin1');
	for (const [what, said] of Object.entries({ answer: answer.text, log: w.daemon.log.text(), argv }))
		for (const form of [secret, encodeURIComponent(secret)])
			assert.ok(!said.includes(form), `no password in the ${what}`);
	assert.ok(!answer.text.includes(w.cluster.dir));
});

test('F130: the notes on each tool say what it can do', async t => {
	const w = await world(t);
	for (const kind of ['v1', 'v2-legacy', 'v2-auto', 'v2-modern']) {
		const { client } = await w.connect({ kind });
		const { tools } = await client.listTools();
		const notes = Object.fromEntries(tools.map(tool => [tool.name, tool.annotations]));
		for (const name of ['db_schema', 'db_query', 'db_status'])
			assert.equal(notes[name].readOnlyHint, true, `${kind} ${name}`);
		for (const name of ['db_execute', 'db_withdraw'])
			assert.equal(notes[name].readOnlyHint, false, `${kind} ${name}`);
		for (const note of Object.values(notes))
			assert.deepEqual(Object.keys(note).filter(k => k !== 'title').sort(),
				['destructiveHint', 'idempotentHint', 'openWorldHint', 'readOnlyHint']);
	}
});

test('F131: a read that runs too long is told apart, and frees its backend', async t => {
	const w = await world(t, { config: '[airlock]\nread_timeout = 500ms\n' });
	const answer = await w.agent.query(find('F131').agent_sql);
	assert.equal(outcome(answer), '57014', answer.text);
	assert.match(answer.text, /statement timeout|read_timeout/);
	assert.equal(await w.sql(`SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()`), '0');
});
