// causes: which tables are collateral, and by what they were written
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const T = `CREATE TABLE t(id int PRIMARY KEY, a int); INSERT INTO t SELECT g, g FROM generate_series(1, 10) g;
	CREATE TABLE log(n int); CREATE TABLE u(id int PRIMARY KEY, n int); INSERT INTO u SELECT g, g FROM generate_series(1, 10) g;`;
const fn = (name, body) => `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} RETURN NULL; END $$;`;
const KID = `CREATE TABLE kid(id int PRIMARY KEY, p int CONSTRAINT of_t REFERENCES t ON DELETE CASCADE ON UPDATE CASCADE);
	INSERT INTO kid SELECT g, g FROM generate_series(1, 5) g;`;

const by = json => Object.fromEntries(json.tables.map(t => [t.table.replace('public.', ''), t.collateral
	? (t.by ?? []).map(b => [b.kind, b.name, b.on, b.function].filter(Boolean).join(' ').replaceAll('public.', '')) : 'named']));

const cases = {
	'a cascade by its constraint': [T + KID, ['DELETE FROM t WHERE id = 1'], { t: 'named', kid: ['constraint of_t kid'] }],
	'a cascade of a key that changes': [T + KID, ['UPDATE t SET id = 100 WHERE id = 1'], { t: 'named', kid: ['constraint of_t kid'] }],
	'cascades, one after the other': [`${T} ${KID} CREATE TABLE toy(k int CONSTRAINT of_kid REFERENCES kid ON DELETE SET NULL); INSERT INTO toy VALUES (1), (2);`,
		['DELETE FROM t WHERE id = 1'], { t: 'named', kid: ['constraint of_t kid'], toy: ['constraint of_kid toy'] }],
	'a trigger with its table and function': [`${T} ${fn('f', 'INSERT INTO log VALUES (1);')} CREATE TRIGGER "the tr" AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();`,
		['UPDATE t SET a = 0 WHERE id = 1'], { t: 'named', log: ['trigger the tr t f()'] }],
	'every trigger that fires for this, and no other': [`${T} ${fn('f', 'INSERT INTO log VALUES (1);')} ${fn('g', '')} CREATE TRIGGER b AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();
		CREATE TRIGGER a AFTER UPDATE OR DELETE ON t EXECUTE FUNCTION g(); CREATE TRIGGER c AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION f();
		CREATE TRIGGER d AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f(); ALTER TABLE t DISABLE TRIGGER d;
		CREATE TRIGGER e AFTER INSERT ON log FOR EACH ROW EXECUTE FUNCTION g();`,
	['UPDATE t SET a = 0 WHERE id = 1'], { t: 'named', log: ['trigger a t g()', 'trigger b t f()'] }],
	'a trigger of a statement that changes no row': [`${T} ${fn('f', 'INSERT INTO log VALUES (1);')} CREATE TRIGGER a AFTER DELETE ON t EXECUTE FUNCTION f();`,
		['DELETE FROM t WHERE id < 0'], { t: 'named', log: ['trigger a t f()'] }],
	'what either of two statements brought': [`${T} ${fn('f', 'INSERT INTO log VALUES (1);')} CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();
		CREATE TRIGGER b AFTER DELETE ON u FOR EACH ROW EXECUTE FUNCTION f();`,
	['INSERT INTO t VALUES (50)', 'DELETE FROM u WHERE id = 1'], { t: 'named', u: 'named', log: ['trigger a t f()', 'trigger b u f()'] }],
	'a trigger of a partitioned table, once': [`CREATE TABLE log(n int); CREATE TABLE p(id int) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
		CREATE TABLE p2 PARTITION OF p DEFAULT; ${fn('f', 'INSERT INTO log VALUES (1);')} CREATE TRIGGER a AFTER INSERT ON p FOR EACH ROW EXECUTE FUNCTION f();`,
	['INSERT INTO p VALUES (1), (20)'], { p: 'named', log: ['trigger a p f()'] }],
	'a rule': [`${T} CREATE RULE r AS ON UPDATE TO t DO ALSO INSERT INTO log VALUES (OLD.id); CREATE RULE s AS ON DELETE TO t DO ALSO INSERT INTO log VALUES (0);`,
		['UPDATE t SET a = 0 WHERE id = 1'], { t: 'named', log: ['rule r t'] }],
	'a function that is called': [`${T} CREATE FUNCTION w(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (n); RETURN n; END $$;`,
		['UPDATE t SET a = w(a) WHERE id = 1'], { t: 'named', log: ['function w(integer)'] }],
	'a view\'s own table is named': [`${T} CREATE VIEW v AS SELECT * FROM t WHERE a < 50;`,
		['DELETE FROM v WHERE id = 1'], { t: 'named' }],
	'so is that of a view of a view, inserted into': [`${T} CREATE VIEW v AS SELECT id, a FROM t; CREATE VIEW "v v" AS SELECT * FROM v;`,
		['INSERT INTO "v v" VALUES (50, 1)'], { t: 'named' }],
	'but not a table that the view only reads': [`${T} CREATE VIEW v AS SELECT id, (SELECT n FROM u WHERE u.id = 1) AS n, a FROM t WHERE id IN (SELECT id FROM u);
		${fn('f', 'UPDATE u SET n = 0 WHERE id = 2;')} CREATE TRIGGER a AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();`,
	['UPDATE v SET a = 0 WHERE id = 1'], { t: 'named', u: ['trigger a t f()'] }],
	'nor what a view\'s own trigger writes': [`${T} CREATE VIEW v AS SELECT * FROM t; ${fn('f', 'DELETE FROM t WHERE id = OLD.id;')}
		CREATE TRIGGER a INSTEAD OF DELETE ON v FOR EACH ROW EXECUTE FUNCTION f();`,
	['DELETE FROM v WHERE id = 1'], { t: ['trigger a v f()'] }],
	'nor what its rule does instead': [`${T} CREATE VIEW v AS SELECT * FROM t; CREATE RULE r AS ON DELETE TO v DO INSTEAD UPDATE t SET a = -1 WHERE id = OLD.id;`,
		['DELETE FROM v WHERE id = 1'], { t: ['rule r v'] }],
	'a table that a trigger wrote first is named once a view of it is': [`${T} CREATE VIEW v AS SELECT * FROM u; ${fn('f', 'UPDATE u SET n = 0 WHERE id = NEW.id;')}
		CREATE TRIGGER a AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();`,
	['UPDATE t SET a = 0 WHERE id = 1', 'UPDATE v SET n = 5 WHERE id = 2'], { t: 'named', u: 'named' }],
};

for (const [name, [setup, steps, expected]] of Object.entries(cases))
	test(name, async t => {
		const w = await world(t, { setup });
		let json;
		for (const sql of steps) {
			const answer = await w.agent.execute(sql, json && { change_id: json.change_id });
			assert.equal(outcome(answer), 'pending', answer.text);
			json = answer.json;
		}
		assert.equal(json.complete, true);
		assert.deepEqual(by(json), expected);
		const { head, rows } = await w.operator.show(json.change_id);
		assert.deepEqual(head.tables, json.tables);
		for (const row of rows)
			assert.equal(row.collateral, head.tables.find(x => x.table === row.table).collateral, row.table);
	});

test('the operator reads by what a table was written', async t => {
	const w = await world(t, { setup: `${T} ${fn('f', 'INSERT INTO log VALUES (1);')} CREATE TRIGGER b AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();
		CREATE TRIGGER "a\u001b[31m" AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();` });
	const { json } = await w.agent.execute('UPDATE t SET a = 0 WHERE id = 1');
	for (const verb of [['pending'], ['show', json.change_id]]) {
		const { stdout } = await w.operator.run(...verb);
		assert.match(stdout, /public\.log: 2 inserted.*; collateral: the statement does not name it; written by trigger a\\x1b\[31m on public\.t or b on public\.t/);
	}
});

test('what a trigger writes where the writer may not look is counted, and said why', async t => {
	const w = await world(t, { role: 'closed_out', setup: `
		DROP ROLE IF EXISTS closed_out; CREATE ROLE closed_out LOGIN;
		CREATE TABLE t(id int PRIMARY KEY); GRANT SELECT, INSERT ON t TO closed_out;
		CREATE TABLE shut(n int); CREATE SCHEMA far; CREATE TABLE far.off(n int);
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
			INSERT INTO public.shut VALUES (1); INSERT INTO far.off VALUES (1), (2); RETURN NULL; END $$;
		CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();` });
	const { json } = await w.agent.execute('INSERT INTO t VALUES (1)');
	assert.deepEqual([json.risk, json.complete], ['high', false]);
	assert.deepEqual(json.tables.map(x => [x.table, x.inserted, x.complete]).sort(),
		[['far.off', 2, false], ['public.shut', 1, false], ['public.t', 1, true]]);
	const { text } = json.reasons.find(x => x.code === 'INCOMPLETE');
	assert.match(text, /far\.off \(the writer's login may not look into its schema\)/);
	assert.match(text, /public\.shut \(the writer's login may not read it\)/);
	await w.operator.rollback(json.change_id);
	await w.sql('GRANT USAGE ON SCHEMA far TO closed_out; GRANT SELECT ON shut, far.off TO closed_out');
	const open = await w.agent.execute('INSERT INTO t VALUES (1)');
	assert.deepEqual([open.json.complete, open.json.tables.length], [true, 3], open.text);
});
