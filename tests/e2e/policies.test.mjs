// policies: what row security hides by rules that the change itself may move
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { release, world } from './lib/world.mjs';

after(release);

const incomplete = j => j.reasons.find(x => x.code === 'INCOMPLETE')?.text;
const TWO_LOGINS = w => `[database d]\nobserver_dsn = ${w.cluster.url(w.database, 'peer')}\n`;

test('one login: a row that the change hides and locks is not taken for a deleted one', async t => {
	const w = await world(t, { setup: `
		CREATE TABLE allowed(id int PRIMARY KEY); INSERT INTO allowed VALUES (2);
		CREATE TABLE t(id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');
		CREATE TABLE kid(id int PRIMARY KEY, p int REFERENCES t);
		ALTER TABLE t ENABLE ROW LEVEL SECURITY;
		CREATE POLICY p ON t USING (id IN (SELECT a.id FROM allowed a));` });
	const { json: { change_id } } = await w.agent.execute('INSERT INTO kid VALUES (1, 2)');
	await w.agent.execute('UPDATE allowed SET id = 1', { change_id });
	const { json, text } = await w.agent.execute('DELETE FROM t WHERE id = 1', { change_id });
	const { rows } = await w.operator.show(change_id);
	assert.deepEqual(rows.filter(x => x.table === 'public.t' && x.before?.id !== '1'), [], text);
	assert.equal(json.complete, false, text);
	assert.match(incomplete(json), /row security/);
	await w.operator.commit(change_id);
	assert.equal(await w.sql('SELECT string_agg(id::text, \',\' ORDER BY id) FROM t'), '2,3');
});

const WRITES = `
	CREATE TABLE log(id int);
	CREATE TABLE t(id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a'), (2, 'b');
	CREATE FUNCTION noted(n int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (n); RETURN true; END $$;
	ALTER TABLE t ENABLE ROW LEVEL SECURITY;
	CREATE POLICY p ON t USING (noted(id)) WITH CHECK (true);
	DROP ROLE IF EXISTS peer; CREATE ROLE peer LOGIN BYPASSRLS; GRANT pg_read_all_data, pg_read_all_stats TO peer;`;

test('two logins: a policy that writes as it is read writes no more than is shown', async t => {
	const w = await world(t, { setup: WRITES, config: TWO_LOGINS });
	const { json, text } = await w.agent.execute('UPDATE t SET v = \'x\' WHERE id = 1');
	assert.equal(json?.complete, true, text);
	const { change_id } = json;
	const more = await w.agent.execute('DELETE FROM t WHERE id = 2', { change_id });
	assert.ok(more.json, more.text);
	const { rows } = await w.operator.show(change_id);
	const logged = rows.filter(x => x.table === 'public.log').map(x => x.after.id).sort().join();
	await w.operator.commit(change_id);
	assert.equal(await w.sql('SELECT string_agg(id || v, \',\') FROM t'), '1x');
	assert.equal(await w.sql('SELECT string_agg(id::text, \',\' ORDER BY id) FROM log'), logged);
});

test('one login: a policy that writes as it is read is not read, and the change can be committed', async t => {
	const w = await world(t, { setup: WRITES });
	for (const sql of ['UPDATE t SET v = \'x\' WHERE id = 1', 'INSERT INTO t VALUES (3, \'n\')']) {
		const { json, text } = await w.agent.execute(sql);
		assert.equal(json?.complete, false, text);
		assert.match(incomplete(json), /public\.t \(what row security hides/, text);
		await w.operator.commit(json.change_id);
	}
	assert.equal(await w.sql('SELECT string_agg(id || v, \',\' ORDER BY id) FROM t'), '1x,2b,3n');
});

const POLICIES = [
	['own', true, 'o = current_user'],
	['few', true, 'id < 3 AND o IS NOT NULL OR o = ANY (\'{app,y}\')'],
	['part', true, 'CASE WHEN id > 1 THEN o = \'app\' ELSE COALESCE(o, \'x\') <> \'y\' END'],
	['member', true, 'id IN (SELECT m.id FROM team m WHERE m.who = current_user)'],
	['said', false, 'o = current_setting(\'my.own\', true)'],
	['made', false, 'mine(o)'],
	['old', false, 'id < 3 AND now() > \'2020-01-01\''],
	['today', false, 'id < 3 AND current_date > \'2020-01-01\''],
	['branch', false, 'EXISTS (SELECT FROM kin k WHERE k.id = 1)'],
];

test('one login: policies that go by the row, or by what the change leaves alone, hide nothing of it', async t => {
	const w = await world(t, { setup: `
		CREATE TABLE team(id int PRIMARY KEY, who text); INSERT INTO team VALUES (1, 'app'), (2, 'x');
		CREATE TABLE kin(id int, up int); CREATE TABLE kin1() INHERITS (kin); INSERT INTO kin VALUES (1, 1);
		CREATE FUNCTION mine(text) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 = ''app''';
		ALTER DATABASE :DBNAME SET my.own = 'app';
		${POLICIES.map(([n, , q]) => `CREATE TABLE ${n}(id int PRIMARY KEY, o text); INSERT INTO ${n} VALUES (1, 'app'), (2, 'x');
			ALTER TABLE ${n} ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON ${n} USING (${q}) WITH CHECK (true);`).join('\n')}` });
	for (const [table, complete] of POLICIES) {
		const { json, text } = await w.agent.execute(`DELETE FROM ${table} WHERE id = 1`);
		assert.deepEqual([json?.complete, json?.tables[0].deleted], [complete, 1], `${table}: ${text}`);
		const { rows } = await w.operator.show(json.change_id);
		assert.equal(rows.length, complete ? 1 : 0);
		await w.operator.rollback(json.change_id);
	}
	const { json: { change_id } } = await w.agent.execute('UPDATE team SET who = \'app\'');
	const more = await w.agent.execute('DELETE FROM member WHERE id = 1', { change_id });
	assert.equal(more.json?.complete, false, more.text);
});

test('a policy that is another by now is judged anew', async t => {
	const w = await world(t, { setup: `
		CREATE TABLE own(id int PRIMARY KEY, o text); INSERT INTO own VALUES (1, 'app'), (2, 'x');
		ALTER DATABASE :DBNAME SET my.own = 'app';
		ALTER TABLE own ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON own USING (o = current_user);` });
	const complete = async () => {
		const { json, text } = await w.agent.execute('DELETE FROM own WHERE id = 1');
		assert.ok(json?.change_id, text);
		await w.operator.rollback(json.change_id);
		return json.complete;
	};
	assert.equal(await complete(), true);
	assert.equal(await complete(), true);
	await w.sql('ALTER POLICY p ON own USING (o = current_setting(\'my.own\', true))');
	assert.equal(await complete(), false);
});
