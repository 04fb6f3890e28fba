// sizes: how many rows a table is said to hold before and after a change
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const T = 'CREATE TABLE t(id int PRIMARY KEY, a int); INSERT INTO t SELECT g, g FROM generate_series(1, 10) g;';
const trigger = body => `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} RETURN NULL; END $$;
	CREATE TRIGGER tr AFTER INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION f();`;

// Of each table that is shown: "before -> after", with a ~ where it is said to
// be an estimate, ? where it is not known.
function sizes(json) {
	const n = (t, v) => `${t.rows_estimated ? '~' : ''}${v ?? '?'}`;
	return Object.fromEntries(json.tables.map(t => [t.table.replace('public.', ''),
		`${n(t, t.rows_before)} -> ${n(t, t.rows_after)}`]));
}

const cases = {
	'of a table alone': [T, ['DELETE FROM t WHERE id < 4'], { t: '10 -> 7' }],
	'of a table that a trigger fills': [`${T} CREATE TABLE log(n int); INSERT INTO log VALUES (1), (2); ${trigger('INSERT INTO log VALUES (3);')}`,
		['DELETE FROM t WHERE id < 4', 'INSERT INTO t VALUES (50)'], { t: '10 -> 8', log: '2 -> 6' }],
	'of a table that a cascade empties': [`${T} CREATE TABLE kid(p int REFERENCES t ON DELETE CASCADE); INSERT INTO kid SELECT g % 2 + 1 FROM generate_series(1, 8) g;`,
		['DELETE FROM t WHERE id = 1'], { t: '10 -> 9', kid: '8 -> 4' }],
	'of a table that a later statement reaches through a view': [`${T} CREATE VIEW v AS SELECT * FROM t;`,
		['INSERT INTO t VALUES (50)', 'DELETE FROM v WHERE id < 4'], { t: '10 -> 8' }],
	'of a table that a later statement reaches by a trigger': [`${T} CREATE TABLE o(n int); INSERT INTO o VALUES (1), (2); ${trigger('DELETE FROM o WHERE n = 1;')}`,
		['INSERT INTO o VALUES (3)', 'UPDATE t SET a = 0 WHERE id = 1'], { o: '2 -> 2', t: '10 -> 10' }],
	'of a parent: its children\'s rows are their own': [`${T} CREATE TABLE kid() INHERITS (t); INSERT INTO kid VALUES (90, 1), (91, 2);`,
		['UPDATE t SET a = 0 WHERE id IN (1, 90)'], { t: '10 -> 10', kid: '2 -> 2' }],
	'of a table that is partitioned, and of one that is written by its part': [`CREATE TABLE p(id int) PARTITION BY RANGE (id);
		CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); CREATE TABLE p2 PARTITION OF p DEFAULT; INSERT INTO p SELECT generate_series(1, 15);`,
	['INSERT INTO p VALUES (3), (30)', 'DELETE FROM p2 WHERE id = 11'], { p: '15 -> 16' }],
	'of a table whose rows the logins see in part, an estimate': [`${T} ANALYZE t; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id < 4);`,
		['DELETE FROM t WHERE id = 1'], { t: '~10 -> ~9' }],
	'of such a table that was never analyzed, nothing': [`${T} ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id < 4);`,
		['DELETE FROM t WHERE id = 1'], { t: '? -> ?' }],
	'of a table that is filled for the first time': ['CREATE TABLE t(id int);',
		['INSERT INTO t SELECT generate_series(1, 10001)'], { t: '0 -> 10001' }],
	'of 10,000 rows, counted': ['CREATE TABLE t(id int); INSERT INTO t SELECT generate_series(1, 10000);',
		['DELETE FROM t WHERE id = 1'], { t: '10000 -> 9999' }],
	'of more than 10,000 rows, an estimate': ['CREATE TABLE t(id int); INSERT INTO t SELECT generate_series(1, 10001); ANALYZE t;',
		['INSERT INTO t VALUES (1)'], { t: '~10001 -> ~10002' }],
	'of a table that a trigger has emptied, nothing': [`${T} CREATE TABLE log(n int); INSERT INTO log VALUES (1), (2);
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN TRUNCATE log; RETURN NULL; END $$;
		CREATE TRIGGER tr AFTER UPDATE ON t EXECUTE FUNCTION f();`, ['UPDATE t SET a = 0 WHERE id = 1'], { t: '10 -> 10', log: '? -> ?' }],
};

for (const [name, [setup, steps, expected]] of Object.entries(cases))
	test(`the size ${name}`, async t => {
		const w = await world(t, { setup });
		let json;
		for (const sql of steps) {
			const answer = await w.agent.execute(sql, json && { change_id: json.change_id });
			assert.equal(outcome(answer), 'pending', answer.text);
			json = answer.json;
		}
		assert.deepEqual(sizes(json), expected);
	});
