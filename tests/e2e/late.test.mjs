// late: what would run in COMMIT, behind everybody's back, is seen or refused
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ask } from './lib/wait.mjs';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const T = 'CREATE TABLE t(id int PRIMARY KEY, a int, b text); INSERT INTO t SELECT g, 0, \'\' FROM generate_series(1, 6) g; CREATE TABLE log(x text);';
const trigger = (body, name = 'f', more = '') => `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql ${more} AS $$ BEGIN ${body} RETURN NULL; END $$;`;
const STATE = 'SELECT (SELECT string_agg(a::text, \',\' ORDER BY id) FROM t), (SELECT count(*) FROM log)';
const failure = j => j.reasons.find(x => x.code === 'DEFERRED_FAILURE')?.text;

// A deferred trigger that puts off work of its own, `deep` times.
const again = (deep, constraints) => `${T} ${trigger(`INSERT INTO log VALUES ('late ' || NEW.a); SET CONSTRAINTS ${constraints} DEFERRED;
	IF NEW.a < ${deep} THEN UPDATE t SET a = NEW.a + 1 WHERE id = NEW.id; END IF;`)}
	CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f();`;

test('work that deferred work puts off is done, and shown, before anybody decides', async t => {
	for (const constraints of ['ALL', 'late']) {
		const w = await world(t, { setup: again(5, constraints) });
		const { json, text } = await w.agent.execute('UPDATE t SET a = 0 WHERE id = 1');
		assert.equal(json?.complete, true, text);
		const more = await w.agent.execute('UPDATE t SET a = 2 WHERE id = 2', { change_id: json.change_id });
		assert.deepEqual([more.json?.complete, failure(more.json)], [true, undefined], more.text);
		const { rows } = await w.operator.show(json.change_id);
		assert.deepEqual(rows.filter(x => x.table === 'public.t').map(x => x.after.a), ['5', '5']);
		assert.equal(rows.filter(x => x.table === 'public.log').length, 10);
		await w.operator.commit(json.change_id);
		assert.equal(await w.sql(STATE), '5,5,0,0,0,0|10');
	}
});

test('work that is put off without end is said, and never committed', async t => {
	const w = await world(t, { setup: again(500, 'ALL') });
	const { json, text } = await w.agent.execute('UPDATE t SET a = 0 WHERE id = 1');
	assert.equal(json?.complete, false, text);
	assert.match(failure(json), /put off/);
	const r = await w.operator.run('commit', (await w.operator.pending())[0].token);
	assert.equal(r.code, 1);
	assert.match(r.stderr + r.stdout, /not the one that was reviewed/);
	assert.equal(await w.sql(STATE), '0,0,0,0,0,0|0');
});

test('a foreign key that deferred work breaks and puts off is known', async t => {
	const w = await world(t, { setup: `${T} CREATE TABLE ch(p int CONSTRAINT ch_p REFERENCES t DEFERRABLE INITIALLY DEFERRED);
		${trigger('SET CONSTRAINTS ALL DEFERRED; INSERT INTO ch VALUES (77);')}
		CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f();` });
	const { json, text } = await w.agent.execute('UPDATE t SET a = 1 WHERE id = 1');
	assert.ok(json, text);
	assert.match(failure(json), /23503 ch_p/);
	const r = await w.operator.run('commit', (await w.operator.pending())[0].token);
	assert.equal(r.code, 1);
	assert.match(r.stderr + r.stdout, /23503.*FAILED/);
	await ask(async () => (await w.agent.status(json.change_id)).json.status === 'failed', 'the change to have failed');
	assert.equal(await w.sql('SELECT count(*) FROM ch'), '0');
});

test('a cursor that COMMIT would run is refused, first or added', async t => {
	const w = await world(t, { setup: `${T} CREATE FUNCTION w() RETURNS int LANGUAGE plpgsql AS $$ BEGIN DELETE FROM t WHERE id = 6; RETURN 1; END $$;
		${trigger('EXECUTE \'DECLARE c CURSOR WITH HOLD FOR SELECT w()\';')}
		CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();` });
	const alone = await w.agent.execute('INSERT INTO t VALUES (7, 0, \'\')');
	assert.equal(outcome(alone), 'HOLDABLE_CURSOR', alone.text);
	const [id] = /chg_\w+/.exec(alone.text);
	const { head } = await w.operator.show(id);
	for (const j of [(await w.agent.status(id)).json, head]) {
		assert.deepEqual([j.status, j.why, j.reasons, j.tables], ['rolled_back', 'refused', [], []]);
		assert.ok(!('risk' in j) && !('complete' in j), `nothing was judged: ${JSON.stringify(j)}`);
	}
	assert.doesNotMatch((await w.operator.run('show', id)).stdout, /risk|INCOMPLETE/);
	const { json } = await w.agent.execute('UPDATE t SET a = 1 WHERE id = 1');
	const added = await w.agent.execute('INSERT INTO t VALUES (7, 0, \'\')', { change_id: json.change_id });
	assert.equal(outcome(added), 'HOLDABLE_CURSOR', added.text);
	await w.operator.commit(json.change_id);
	assert.equal(await w.sql(STATE), '1,0,0,0,0,0|0');
});

test('a diff whose counters a function may have turned off is not called complete', async t => {
	const off = 'SET LOCAL track_counts = off; INSERT INTO log VALUES (1); SET LOCAL track_counts = on;';
	for (const [fn, name] of [
		[trigger('INSERT INTO log VALUES (1);', 'f', 'SECURITY DEFINER SET track_counts = off'), 'f'],
		[trigger(off, 'f', 'SECURITY DEFINER'), 'f'],
		[trigger(off.replaceAll(/SET LOCAL track_counts = (\w+)/g, 'PERFORM set_config(\'track_counts\', \'$1\', true)'), 'f', 'SECURITY DEFINER'), 'f'],
		[`CREATE FUNCTION g() RETURNS int LANGUAGE sql SECURITY DEFINER BEGIN ATOMIC SELECT set_config('track_counts', 'off', true); SELECT 1; END;
			${trigger('PERFORM g(); INSERT INTO log VALUES (1); PERFORM h();', 'f', 'SECURITY DEFINER')}
			CREATE FUNCTION h() RETURNS int LANGUAGE sql SECURITY DEFINER BEGIN ATOMIC SELECT set_config('track_counts', 'on', true); SELECT 1; END;`, '[gh]'],
	]) {
		const w = await world(t, { setup: `${T} ${fn} CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();
			ALTER FUNCTION f() OWNER TO postgres;` });
		const { json, text } = await w.agent.execute('UPDATE t SET a = 1 WHERE id = 1');
		assert.deepEqual([json?.complete, json?.risk], [false, 'high'], text);
		const { head } = await w.operator.show(json.change_id);
		assert.match(head.effects.find(x => x.code === 'COUNTERS_OFF')?.text ?? '', new RegExp(`^public\\.${name}\\(\\).* may turn`));
		assert.match(head.reasons.find(x => x.code === 'INCOMPLETE')?.text ?? '', /track_counts/);
		const more = await w.agent.execute('INSERT INTO log VALUES (2)', { change_id: json.change_id });
		assert.equal(more.json?.complete, false, 'it stays so');
		await w.operator.rollback(json.change_id);
	}
});

test('a read that fails inside a change leaves the change as it was', async t => {
	const w = await world(t, { setup: `${T} CREATE SEQUENCE sq;
		CREATE FUNCTION nx() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT nextval(''sq'')';` });
	const { json } = await w.agent.execute('UPDATE t SET a = 1 WHERE id = 1');
	const { change_id } = json;
	assert.equal(outcome(await w.agent.query('SELECT nx()', { change_id })), '25006');
	await w.operator.commit(change_id);
	assert.equal(await w.sql(STATE), '1,0,0,0,0,0|0');
});
