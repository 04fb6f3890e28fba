// field-diff: the field cases of diff and values: what other products got wrong
// about what a write did, and about what a value is
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { here, load } from './lib/cases.mjs';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const brief = x => [x.table, x.op, x.before, x.after];
const bare = ({ rows }) => rows.map(brief).sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));

// Holds a statement of the case; { head, rows, json } of it.
async function hold(w, sql) {
	const answer = await w.agent.execute(sql);
	assert.equal(outcome(answer), 'pending', answer.text);
	const shown = await w.operator.show(answer.json.change_id);
	assert.equal(shown.head.complete, true, JSON.stringify(shown.head));
	return { ...shown, json: answer.json };
}
const rowsOf = async (w, sql) => {
	const answer = await w.agent.query(sql);
	assert.equal(outcome(answer), 'rows', answer.text);
	return answer.json.rows;
};
const table = (head, name) => head.tables.find(t => t.table === name);
const counts = (head, name) => {
	const t = table(head, name);
	return [t.inserted, t.updated, t.deleted, t.collateral];
};

// Each is given the world and the case, its statements not yet sent.
const cases = {
	F053: async (w, c) => {
		const d = await hold(w, c.agent_sql);
		assert.deepEqual(bare(d), [['public.j', 'update',
			{ id: '1', d: '{"a": 1,  "a":2}', x: '<r/>', p: '(1,2)', b: '(1,1),(0,0)' },
			{ id: '1', d: '{"a":3}', x: '<r/>', p: '(3,4)', b: '(1,1),(0,0)' }]]);
		await w.operator.rollback(d.head.id);
		const nulls = await hold(w, 'UPDATE j SET x = \'<n/>\' WHERE id = 2');
		assert.deepEqual([nulls.rows[0].before.d, nulls.rows[0].before.x], ['null', null]);
	},
	F054: async (w, c) => {
		const d = await hold(w, c.agent_sql);
		assert.deepEqual(bare(d), [['public.inv', 'delete', { id: '1', qty: '2', price: '5', total: '10' }, null]]);
	},
	F057: async (w, c) => {
		const [[length, md5]] = await rowsOf(w, c.check);
		const d = await hold(w, c.agent_sql);
		assert.deepEqual([d.rows[0].before.title, d.rows[0].after.title], ['a', 'b']);
		assert.equal(d.rows[0].after.body.length, Number(length));
		assert.equal(d.rows[0].before.body, d.rows[0].after.body);
		assert.ok(JSON.stringify(d.json).length < 40000, 'the agent is not given all of it');
		const { stdout } = await w.operator.run('show', d.head.id);
		assert.ok(stdout.length < 5000, 'and the operator sees what differs');
		assert.match(stdout, /title/);
		await w.operator.commit(d.head.id);
		assert.deepEqual(await rowsOf(w, c.check), [[length, md5]]);
	},
	F058: async (w, c) => {
		const d = await hold(w, c.agent_sql);
		assert.deepEqual(bare(d), [['public.ev', 'update', { id: '1', d: '2023-05-05', v: 'a' }, { id: '1', d: '2024-06-06', v: 'a' }]]);
		assert.deepEqual(counts(d.head, 'public.ev'), [0, 1, 0, false]);
	},
	F060: async (w, c) => {
		const d = await hold(w, c.agent_sql);
		assert.deepEqual(bare(d), [
			['public.grand', 'update', { id: '100', k: '10' }, { id: '100', k: null }],
			['public.grand', 'update', { id: '101', k: '11' }, { id: '101', k: null }],
			['public.kid', 'delete', { id: '10', p: '1' }, null],
			['public.kid', 'delete', { id: '11', p: '1' }, null],
			['public.par', 'delete', { id: '1' }, null]]);
		assert.deepEqual(d.head.tables.map(t => [t.table, t.collateral]).sort(),
			[['public.grand', true], ['public.kid', true], ['public.par', false]]);
	},
	F061: async (w, c) => {
		const d = await hold(w, c.agent_sql);
		assert.deepEqual(bare(d), [
			['public.sess', 'delete', { id: '100', user_id: '1' }, null],
			['public.users', 'delete', { id: '1', name: 'alice', active: '0' }, null],
			['public.users', 'update', { id: '2', name: 'bob', active: '1' }, { id: '2', name: 'bob', active: '0' }],
			['public.users', 'update', { id: '3', name: 'carol', active: '1' }, { id: '3', name: 'carol', active: '0' }]]);
	},
	F062: async (w, c) => {
		const d = await hold(w, c.agent_sql);
		assert.deepEqual(bare(d), [
			['public.cnt', 'update', { id: '1', n: '0' }, { id: '1', n: '1' }],
			['public.p', 'delete', { id: '1', v: '1' }, null]]);
		await w.operator.commit(d.head.id);
		assert.deepEqual(await rowsOf(w, 'SELECT n FROM cnt'), [['1']]);
	},
	F063: async (w, c) => {
		const d = await hold(w, c.agent_sql);
		assert.deepEqual(bare(d), [['public.jobs', 'delete', { id: '1', status: '1' }, null]]);
		assert.deepEqual(counts(d.head, 'public.jobs'), [0, 0, 1, false]);
	},
	F065: async (w, c) => {
		const [first, second] = c.agent_sql;
		const d = await hold(w, first);
		assert.deepEqual(bare(d), [
			['public.emp_hist', 'insert', null, { id: '1', sal: '10' }],
			['public.emp', 'update', { id: '1', sal: '10' }, { id: '1', sal: '20' }]]);
		await w.operator.rollback(d.head.id);
		const e = await hold(w, second);
		assert.deepEqual(bare(e), [
			['public.emp_hist', 'insert', null, { id: '1', sal: '10' }],
			['public.emp', 'update', { id: '1', sal: '10' }, { id: '1', sal: '0' }]]);
	},
	F066: async (w, c) => {
		const d = await hold(w, c.agent_sql);
		const why = d.head.reasons.find(r => r.code === 'DEFERRED_FAILURE');
		assert.match(why?.text ?? '', /23503/);
		const r = await w.operator.run('commit', d.head.token);
		assert.notEqual(r.code, 0);
		assert.match(r.stdout + r.stderr, /23503/);
		assert.equal((await w.agent.status(d.head.id)).json.status, 'failed');
		assert.ok(!w.daemon.journal().some(x => x.kind === 'committed'));
	},
	F067: async (w, c) => {
		for (const sql of [c.agent_sql, 'TRUNCATE accounts CASCADE', 'TRUNCATE ONLY accounts RESTART IDENTITY'])
			assert.equal(outcome(await w.agent.execute(sql)), 'SCHEMA_CHANGE');
		assert.deepEqual(await rowsOf(w, 'SELECT count(*) FROM accounts'), [['3']]);
	},
	F068: async (w, c) => {
		await w.sql('GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO app');
		const d = await hold(w, c.agent_sql);
		assert.deepEqual(bare(d), [
			['public.b', 'insert', null, { id: '1', t: 'x' }], ['public.b', 'insert', null, { id: '2', t: 'y' }]]);
		const effect = d.head.effects.find(e => e.code === 'SEQUENCE');
		assert.match(effect?.text ?? '', /b_id_seq/);
		await w.operator.rollback(d.head.id);
		assert.equal(await w.sql('INSERT INTO b(t) VALUES (\'z\') RETURNING id; DELETE FROM b'), '3');
	},
	F069: async (w, c) => {
		const d = await hold(w, c.agent_sql);
		assert.deepEqual(bare(d), [['public.c', 'insert', null, { id: '2', t: 'manual' }]]);
		await w.operator.commit(d.head.id);
		await assert.rejects(w.sql('INSERT INTO c(t) VALUES (\'next\')'), /duplicate key/);
		assert.equal(await w.sql('INSERT INTO c(t) VALUES (\'next\') RETURNING id'), '3');
	},
	F071: async (w, c) => {
		const d = await hold(w, c.agent_sql);
		assert.deepEqual(bare(d), [['s2.t', 'update', { id: '1', z: '9' }, { id: '1', z: '10' }]]);
		assert.deepEqual(d.head.tables.map(t => t.table), ['s2.t']);
	},
	F075: async (w, c) => {
		assert.deepEqual(await rowsOf(w, c.agent_sql), [
			['1', '-infinity', 'infinity', '4713-01-01 00:00:00 BC', '-1 days +02:03:00'],
			['2', '294276-12-31 23:59:59+00', '0044-03-15 BC', '1999-01-08 04:05:06.789012', '1 year 2 mons']]);
	},
	F077: async (w, c) => {
		const ids = ['9007199254740993', '-7108510333361982070', '9223372036854775807'];
		assert.deepEqual(await rowsOf(w, c.agent_sql), ids.map(id => [id]));
		const d = await hold(w, 'UPDATE big SET v = v + 10');
		assert.deepEqual(d.rows.map(r => [r.key.id, r.before.id]).sort(), ids.map(id => [id, id]).sort());
		assert.ok(ids.every(id => JSON.stringify(d.json.sample).includes(`"${id}"`)), JSON.stringify(d.json));
	},
	F078: async (w, c) => {
		const d = await hold(w, c.agent_sql);
		const n = '10000000000000000000000000000000000000000';
		assert.deepEqual(bare(d), [['public.bal', 'update',
			{ id: '1', b: '100000000.00000001', n }, { id: '1', b: '100000000.00000002', n }]]);
		await w.operator.rollback(d.head.id);
		const kept = await hold(w, 'DELETE FROM bal WHERE id = 2');
		assert.deepEqual(kept.rows[0].before, { id: '2', b: '0.10000000', n: '0.000000000000000000000000000001' });
	},
	F081: async (w, c) => {
		const d = await hold(w, c.agent_sql);
		assert.deepEqual(bare(d), [['public.tz', 'update',
			{ id: '1', t: '2024-03-04 05:06:07+00', d: '2024-03-04', i: '1 day -02:00:00', f: '0.30000000000000004', b: '\\x5c00' },
			{ id: '1', t: '2025-04-03 02:01:00+00', d: '2025-04-03', i: '3 days', f: '1', b: '\\x00' }]]);
	},
	F127: async (w, c) => {
		const [[j, jb]] = await rowsOf(w, c.agent_sql);
		assert.deepEqual([j, jb], ['{"id":6988425757655564288}', '{"id": 6988425757655564288}']);
	},
	F138: async (w, c) => {
		const [avg, join, odd] = c.agent_sql;
		assert.deepEqual(await rowsOf(w, avg), [['2.0000000000000000', '50.0000000000000000']]);
		assert.deepEqual(await rowsOf(w, join), [['2', 'bob', '50.00', '1', 'ann', '100.00'], ['3', 'cy', '0.00', '2', 'bob', '50.00']]);
		const answer = await w.agent.query(odd);
		assert.deepEqual(answer.json.columns.map(x => x.name), ['é', '?column?', '?column?']);
	},
};

test('the map and this table agree', () => {
	assert.deepEqual(Object.keys(cases).sort(), here('field', 'field-diff.test.mjs').sort());
});

for (const c of load('field').filter(c => c.id in cases))
	test(`${c.id} (${c.area}): ${c.what}`, async t => {
		const w = await world(t, { setup: c.setup });
		await cases[c.id](w, c);
	});
