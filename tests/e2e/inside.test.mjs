// inside: what functions and triggers do beside writing rows
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const trigger = (body, name = 'g') => `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$;`;
const T = 'CREATE TABLE t(id int PRIMARY KEY, a int); INSERT INTO t SELECT g, 0 FROM generate_series(1, 3) g;';

test('a trigger may say much', async t => {
	const w = await world(t, { setup: `${T} ${trigger(`FOR i IN 1..600 LOOP RAISE NOTICE '%', repeat('x', 200000);
		RAISE WARNING '%', repeat('y', 2000); END LOOP; RETURN NULL;`)}
		CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION g();` });
	const { json, text } = await w.agent.execute('UPDATE t SET a = 1 WHERE id = 1');
	assert.equal(json?.complete, true, text);
	const more = await w.agent.execute('UPDATE t SET a = 2 WHERE id = 2', { change_id: json.change_id });
	assert.equal(more.json?.complete, true, more.text);
	await w.operator.commit(json.change_id);
	assert.equal(await w.sql('SELECT string_agg(a::text, \',\' ORDER BY id) FROM t'), '1,2,0');
});

const EMPTIED = `${T} CREATE TABLE gone(n int); INSERT INTO gone VALUES (1), (2);
	CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
		TRUNCATE gone; INSERT INTO gone VALUES (NEW.a); INSERT INTO log VALUES (NEW.a); RETURN NULL; END $$;
	CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION g();
	CREATE TABLE log(n int);`;

test('a table that is emptied by several statements can be committed, and why it is incomplete stays', async t => {
	const w = await world(t, { setup: EMPTIED });
	const { json, text } = await w.agent.execute('UPDATE t SET a = 1 WHERE id = 1');
	assert.equal(json?.complete, false, text);
	const why = j => j.reasons.find(x => x.code === 'INCOMPLETE')?.text;
	assert.match(why(json), /emptied/);
	const { change_id } = json;
	assert.equal(outcome(await w.agent.execute('UPDATE t SET a = 1 / 0', { change_id })), '22012');
	for (const sql of ['UPDATE t SET a = 2 WHERE id = 2', 'INSERT INTO log VALUES (1)', 'UPDATE t SET a = 3 WHERE id = 3']) {
		const more = await w.agent.execute(sql, { change_id });
		assert.equal(more.json?.complete, false, more.text);
		assert.equal(outcome(await w.agent.query('SELECT count(*) FROM gone', { change_id })), 'rows');
		assert.equal(why(more.json), why(json), 'the reason is that of the table, whichever statement came last');
	}
	await w.operator.commit(change_id);
	assert.equal(await w.sql('SELECT (SELECT string_agg(a::text, \',\' ORDER BY id) FROM t), (SELECT string_agg(n::text, \',\') FROM gone)'), '1,2,3|3');
});

test('why a table is shown by its counts is told for as long as it is', async t => {
	const w = await world(t, {
		setup: `${T} CREATE TABLE log(n int); INSERT INTO log SELECT 1 FROM generate_series(1, 10000);
			${trigger('INSERT INTO log VALUES (1); RETURN NULL;')}
			CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION g(); CREATE TABLE other(n int);`,
		config: '[airlock]\nsweep_limit = 64K\n',
	});
	const { json } = await w.agent.execute('UPDATE t SET a = 1');
	const why = j => j.reasons.filter(x => x.code === 'INCOMPLETE').map(x => x.text);
	assert.match(why(json)[0], /sweep_limit/);
	const more = await w.agent.execute('INSERT INTO other VALUES (1)', { change_id: json.change_id });
	assert.deepEqual(why(more.json), why(json));
});
