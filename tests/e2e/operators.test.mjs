// operators: what somebody else's operators are in the way of Airlock's own
// questions, which name none by its schema
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { outcome, release, world } from './lib/world.mjs';

after(release);

// An operator of public for each two types between which PostgreSQL has none
// but by a cast: a question that would need the cast comes to these.
const list = words => `'{${words}}'::text[]`;
const TYPES = 'oid,int2,int4,int8,float4,text,name,char,regclass,regproc,xid,text[],name[]'.replace('char,', '\\"char\\",');
const TAKEN = `SET search_path = pg_catalog; DO $do$ DECLARE o text; a text; b text; n int := 0; BEGIN
	FOREACH o IN ARRAY ${list('=,<>,<,>,<=,>=,||,~,!~,&,+,-')} LOOP
	FOREACH a IN ARRAY ${list(TYPES)} LOOP FOREACH b IN ARRAY ${list(TYPES)} LOOP
		CONTINUE WHEN to_regoperator(format('pg_catalog.%s(%s,%s)', o, a, b)) IS NOT NULL;
		n := n + 1;
		EXECUTE format('CREATE FUNCTION public.h%s(%s, %s) RETURNS %s IMMUTABLE LANGUAGE plpgsql AS %L', n, a, b,
			CASE WHEN o IN ('+', '-', '||', '&') THEN 'text' ELSE 'bool' END, format('BEGIN RAISE ''taken: %s %s %s''; END', a, o, b));
		EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.h%s)', o, a, b, n);
	END LOOP; END LOOP; END LOOP; END $do$; RESET search_path;`;
const SETUP = `
	CREATE TABLE t(id int PRIMARY KEY, a int); INSERT INTO t SELECT g, g FROM generate_series(1, 30) g;
	CREATE TABLE k(id int PRIMARY KEY, t int REFERENCES t ON DELETE CASCADE ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED);
	INSERT INTO k SELECT g, g FROM generate_series(1, 9) g; CREATE INDEX ON k(t);
	CREATE TABLE log(x text); CREATE RULE r AS ON DELETE TO log DO ALSO UPDATE t SET a = 0 WHERE id = 30;
	CREATE TABLE bag(x text, d timestamptz DEFAULT now()); INSERT INTO bag VALUES ('a'), ('a');
	CREATE TABLE p(id int, s text, PRIMARY KEY (id, s)) PARTITION BY LIST (s);
	CREATE TABLE p1 PARTITION OF p FOR VALUES IN ('a'); CREATE TABLE p2 PARTITION OF p FOR VALUES IN ('b');
	INSERT INTO p SELECT g, 'a' FROM generate_series(1, 5) g;
	CREATE VIEW v AS SELECT * FROM t WHERE id < 20;
	CREATE FUNCTION st(int) RETURNS int STABLE LANGUAGE sql AS 'SELECT a FROM public.t WHERE id = $1';
	CREATE AGGREGATE total(int) (SFUNC = int4pl, STYPE = int, INITCOND = 0);
	CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO public.log VALUES ('x'); UPDATE public.bag SET x = 'z'; RETURN NULL; END $$;
	CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH STATEMENT EXECUTE FUNCTION f();
	CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f();`;

for (const narrow_above of ['1M', '0'])
	test(`operators that others made are not asked, narrow_above ${narrow_above}`, async t => {
		const w = await world(t, { setup: TAKEN + SETUP, config: `[airlock]\nnarrow_above = ${narrow_above}\n` });
		for (const sql of ['SELECT 1', 'SELECT st(1), count(*), total(id) FROM v', 'SELECT * FROM p', 'SELECT \'t\'::regclass', 'EXPLAIN SELECT * FROM v']) {
			const { json, text } = await w.agent.query(sql);
			assert.ok(json?.rows, text);
		}
		assert.match((await w.agent.query('SELECT * FROM tt')).text, /42P01/);
		assert.match((await w.agent.query('SELECT aa FROM t')).text, /42703/);
		for (const args of [{}, { table: 'public.t' }, { table: 'public.p' }]) {
			const { error, text } = await w.agent.call('db_schema', args);
			assert.equal(error, false, text);
		}
		let change_id;
		for (const sql of ['UPDATE t SET a = 0 WHERE id = 1', 'DELETE FROM t WHERE id = 2', 'UPDATE t SET id = 50 WHERE id = 3',
			'INSERT INTO t VALUES (60, 1), (4, 4) ON CONFLICT (id) DO UPDATE SET a = excluded.a', 'INSERT INTO bag VALUES (\'q\')',
			'UPDATE p SET s = \'b\' WHERE id < 3', 'UPDATE v SET a = 7 WHERE id = 5', 'DELETE FROM log WHERE x = \'x\'',
			'WITH d AS (DELETE FROM t WHERE id = 6 RETURNING id) INSERT INTO log SELECT id::text FROM d']) {
			const alone = await w.agent.execute(sql);
			assert.deepEqual([outcome(alone), alone.json?.complete], ['pending', true], `${sql}: ${alone.text}`);
			await w.agent.call('db_withdraw', { change_id: alone.json.change_id });
		}
		for (const sql of ['UPDATE t SET a = 0 WHERE id = 1', 'DELETE FROM t WHERE id = 2', 'INSERT INTO p VALUES (1, \'b\'), (9, \'b\') ON CONFLICT DO NOTHING']) {
			const { json, text } = await w.agent.execute(sql, change_id && { change_id });
			assert.equal(json?.complete, true, `${sql}: ${text}`);
			change_id = json.change_id;
		}
		await w.operator.commit(change_id);
	});

// One that is true of few catalogs takes the others out of the proof.
test('what a function does to the catalogs is not hidden by an operator', async t => {
	const w = await world(t, { setup: `CREATE TABLE t(id int PRIMARY KEY); INSERT INTO t VALUES (1); CREATE TABLE log(x text);
		CREATE FUNCTION few(oid, int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1 OPERATOR(pg_catalog.=) ''2600''';
		CREATE OPERATOR public.< (LEFTARG = oid, RIGHTARG = int, FUNCTION = few);
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN GRANT SELECT ON public.log TO public; RETURN NULL; END $$;
		CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH STATEMENT EXECUTE FUNCTION f();` });
	const { json, text } = await w.agent.execute('UPDATE t SET id = 2');
	assert.equal(json?.complete, false, text);
	assert.ok(json.reasons.some(r => r.code === 'HIDDEN_DDL'), text);
});
