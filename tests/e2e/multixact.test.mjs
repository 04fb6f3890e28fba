// multixact: which numbers in xmax are looked at as other sessions' multixacts
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Proxy } from './lib/proxy.mjs';
import { cluster, release } from './lib/cluster.mjs';
import { world } from './lib/world.mjs';

after(release);

const ROWS = 5000;
// One row of big is changed by a trigger, which nothing leads to, so that big is
// read whole; its other rows have been locked or deleted by somebody once.
const setup = `
	CREATE TABLE t(id int PRIMARY KEY); CREATE TABLE big(id int PRIMARY KEY, n int);
	CREATE TABLE many(id int PRIMARY KEY); INSERT INTO many SELECT generate_series(1, 300);
	INSERT INTO big SELECT g, 0 FROM generate_series(1, ${ROWS}) g;
	CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE big SET n = 7 WHERE id = 500; RETURN NULL; END $$;
	CREATE TRIGGER f AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();`;

async function through(t, more = '') {
	const proxy = await Proxy.start(await cluster());
	t.after(() => proxy.close());
	return { proxy, ...await world(t, { url: w => proxy.url(w.database), setup: setup + more }) };
}

async function assertShown(w, answer) {
	assert.equal(answer.json?.complete, true, answer.text);
	const { rows } = await w.operator.show(answer.json.change_id);
	assert.deepEqual(rows.filter(r => r.table === 'public.big').map(r => [r.op, r.before, r.after]),
		[['update', { id: '500', n: '0' }, { id: '500', n: '7' }]]);
}

// Each old row that is a candidate is asked after, 500 to a question.
test('ids that were left in rows are not taken for multixacts', async t => {
	const w = await through(t, 'BEGIN; DELETE FROM big; ROLLBACK;');
	const far = Number(await w.sql("SELECT min((xmax::text::int8 - mxid_age('1'::xid) - 1) & 4294967295) FROM big"));
	assert.ok(far > 256 && far < 2 ** 31, `they would pass for multixacts that are yet to come (${far})`);
	let questions = 0;
	w.proxy.on = m => { questions += m.from === 'client' && m.type === 'P' && m.body.includes('currtid2('); };
	await assertShown(w, await w.agent.execute('INSERT INTO t VALUES (1)'));
	assert.equal(questions, 1);
});

// Those that were found at once must not be found twice.
test('a row of ours whose multixact came while it was searched for is found, and no other twice', async t => {
	const w = await through(t, `CREATE OR REPLACE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		UPDATE big SET n = 7 WHERE id IN (500, 700, 800); DELETE FROM big WHERE id = 900; RETURN NULL; END $$;`);
	const read = w.proxy.meet(m => m.from === 'client' && m.type === 'P' && m.body.includes('airlock_s.xmax <>'), 'stall');
	const answer = w.agent.execute('INSERT INTO t VALUES (1)');
	const observer = await read;
	const next = "SELECT mxid_age('1'::xid)";
	const before = Number(await w.sql(next));
	await w.sql(`DO $$ BEGIN
		PERFORM FROM many FOR KEY SHARE;
		FOR i IN 1..300 LOOP
			BEGIN PERFORM FROM many WHERE id = i FOR SHARE; EXCEPTION WHEN division_by_zero THEN NULL; END;
		END LOOP;
		PERFORM FROM big WHERE id = 500 FOR KEY SHARE;
	END $$`);
	assert.ok(Number(await w.sql(next)) - before > 256, 'more than were reckoned with');
	observer.release();
	const { json, text } = await answer;
	assert.equal(json?.complete, true, text);
	const { rows } = await w.operator.show(json.change_id);
	assert.deepEqual(rows.filter(r => r.table === 'public.big').map(r => `${r.op} ${r.key.id}`).sort(),
		['delete 900', 'update 500', 'update 700', 'update 800']);
});
