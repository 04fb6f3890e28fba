// field-parser: field cases about what a statement is, where the diff tells
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { load } from './lib/cases.mjs';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const find = id => load('field').find(c => c.id === id);

// Sends a case's first statement, which must be held: its answer.
async function held(t, id, at = 0) {
	const c = find(id);
	const w = await world(t, { setup: c.setup });
	const answer = await w.agent.execute([c.agent_sql].flat()[at]);
	assert.equal(outcome(answer), 'pending', answer.text);
	return { w, c, ...answer.json, codes: answer.json.reasons.map(r => r.code) };
}

test('F037: the WHERE of a nested SELECT is not the UPDATE\'s', async t => {
	const { w, change_id, risk, codes, tables } = await held(t, 'F037');
	assert.equal(risk, 'high');
	assert.ok(codes.includes('NO_WHERE'));
	const [{ updated, unchanged, rows_before }] = tables;
	assert.deepEqual({ updated, unchanged, rows_before }, { updated: 2, unchanged: 1, rows_before: 3 });
	const { rows } = await w.operator.show(change_id);
	assert.deepEqual(rows.map(r => [r.key.id, r.before.balance, r.after.balance]).sort(),
		[['2', '50.00', '100.00'], ['3', '0.00', '100.00']]);
});

test('F038: a WHERE that never mentions the target restricts nothing', async t => {
	const { risk, codes, tables } = await held(t, 'F038');
	assert.equal(risk, 'high');
	assert.ok(codes.includes('WHERE_IGNORES_TARGET'), codes);
	assert.ok(codes.includes('LARGE_SHARE'), codes);
	assert.deepEqual([tables[0].deleted, tables[0].rows_before], [20, 20]);
});

test('F040: a constant condition is none', async t => {
	const { risk, codes, tables } = await held(t, 'F040');
	assert.equal(risk, 'high');
	assert.ok(codes.includes('VACUOUS_WHERE'), codes);
	assert.equal(tables[0].deleted, 3);
});

test('F044: an escaped identifier is the table that it names', async t => {
	const { w, c, tables } = await held(t, 'F044');
	assert.deepEqual(tables.map(t => [t.table, t.deleted]), [['public.accounts', 1]]);
	assert.equal(outcome(await w.agent.execute(c.agent_sql[1])), '42P01');
	assert.equal((await w.operator.pending()).length, 1);
});

test('F045: what the parser dies of is refused, and nothing else is touched', async t => {
	const w = await world(t, { setup: 'CREATE TABLE t AS SELECT 1 AS a' });
	const other = await w.agent.execute('UPDATE t SET a = 2');
	const chain = n => `SELECT ${Array(n).fill('1').join('+')}`;
	const hostile = {
		STATEMENT_TOO_LARGE: [chain(64000), `SELECT '${'x'.repeat(5 << 20)}'`],
		STATEMENT_TOO_COMPLEX: [chain(30000)],
	};
	for (const [code, sqls] of Object.entries(hostile))
		for (const sql of sqls) {
			const [answer, meanwhile] = await Promise.all([
				w.agent.query(sql), w.agent.query('SELECT 1')]);
			assert.equal(outcome(answer), code, answer.text.slice(0, 300));
			assert.equal(outcome(meanwhile), 'rows');
		}
	assert.equal(outcome(await w.agent.query('SELECT 1')), 'rows');
	assert.equal((await w.agent.status(other.json.change_id)).json.status, 'pending');
	await w.operator.commit(other.json.change_id);
	assert.equal(await w.sql('SELECT a FROM t'), '2');
});

test('the parser child reads what libpg_query does not print as it is', async t => {
	const w = await world(t, { setup: 'CREATE TABLE t AS SELECT 1 AS a' });
	const before = (await w.operator.json('status')).parser_pid;
	const read = await w.agent.query("SELECT '{1,2}'::int[] AS a");
	assert.equal(outcome(read), 'rows', read.text);
	assert.equal(outcome(await w.agent.query('SET TRANSACTION READ WRITE')), 'SESSION_CONTROL');
	assert.equal((await w.operator.json('status')).parser_pid, before);
});

test('F011: nothing an agent sends ends another session', async t => {
	const c = find('F011');
	const w = await world(t, { setup: c.setup });
	const { json } = await w.agent.execute('UPDATE accounts SET balance = 1 WHERE id = 1');
	const kills = ['pg_terminate_backend(1)', 'pg_cancel_backend(1)', 'pg_reload_conf()',
		'pg_rotate_logfile()', 'pg_switch_wal()', 'pg_promote()'];
	for (const sql of [c.agent_sql, ...kills.map(f => `SELECT ${f}`)]) {
		const answer = await w.agent.query(sql);
		assert.equal(outcome(answer), 'FUNCTION_OUTSIDE', answer.text);
		assert.match(answer.text, /pg_\w+\(\)/);
	}
	await w.operator.commit(json.change_id);
	assert.equal(await w.sql('SELECT balance FROM accounts WHERE id = 1'), '1.00');
});

test('F028: every read is in a read-only transaction', async t => {
	const w = await world(t, { setup: 'CREATE TABLE t AS SELECT 1 AS a' });
	const readOnly = async () => {
		const { json, text } = await w.agent.query(find('F028').agent_sql);
		assert.deepEqual(json?.rows, [['on']], text);
	};
	await readOnly();
	assert.equal(outcome(await w.agent.execute('UPDATE t SET a = 2')), 'pending');
	await readOnly();
	assert.equal(outcome(await w.agent.query('SELECT 1/0')), '22012');
	await readOnly();
	await w.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE usename = 'app' AND datname = current_database() AND state = 'idle'`);
	/* until the links that were ended are there again */
	for (let said = 'DATABASE_DOWN'; said === 'DATABASE_DOWN';) {
		said = outcome(await w.agent.query('SELECT 1'));
		assert.match(said, /^(rows|LOST|DATABASE_DOWN)$/);
		if (said === 'rows')
			said = outcome(await w.agent.query(find('F028').agent_sql));
	}
	await readOnly();
});
