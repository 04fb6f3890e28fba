// between: what somebody else does to the schema between two statements of one
// change, whose snapshot still shows the catalogs as they were
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { cluster } from './lib/cluster.mjs';
import { Proxy } from './lib/proxy.mjs';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const tables = x => x.tables.map(y => [y.table, y.inserted, y.updated, y.collateral, y.rows_before, y.rows_after, y.complete]);
const PARTED = `
	CREATE TABLE o(id int);
	CREATE TABLE p(id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
	CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
	CREATE TABLE q(id int PRIMARY KEY, v text);
	INSERT INTO p VALUES (1, 'a'), (2, 'b'); INSERT INTO q VALUES (11, 'q'), (12, 'q'), (13, 'q');
	CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		UPDATE q SET v = 'f' WHERE id = 11; RETURN NULL; END $$;
	CREATE TRIGGER tr AFTER UPDATE ON o EXECUTE FUNCTION f();`;
const ATTACH = 'ALTER TABLE p ATTACH PARTITION q FOR VALUES FROM (10) TO (20)';

// One statement, somebody else's, and one that is added.
async function between(w, one, other, more) {
	const first = await w.agent.execute(one);
	assert.equal(first.json?.complete, true, first.text);
	await w.sql(`SET lock_timeout = '10s'; ${other}`);
	const { change_id } = first.json;
	return { change_id, answer: await w.agent.execute(more, { change_id }) };
}

test('a partition attached meanwhile is its table\'s, whatever way its rows are written', async t => {
	const w = await world(t, { setup: PARTED });
	for (const [more, updated, o] of [['UPDATE p SET v = \'y\' WHERE id > 10', 4], ['UPDATE q SET v = \'y\' WHERE id = 12', 2],
		['UPDATE o SET id = 1', 2, true]]) {
		const { change_id, answer } = await between(w, 'UPDATE p SET v = \'x\' WHERE id = 1', ATTACH, more);
		assert.deepEqual(tables(answer.json), [['public.p', 0, updated, false, 5, 5, true],
			...o ? [['public.o', 0, 0, false, 0, 0, true]] : []], `${more}: ${answer.text}`);
		const { rows } = await w.operator.show(change_id);
		assert.deepEqual([...new Set(rows.map(x => x.table))], ['public.p']);
		await w.operator.rollback(change_id);
		await w.sql('ALTER TABLE p DETACH PARTITION q');
	}
});

test('a table made or renamed meanwhile has its rows in the diff, named or not', async t => {
	const w = await world(t, { setup: `${PARTED} CREATE TABLE u(id int PRIMARY KEY, v text); INSERT INTO u VALUES (1, 'a');` });
	for (const [other, more, table, collateral] of [
		['CREATE TABLE n(id int, v text)', 'INSERT INTO n VALUES (5, \'mine\')', 'public.n', false],
		[`CREATE OR REPLACE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO n VALUES (6, 'mine'); RETURN NULL; END $$; DROP TABLE n; CREATE TABLE n(id int, v text);`,
		'UPDATE o SET id = 1', 'public.n', true],
		['ALTER TABLE u RENAME TO u2', 'UPDATE u2 SET v = \'mine\'', 'public.u2', false],
		['CREATE SCHEMA s; ALTER TABLE u2 SET SCHEMA s; GRANT USAGE ON SCHEMA s TO app', 'UPDATE s.u2 SET v = \'mine too\'', 's.u2', false]]) {
		const { change_id, answer } = await between(w, 'UPDATE p SET v = v || \'x\' WHERE id = 1', other, more);
		assert.equal(answer.json?.complete, true, answer.text);
		const said = answer.json.tables.filter(x => !['public.p', 'public.o'].includes(x.table));
		assert.deepEqual(said.map(x => [x.table, x.collateral]), [[table, collateral]], answer.text);
		const { rows } = await w.operator.show(change_id);
		assert.deepEqual(rows.filter(x => x.table === table).map(x => x.after.v.startsWith('mine')), [true]);
		await w.operator.commit(change_id);
		assert.match(await w.sql(`SELECT v FROM ${table}`), /^mine/);
	}
});

test('what the change has shown keeps its name, or nothing more is added', async t => {
	const w = await world(t, { setup: PARTED });
	const more = 'UPDATE other.p1 SET v = \'z\' WHERE id = 2';
	const { change_id, answer } = await between(w, 'UPDATE p1 SET v = \'x\' WHERE id = 1',
		'ALTER SCHEMA public RENAME TO other; CREATE SCHEMA public; GRANT USAGE ON SCHEMA other TO app', more);
	for (const again of [answer, await w.agent.execute(more, { change_id })]) {
		assert.equal(outcome(again), 'DEFINITION_CHANGED', again.text);
		assert.match(again.text, /public\.p/);
	}
	const { head, rows } = await w.operator.show(change_id);
	assert.deepEqual([head.status, head.complete, rows.length], ['pending', true, 1]);
	await w.operator.commit(change_id);
	assert.equal(await w.sql('SELECT string_agg(v, \',\' ORDER BY id) FROM other.p'), 'x,b');
});

test('a partition whose table was renamed is shown under its new name', async t => {
	const w = await world(t, { setup: PARTED });
	for (const name of ['p', 'px']) {
		const { json, text } = await w.agent.execute('UPDATE p1 SET v = \'x\' WHERE id = 1');
		assert.deepEqual(tables(json), [[`public.${name}`, 0, 1, false, 2, 2, true]], text);
		assert.deepEqual((await w.operator.show(json.change_id)).rows.map(x => x.table), [`public.${name}`]);
		await w.operator.rollback(json.change_id);
		await w.sql('ALTER TABLE IF EXISTS p RENAME TO px');
	}
});

test('what a trigger made meanwhile does beside rows is listed', async t => {
	const w = await world(t, { setup: `${PARTED} CREATE TABLE z(id int);
		CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NOTIFY told; RETURN NULL; END $$;` });
	const { change_id } = await between(w, 'UPDATE p SET v = \'x\' WHERE id = 1',
		'CREATE TRIGGER tr AFTER INSERT ON z EXECUTE FUNCTION g()', 'INSERT INTO z VALUES (1)');
	const { head } = await w.operator.show(change_id);
	assert.deepEqual(head.effects.map(x => x.code), ['NOTIFICATION'], JSON.stringify(head.effects));
});

test('a constraint that is dropped or renamed as it is to be deferred again fails nothing', async t => {
	const proxy = await Proxy.start(await cluster());
	t.after(() => proxy.close());
	const w = await world(t, { url: w => proxy.url(w.database), setup: `
		CREATE TABLE pa(id int PRIMARY KEY); INSERT INTO pa VALUES (1);
		CREATE TABLE ch(p int CONSTRAINT ch_p REFERENCES pa DEFERRABLE INITIALLY DEFERRED);
		CREATE SCHEMA s; CREATE TABLE s.a(id int CONSTRAINT s_a UNIQUE DEFERRABLE INITIALLY DEFERRED); GRANT USAGE ON SCHEMA s TO app;
		CREATE TABLE other(id int CONSTRAINT one UNIQUE DEFERRABLE INITIALLY DEFERRED);
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER late AFTER INSERT ON other DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f();` });
	const isDeferring = m => m.from === 'client' && m.type === 'P' && /SET CONSTRAINTS .* DEFERRED/.test(m.body.toString());
	const { json: { change_id } } = await w.agent.execute('INSERT INTO ch VALUES (77)');
	for (const other of ['ALTER TABLE other RENAME CONSTRAINT one TO two', 'ALTER TABLE other DROP CONSTRAINT two', 'DROP TRIGGER late ON other',
		'REVOKE USAGE ON SCHEMA s FROM app', 'DROP SCHEMA s CASCADE']) {
		const met = proxy.meet(isDeferring, 'stall');
		const adding = w.agent.execute('INSERT INTO ch VALUES (1)', { change_id });
		const link = await met;
		await w.sql(other);
		link.release();
		const { json, text } = await adding;
		assert.equal(json?.complete, true, `${other}: ${text}`);
	}
	const { json, text } = await w.agent.execute('INSERT INTO pa VALUES (77)', { change_id });
	assert.equal(json?.reasons.some(x => x.code === 'DEFERRED_FAILURE'), false, text);
	await w.operator.commit(change_id);
	assert.equal(await w.sql('SELECT string_agg(p::text, \',\' ORDER BY p) FROM ch'), '1,1,1,1,1,77');
});
