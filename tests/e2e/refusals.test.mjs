// refusals: an agent is told what it is refused for, where, what would have
// come of it and what is accepted; and one that goes on and on has to wait
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { coverage, fixture, load } from './lib/cases.mjs';
import { cluster, release } from './lib/cluster.mjs';
import { ask } from './lib/wait.mjs';
import { outcome, world } from './lib/world.mjs';

let base;
before(async () => {
	base = await (await cluster()).database(fixture);
});
after(release);

// code, what it would do, the place with words of the agent's own, and advice
const WHOLE = /^REFUSED ([A-Z_]+): (.*\bwould\b.*) \(at character (\d+), near "([^]+)"\)\. ([A-Z][^]+[^.]\.)$/;
const DODGES = /\badd a WHERE|instead of .*DELETE|\bsplit .* to stay|under the limit|bypass/i;

// What a part of the text looks like in an answer.
const shown = s => s.split(/[\r\n\t]/)[0].slice(0, 20).replaceAll('"', '\\"');

test('each refusal of a red case is whole', async t => {
	const w = await world(t, { from: base, config: '[airlock]\nrefusals_max = 0\n' });
	let seen = 0;
	for (const c of load('red'))
		for (const [at, tool] of ['db_query', 'db_execute'].entries()) {
			if (!/^[A-Z_]{4,}$/.test(coverage.red[c.id].split(' ')[at]))
				continue;
			const { text } = await w.agent.call(tool, { sql: c.sql });
			const m = WHOLE.exec(text);
			assert.ok(m, `${c.id} by ${tool}: ${text}`);
			const [, code, , character, near, advice] = m;
			assert.equal(code, coverage.red[c.id].split(' ')[at]);
			const there = [...c.sql].slice(Number(character) - 1).join('');
			assert.ok(near.replaceAll('\\"', '"').startsWith(shown(there).replaceAll('\\"', '"').slice(0, 10)), `${c.id}: ${near} is not at ${character}`);
			assert.doesNotMatch(advice, DODGES, c.id);
			seen++;
		}
	assert.ok(seen > 120, `${seen} refusals`);
});

test('what is refused is pointed at, not the whole statement', async t => {
	const w = await world(t, { from: base });
	for (const [tool, sql, near] of [
		['db_query', ' /* é */ SELECT 1, pg_sleep(1)', 'pg_sleep(1)'],
		['db_query', 'SELECT 1; SELECT 2', 'SELECT 2'],
		['db_query', 'SELECT * FROM depot WHERE depot_id = 1 FOR NO KEY UPDATE', 'FOR NO KEY UPDATE'],
		['db_query', 'WITH d AS (DELETE FROM invoice RETURNING 1) SELECT * FROM d', 'invoice RETURNING 1) SELECT * FROM d'],
		['db_query', 'SELECT * INTO elsewhere FROM depot', 'elsewhere FROM depot'],
		['db_query', 'EXPLAIN ANALYZE DELETE FROM invoice', 'invoice'],
		['db_query', '  \n DROP TABLE depot', 'DROP TABLE depot'],
		['db_execute', 'UPDATE depot SET label = pg_read_file(\'x\')', 'pg_read_file(\'x\')'],
		['db_execute', '; ; TABLE depot', 'TABLE depot'],
		['db_query', `SELECT 1 ${'+'.repeat(300)}1`, null],
		['db_query', 'SELECT \'a\', \0', null],
	]) {
		const { text } = await w.agent.call(tool, { sql });
		if (near === null)
			assert.match(text, /^REFUSED [A-Z_]+: .* \(at character \d+/, text);
		else
			assert.ok(text.includes(`(at character ${[...sql].length - [...near].length + 1}, near "${near}")`), text);
	}
});

test('EXPLAIN ANALYZE of a write is not sent from one tool to the other', async t => {
	const w = await world(t, { from: base });
	const { text } = await w.agent.execute('EXPLAIN ANALYZE DELETE FROM invoice');
	assert.match(text, /^REFUSED READ_IN_EXECUTE: EXPLAIN ANALYZE would write to invoice only to show a plan: here send the write itself, to db_query its EXPLAIN without ANALYZE/);
	assert.equal(outcome(await w.agent.query('EXPLAIN DELETE FROM invoice')), 'rows');
	assert.equal(outcome(await w.agent.execute('EXPLAIN DELETE FROM invoice')), 'READ_IN_EXECUTE');
});

test('bytes that are not UTF-8 are not called a NUL alone', async t => {
	const w = await world(t, { from: base }), raw = w.raw();
	for (const [id, bytes] of [[1, Buffer.from([0xff])], [2, Buffer.from('\\ud800')], [3, Buffer.from('\\u0000')]]) {
		raw.write(Buffer.concat([Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"db_query","arguments":{"sql":"SELECT '`),
			bytes, Buffer.from('\'"}}}\n')]));
		const { result } = await raw.answer(id);
		assert.match(result.content[0].text, /^REFUSED INVALID_ENCODING: the text contains a NUL character, or bytes that are not UTF-8 \(at character 9\)/);
	}
});

test('an agent that keeps being refused has to wait; another has not', async t => {
	const w = await world(t, {
		setup: 'CREATE TABLE t(id int PRIMARY KEY)', name: 'one',
		config: '[airlock]\nrefusals_max = 3\nrefusals_window = 1h\ncool_off = 2s\nshared_uid = yes\n[agent one]\n[agent two]\n',
	});
	const two = await w.connect({ name: 'two' });
	const held = await w.agent.execute('INSERT INTO t VALUES (1)');
	assert.equal(outcome(held), 'pending', held.text);
	for (const [tool, sql, code] of [
		['db_query', 'SELECT nix', '42703'], // an error is no refusal
		['db_query', 'SELECT pg_sleep(1)', 'FUNCTION_OUTSIDE'],
		['db_query', 'SELECT 1', 'rows'], // what is let through takes none back
		['db_execute', 'DROP TABLE t', 'SCHEMA_CHANGE'],
		['db_query', 'SELECT 1', 'rows'],
		['db_query', 'DELETE FROM t', 'WRITE_IN_QUERY'],
		['db_query', 'SELECT 1', 'COOL_OFF'],
		['db_execute', 'INSERT INTO t VALUES (2)', 'COOL_OFF'],
	])
		assert.equal(outcome(await w.agent.call(tool, { sql })), code, sql);
	const told = await w.agent.query('SELECT 1');
	assert.match(told.text, /^REFUSED COOL_OFF: .*for another [12] s\. .*db_status/);
	assert.equal(outcome(await two.query('SELECT 1')), 'rows', 'another agent is not concerned');
	assert.equal((await w.agent.status(held.json.change_id)).json.status, 'pending');
	assert.equal((await w.agent.call('db_schema')).error, false);
	await ask(async () => outcome(await w.agent.query('SELECT 1')) === 'rows', 'the time to be over');
	assert.equal(outcome(await w.agent.query('SELECT pg_sleep(1)')), 'FUNCTION_OUTSIDE', 'counting has begun anew');
	assert.equal(outcome(await w.agent.query('SELECT 1')), 'rows');
	assert.equal((await w.agent.call('db_withdraw', { change_id: held.json.change_id })).json?.status, 'rolled_back');
	const kinds = w.daemon.journal().map(r => r.kind === 'refusal' ? r.code : r.kind);
	assert.equal(kinds.filter(k => k === 'cool_off').length, 1);
	assert.ok(kinds.filter(k => k === 'COOL_OFF').length >= 3);
});

test('without a configuration an agent has sixty a minute', async t => {
	const w = await world(t);
	for (let i = 0; i < 60; i++)
		assert.equal(outcome(await w.agent.query('SELECT pg_sleep(1)')), 'FUNCTION_OUTSIDE', `the ${i + 1}.`);
	assert.equal(outcome(await w.agent.query('SELECT 1')), 'COOL_OFF');
});
