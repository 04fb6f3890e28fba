// prepared: what Airlock has prepared in a session, and functions that take it
// away
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const GONE = 'EXECUTE \'DEALLOCATE ALL\';';
const OTHERS = `${GONE} EXECUTE 'PREPARE airlock_counts(oid[]) AS SELECT 1';`;
const SETUP = `
	CREATE TABLE t(id int PRIMARY KEY, a int); INSERT INTO t SELECT g, 0 FROM generate_series(1, 3) g;
	CREATE TABLE x(id int, how text); CREATE TABLE y(id int);
	${[['gone', GONE], ['others', OTHERS], ['fails', `${GONE} PERFORM 1 / 0;`]].map(([n, sql]) =>
		`CREATE FUNCTION ${n}_v() RETURNS int LANGUAGE plpgsql AS $$ BEGIN ${sql} RETURN 1; END $$;
		CREATE FUNCTION ${n}() RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM ${n}_v(); RETURN 1; END $$;`).join('\n')}
	CREATE FUNCTION tr() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.how = 'gone' THEN ${GONE} ELSIF NEW.how = 'fails' THEN ${GONE} PERFORM 1 / 0; END IF; RETURN NULL; END $$;
	CREATE TRIGGER tr AFTER INSERT ON x FOR EACH ROW EXECUTE FUNCTION tr();
	CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${GONE} RETURN NULL; END $$;
	CREATE CONSTRAINT TRIGGER late AFTER INSERT ON y DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late();`;

test('a change outlives a function that takes away what is prepared, read or written', async t => {
	const w = await world(t, { setup: SETUP });
	const { json: { change_id } } = await w.agent.execute('UPDATE t SET a = 1 WHERE id = 1');
	let n = 1;
	for (const [tool, sql, expected] of [
		['query', 'SELECT gone()', 'rows'],
		['query', 'SELECT others()', 'rows'],
		['query', 'SELECT fails()', '22012'],
		['execute', 'INSERT INTO x VALUES (1, \'gone\')', 'SETTING_CHANGED'],
		['execute', 'INSERT INTO x VALUES (1, \'fails\')', '22012'],
		['execute', 'INSERT INTO y VALUES (1)', 'SETTING_CHANGED'],
	]) {
		const answer = await w.agent[tool](sql, { change_id });
		assert.equal(outcome(answer), expected, `${sql}: ${answer.text}`);
		const more = await w.agent.execute(`UPDATE t SET a = ${++n} WHERE id = 2`, { change_id });
		assert.equal(more.json?.complete, true, `after ${sql}: ${more.text}`);
	}
	await w.operator.commit(change_id);
	assert.equal(await w.sql('SELECT string_agg(a::text, \',\' ORDER BY id) FROM t'), `1,${n},0`);
});

test('a change that begins so is refused with the reason, and the next is not', async t => {
	const w = await world(t, { setup: SETUP });
	for (const [sql, expected] of [['INSERT INTO x VALUES (1, \'gone\')', 'SETTING_CHANGED'], ['INSERT INTO y VALUES (1)', 'SETTING_CHANGED'],
		['INSERT INTO x VALUES (1, \'fails\')', '22012'], ['INSERT INTO x VALUES (1, \'\')', 'pending']]) {
		const answer = await w.agent.execute(sql);
		assert.equal(outcome(answer), expected, `${sql}: ${answer.text}`);
	}
	for (const sql of ['SELECT gone()', 'SELECT others()', 'SELECT 1', 'SELECT gone()', 'SELECT count(*) FROM t'])
		assert.equal(outcome(await w.agent.query(sql)), 'rows', sql);
});
