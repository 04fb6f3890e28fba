// field-operator: field cases about deciding: the right change, once, in the open
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { load } from './lib/cases.mjs';
import { withoutTerminal } from './lib/operator.mjs';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const find = id => load('field').find(c => c.id === id);

// A world in which a case's statements are held: w and the ids.
async function holding(t, id) {
	const c = find(id);
	const w = await world(t, { setup: c.setup.split(' -- ')[0] });
	const ids = [];
	for (const sql of [c.agent_sql].flat()) {
		const answer = await w.agent.execute(sql);
		assert.equal(outcome(answer), 'pending', answer.text);
		ids.push(answer.json.change_id);
	}
	return { w, ids };
}

const token = async (w, id) => (await w.operator.pending()).find(c => c.id === id).token;

test('F107: a commit decides the change that it names', async t => {
	const { w, ids: [first, second] } = await holding(t, 'F107');
	await w.operator.commit(second);
	assert.equal(await w.sql('SELECT count(*) FROM accounts WHERE id = 2'), '0');
	assert.equal(await w.sql('SELECT balance FROM accounts WHERE id = 1'), '100.00');
	assert.equal((await w.agent.status(first)).json.status, 'pending');
	const unknown = await w.operator.run('commit', `chg_0123456789@${'0'.repeat(64)}`);
	assert.equal(unknown.code, 1, unknown.stderr);
	for (const words of [[], [''], ['chg_0123456789']]) // bare: only on a terminal
		assert.equal((await w.operator.run('commit', ...words)).code, 2);
	assert.equal((await w.operator.pending()).length, 1);
});

test('F108: no prefix, no "latest", no "all"', async t => {
	const { w, ids } = await holding(t, 'F108');
	for (const word of ['chg_', ids[0].slice(0, -1), 'latest', 'all', ids[0].toUpperCase()]) {
		const { code, stderr } = await w.operator.run('commit', word);
		assert.ok(code === 1 || code === 2, `${word}: ${code} ${stderr}`);
	}
	assert.deepEqual((await w.operator.pending()).map(c => c.id).sort(), ids.sort());
});

test('F109: of two decisions at once one wins, and the other is told', async t => {
	const { w, ids: [id] } = await holding(t, 'F109');
	const what = await token(w, id);
	const both = await Promise.all([w.operator.run('commit', what), w.operator.run('commit', what)]);
	assert.deepEqual(both.map(r => r.code).sort(), [0, 1], JSON.stringify(both));
	assert.match(both.find(r => r.code === 1).stderr, /committed|decided|DECIDED|BUSY/);
	assert.equal(await w.sql('SELECT n FROM ctr'), '1');

	const { json } = await w.agent.execute(find('F109').agent_sql);
	const other = await token(w, json.change_id);
	const [commit, rollback] = await Promise.all([w.operator.run('commit', other),
		w.operator.run('rollback', json.change_id, '--reason', 'no')]);
	assert.deepEqual([commit.code, rollback.code].sort(), [0, 1]);
	const applied = commit.code === 0;
	assert.equal(await w.sql('SELECT n FROM ctr'), applied ? '2' : '1');
	assert.equal((await w.agent.status(json.change_id)).json.status, applied ? 'committed' : 'rolled_back');
});

test('F111: what is committed is what was shown, however the world moved on', async t => {
	const { w, ids: [id] } = await holding(t, 'F111');
	const shown = await w.operator.run('pending');
	await w.sql('INSERT INTO accounts VALUES (4, \'dee\', 10)');
	assert.match(shown.stdout, /ago|age|held/i);
	await w.operator.commit(id);
	assert.equal(await w.sql('SELECT balance FROM accounts ORDER BY id'), '101.00\n51.00\n1.00\n10.00');
});

test('F112: no way of the agent\'s own leads to a commit', async t => {
	const { w, ids: [id] } = await holding(t, 'F112');
	const { tools } = await w.agent.client.listTools();
	assert.deepEqual(tools.map(tool => tool.name).sort(),
		['db_execute', 'db_query', 'db_schema', 'db_status', 'db_withdraw']);
	const what = await token(w, id);
	for (const words of [['commit', what], ['rollback', id, '--reason', 'x'], ['pending'], ['show', id], ['log']]) {
		const { code, stdout, stderr } = await withoutTerminal(w.daemon, ...words);
		assert.equal(code, 4, `${words}: ${stdout}${stderr}`);
		assert.doesNotMatch(stdout, /accounts/);
	}
	assert.equal(await w.sql('SELECT count(*) FROM accounts'), '3');
	assert.equal((await w.agent.status(id)).json.status, 'pending');
	const denied = w.daemon.journal().filter(r => /den/.test(JSON.stringify(r)));
	assert.ok(denied.length > 0, 'the refusals are in the journal');
	assert.ok(denied.some(r => JSON.stringify(r).includes('"uid":')));
});

test('F116: no value can write on the operator\'s terminal', async t => {
	const { w, ids: [id] } = await holding(t, 'F116');
	const raw = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
	for (const words of [['pending'], ['show', id], ['pending', '--json'], ['show', id, '--json'], ['log']]) {
		const { code, stdout, stderr } = await w.operator.run(...words);
		assert.equal(code, 0, stderr);
		assert.doesNotMatch(stdout, raw, `${words}`);
		assert.doesNotMatch(stdout, /^\W*COMMITTED id 1/m, 'a value cannot begin a line');
	}
	const { stdout } = await w.operator.run('show', id);
	assert.match(stdout, /\\x1b\[2J/);
	const { json } = await w.agent.status(id);
	assert.equal(json.tables[0].updated, 6);
});

test('F118: the record outlives a rollback, one record a line', async t => {
	const c = find('F118');
	const w = await world(t, { setup: c.setup });
	const held = await w.agent.execute(c.agent_sql[0]);
	assert.equal(outcome(held), 'pending', held.text);
	assert.equal(outcome(await w.agent.execute(c.agent_sql[1])), '42601');
	await w.operator.rollback(held.json.change_id, 'all of\nthem?');
	const log = await w.operator.run('log');
	assert.equal(log.code, 0, log.stderr);
	assert.doesNotMatch(log.stdout, /^2024-01-01/m);
	const lines = w.daemon.journal().map(r => JSON.stringify(r));
	for (const part of [c.agent_sql[0], 'all of\\nthem?', 'SELECT 1\\n2024', '42601'])
		assert.ok(lines.some(line => line.includes(part)), `the journal has ${part}`);
	assert.equal((await w.operator.run('log', '--verify')).code, 0);
});

test('F119: a commit whose asker dies happens once or not at all', async t => {
	const { w, ids: [id] } = await holding(t, 'F119');
	const what = await token(w, id);
	await w.operator.abandon('commit', what);
	const { json } = await w.agent.status(id, { wait_s: 2 });
	const n = await w.sql('SELECT n FROM ctr2');
	if (json.status === 'pending') {
		assert.equal(n, '0');
		await w.operator.commit(id);
	} else {
		assert.deepEqual([json.status, n], ['committed', '1']);
	}
	const again = await w.operator.run('commit', what);
	assert.equal(again.code, 1);
	assert.match(again.stderr + again.stdout, /committed/);
	assert.equal(await w.sql('SELECT n FROM ctr2'), '1');
});
