// judge: what a statement would run, by the catalog of the server it runs on
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { bindir } from './lib/cluster.mjs';
import { outcome, release, world } from './lib/world.mjs';
import { ask, exited, Lines } from './lib/wait.mjs';

after(release);

const PLACES = `
	CREATE TABLE t(id int PRIMARY KEY, a text);
	INSERT INTO t VALUES (1, 'x');
	CREATE TABLE trace(n int);
	CREATE FUNCTION vol() RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1';
	CREATE FUNCTION stab() RETURNS int LANGUAGE sql STABLE AS 'SELECT 1';
	CREATE VIEW v AS SELECT id, vol() AS x FROM t;
	CREATE VIEW v2 AS SELECT * FROM (SELECT * FROM v WHERE id = 1) s;
	CREATE VIEW v_lock AS SELECT pg_try_advisory_lock(1);
	CREATE VIEW v_file AS SELECT pg_ls_dir('.') AS f;
	CREATE VIEW v_xml AS SELECT table_to_xml('t', true, true, '') AS x;
	CREATE VIEW v_ok AS SELECT t.*, stab(), now(), random() FROM t JOIN pg_class ON relname = a;
	CREATE FUNCTION opf(int, int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1';
	CREATE OPERATOR %%% (leftarg = int, rightarg = int, function = opf);
	CREATE VIEW v_op AS SELECT 1 %%% 2 AS x;
	CREATE FUNCTION chk(int) RETURNS bool LANGUAGE sql VOLATILE AS 'SELECT true';
	CREATE DOMAIN dom AS int CHECK (chk(VALUE));
	CREATE TYPE comp AS (d dom);
	CREATE TYPE en AS ENUM ('a');
	CREATE FUNCTION to_en(text) RETURNS en LANGUAGE sql VOLATILE AS $$ SELECT 'a'::en $$;
	CREATE CAST (text AS en) WITH FUNCTION to_en(text);
	CREATE AGGREGATE agg(int) (sfunc = opf, stype = int);
	CREATE FUNCTION dflt(a int DEFAULT vol()) RETURNS int LANGUAGE sql STABLE AS 'SELECT 1';
	CREATE FUNCTION over(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 1';
	CREATE FUNCTION over(int, int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1';
	CREATE FUNCTION attr(t) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1';
	CREATE FUNCTION a(t) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1';
	CREATE TABLE card(id int); INSERT INTO card VALUES (7);
	CREATE FUNCTION card_text(card) RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT 'x' $$;
	CREATE CAST (card AS text) WITH FUNCTION card_text(card);
	CREATE FUNCTION card_name(card) RETURNS varchar LANGUAGE sql VOLATILE AS $$ SELECT 'x' $$;
	CREATE CAST (card AS varchar) WITH FUNCTION card_name(card) AS ASSIGNMENT;
	CREATE DOMAIN card_dom AS text;
	CREATE FUNCTION card_op(card, card) RETURNS bool LANGUAGE sql VOLATILE AS $$ SELECT true $$;
	CREATE OPERATOR %%% (leftarg = card, rightarg = card, function = card_op);
	CREATE FUNCTION cards_op(card[], int) RETURNS bool LANGUAGE sql VOLATILE AS $$ SELECT true $$;
	CREATE OPERATOR %%% (leftarg = card[], rightarg = int, function = cards_op);
	CREATE TABLE coin(id int); INSERT INTO coin VALUES (8);
	CREATE FUNCTION coin_text(coin) RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT 'x' $$;
	CREATE CAST (coin AS text) WITH FUNCTION coin_text(coin) AS IMPLICIT;
	CREATE EXTENSION tsm_system_rows; CREATE EXTENSION "uuid-ossp";
	CREATE TABLE guarded(id int);
	ALTER TABLE guarded ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
	CREATE POLICY p ON guarded USING (vol() = 1);
	GRANT ALL ON ALL TABLES IN SCHEMA public TO app;`;

const reading = async (t, more) => world(t, { setup: PLACES, ...more });

test('a read calls no VOLATILE function by any way', async t => {
	const w = await reading(t);
	for (const [sql, code, says] of [
		['SELECT vol()', 'FUNCTION_UNKNOWN', /would call public\.vol\(\), which is VOLATILE.*at character 8/],
		['SELECT * FROM v', 'FUNCTION_UNKNOWN', /view public\.v calls .*public\.vol\(\)/],
		['SELECT 1 FROM v2', 'FUNCTION_UNKNOWN', /view public\.v calls .*public\.vol\(\)/],
		['WITH c AS (SELECT * FROM v2) SELECT 1 FROM c', 'FUNCTION_UNKNOWN', /view public\.v /],
		['EXPLAIN SELECT * FROM v', 'FUNCTION_UNKNOWN', /view public\.v /],
		['SELECT * FROM v_lock', 'FUNCTION_OUTSIDE', /view public\.v_lock calls pg_catalog\.pg_try_advisory_lock/],
		['SELECT * FROM v_file', 'FUNCTION_OUTSIDE', /view public\.v_file calls pg_catalog\.pg_ls_dir/],
		['SELECT * FROM v_xml', 'FUNCTION_OUTSIDE', /view public\.v_xml calls pg_catalog\.table_to_xml/],
		['SELECT * FROM v_op', 'FUNCTION_UNKNOWN', /view public\.v_op calls .*public\.opf\(/],
		['SELECT 1 %%% 2', 'FUNCTION_UNKNOWN', /operator public\.%%%\(integer,integer\) calls/],
		['SELECT 1 OPERATOR(public.%%%) 2', 'FUNCTION_UNKNOWN', /operator public\.%%%/],
		['SELECT 5::dom', 'FUNCTION_UNKNOWN', /type public\.dom calls .*public\.chk\(/],
		['SELECT dom(5)', 'FUNCTION_UNKNOWN', /type public\.dom/],
		['SELECT * FROM json_populate_record(NULL::comp, \'{"d":1}\')', 'FUNCTION_UNKNOWN', /type public\.dom/],
		['SELECT * FROM json_to_record(\'{"d":1}\') AS x(d dom)', 'FUNCTION_UNKNOWN', /type public\.dom/],
		['SELECT a::en FROM t', 'FUNCTION_UNKNOWN', /type public\.en calls .*public\.to_en\(/],
		['SELECT agg(id) FROM t', 'FUNCTION_UNKNOWN', /aggregate public\.agg\(integer\) calls/],
		['SELECT dflt()', 'FUNCTION_UNKNOWN', /function public\.dflt\(integer\) calls/],
		['SELECT t.attr FROM t', 'FUNCTION_UNKNOWN', /public\.attr\(public\.t\)/],
		['SELECT (t).attr FROM t', 'FUNCTION_UNKNOWN', /public\.attr/],
		['SELECT over(1, 2)', 'FUNCTION_UNKNOWN', /public\.over\(integer,integer\)/],
		...['SELECT c::text FROM card c', 'SELECT CAST(c AS text) FROM card c', 'SELECT text(c) FROM card c', 'SELECT c.text FROM card c',
			'SELECT (ARRAY[c])[1]::text FROM card c', 'SELECT x::text FROM (SELECT c FROM card c) s(x)', 'SELECT c::card_dom FROM card c',
			'SELECT (ROW(1)::card)::text', 'SELECT length(c) FROM coin c', 'SELECT id FROM coin'].map(sql => [sql, 'FUNCTION_UNKNOWN', /type public\.(card|coin) calls .*public\.(card|coin)_text\(/]),
		...['SELECT c::varchar FROM card c', 'SELECT CAST(c AS character varying(9)) FROM card c']
			.map(sql => [sql, 'FUNCTION_UNKNOWN', /type public\.card calls .*public\.card_name\(/]),
		['SELECT 1 FROM card c WHERE c %%% c', 'FUNCTION_UNKNOWN', /cards?_op/],
		['SELECT 1 FROM card c GROUP BY c HAVING array_agg(c) %%% 1', 'FUNCTION_UNKNOWN', /cards?_op/],
		['SELECT * FROM guarded', 'FUNCTION_UNKNOWN', /policy|table public\.guarded calls/],
	]) {
		const answer = await w.agent.query(sql);
		assert.equal(outcome(answer), code, `${sql}: ${answer.text}`);
		assert.match(answer.text, says, sql);
	}
});

test('what only reads is not kept out', async t => {
	const bare = await world(t); // with nothing of anybody's in its catalogs
	for (const sql of ['SELECT 1 + 1', 'SELECT 1', 'SELECT \'a\'::text', 'SELECT 2 BETWEEN 1 AND 3'])
		assert.equal(outcome(await bare.agent.query(sql)), 'rows', sql);
	const w = await reading(t);
	for (const sql of ['SELECT 1 + 1', 'SELECT * FROM v_ok', 'SELECT stab(), now(), gen_random_uuid()', 'SELECT over(1)', 'SELECT t.a FROM t',
		'SELECT x.a, x.id FROM (SELECT * FROM t) x', 'EXPLAIN ANALYZE SELECT * FROM t', 'SELECT * FROM pg_stat_activity',
		'SELECT * FROM information_schema.columns LIMIT 1', 'SELECT \'a\'::text || 1', 'VALUES (1)', 'TABLE t', 'SHOW work_mem',
		'SELECT $1::int4', 'SELECT id FROM card', 'SELECT c, id + 1 FROM card c', 'SELECT 1::int, \'a\'::varchar',
		'SELECT id FROM t TABLESAMPLE bernoulli (50)', 'SELECT id FROM t TABLESAMPLE SYSTEM (50) REPEATABLE (1)',
		'SELECT id FROM t TABLESAMPLE system_rows (1)', 'SELECT uuid_generate_v4()'])
		assert.equal(outcome(await w.agent.query(sql, sql.includes('$1') ? { params: ['1'] } : {})), 'rows', sql);
});

test('a comment may stand wherever white space may', async t => {
	const w = await reading(t);
	for (const [sql, rows] of [
		['SELECT 1 NOT /* c */ IN (2)', [['t']]],
		['SELECT \'a\' NOT -- c\n LIKE \'b\', 1 NOT/**/BETWEEN 2 AND 3', [['t', 't']]],
		['SELECT id FROM t ORDER BY id NULLS /* /* c */ */ FIRST', [['1']]],
		['SELECT i FROM unnest(ARRAY[7]) WITH /* c */ ORDINALITY AS u(x, i)', [['1']]],
		['SELECT \'2026-01-01 00:00:00+00\'::timestamp WITH /* c */ TIME /* c */ ZONE IS NULL', [['f']]],
		['SELECT U&\'!0041\' /* c */ UESCAPE /* c */ \'!\'', [['A']]],
		['SELECT \'a\' -- c\n\'b\', E\'a\' -- c\n\'\\\\ -- b\'', [['ab', 'a\\ -- b']]],
		['SELECT \'-- a\', $$/* b */$$, E\'\\\' -- c\', "--d" FROM (SELECT 1 AS "--d") s -- /*', [['-- a', '/* b */', '\' -- c', '1']]],
		['/* é */ SELECT /* é */ 1 /* é', '42601'],
		['SELECT \'a\' /* c */\n\'b\'', '42601'],
	]) {
		const answer = await w.agent.query(sql);
		if (typeof rows === 'string')
			assert.equal(outcome(answer), rows, answer.text);
		else
			assert.deepEqual(answer.json?.rows, rows, `${sql}: ${answer.text}`);
	}
	const place = await w.agent.query('/* é漢 */ SELECT -- é\n nix FROM t');
	assert.match(place.text, /42703.*at character 23, near "nix FROM t"/);
	assert.match((await w.agent.query('/* é漢 */ SELECT )')).text, /42601.*at character 17, near "\)"/);
	// what is sent is what was parsed
	const held = await w.agent.execute('/*+ Hint(t) */ UPDATE t SET a = /* c */ \'y\' WHERE id NOT /* c */ IN (7)');
	assert.equal(outcome(held), 'pending', held.text);
	assert.match(await w.sql('SELECT query FROM pg_stat_activity WHERE backend_xid IS NOT NULL'), /^(?!.*\/\*)/);
	const { head } = await w.operator.show(held.json.change_id);
	assert.match(head.statements[0].sql, /^\/\*\+ Hint\(t\) \*\/ UPDATE/);
});

test('a definition that changes between two statements is judged anew', async t => {
	const w = await reading(t);
	const read = async sql => outcome(await w.agent.query(sql));
	await w.sql('CREATE VIEW w AS SELECT id FROM t; CREATE FUNCTION g() RETURNS int LANGUAGE sql STABLE AS \'SELECT 1\';');
	for (const [before, sql] of [
		['CREATE OR REPLACE VIEW w AS SELECT vol() AS id', 'SELECT id FROM w'],
		['ALTER FUNCTION g() VOLATILE', 'SELECT g()'],
		['CREATE FUNCTION g(text) RETURNS int LANGUAGE sql VOLATILE AS \'SELECT 1\'', 'SELECT g(\'1\')'],
		['CREATE FUNCTION h(text, text) RETURNS int LANGUAGE sql VOLATILE AS \'SELECT 1\'; CREATE OPERATOR ### (leftarg = text, rightarg = text, function = h)',
			'SELECT id FROM t WHERE \'a\'::text ### \'b\'::text = 1'],
		['ALTER DOMAIN plain_dom ADD CHECK (chk(VALUE))', 'SELECT 1::plain_dom'],
	]) {
		await w.sql('CREATE OPERATOR ### (leftarg = int, rightarg = int, function = int4pl)').catch(() => {});
		await w.sql('CREATE DOMAIN plain_dom AS int').catch(() => {});
		await w.sql('ALTER FUNCTION g() STABLE');
		const first = await read(sql);
		assert.ok(['rows', '42883'].includes(first), `${sql}: ${first}`);
		assert.equal(await read(sql), first);
		await w.sql(before);
		assert.equal(await read(sql), 'FUNCTION_UNKNOWN', sql);
	}
	await w.sql('CREATE OR REPLACE VIEW w AS SELECT 1 AS id; ALTER FUNCTION g() STABLE;');
	assert.equal(await read('SELECT id FROM w'), 'rows');
});

// A superuser's session; run(sql) has run it.
function session(w) {
	const child = spawn(join(bindir, 'psql'), ['-X', '-q', '-A', '-t', '-d', w.cluster.conninfo(w.database, 'postgres')],
		{ stdio: ['pipe', 'pipe', 'inherit'] });
	const lines = new Lines(child.stdout);
	let n = 0;
	return {
		run: sql => {
			child.stdin.write(`${sql}\n\\echo done ${++n}\n`);
			return lines.until(l => l === `done ${n}`);
		},
		end: () => {
			child.stdin.end();
			return exited(child);
		},
	};
}

// A statement that waits for a lock while what it uses is defined anew.
async function during(w, sql, change, tool = 'query') {
	const s = session(w);
	await s.run('BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE;');
	const answer = w.agent[tool](sql);
	await ask(async () => await w.sql('SELECT count(*) FROM pg_locks WHERE NOT granted') !== '0', 'a waiting lock');
	await w.sql(change);
	await s.run('COMMIT');
	await s.end();
	return answer;
}

test('a definition that changes while a read waits is noticed', async t => {
	const w = await reading(t);
	await w.sql('CREATE FUNCTION g() RETURNS int LANGUAGE sql STABLE AS \'SELECT 1\'');
	assert.equal(outcome(await w.agent.query('SELECT g() FROM t')), 'rows');
	const answer = await during(w, 'SELECT g() FROM t', 'ALTER FUNCTION g() VOLATILE');
	assert.equal(outcome(answer), 'FUNCTION_UNKNOWN', answer.text);
	await w.sql('ALTER FUNCTION g() STABLE');
	assert.equal(outcome(await during(w, 'SELECT g() FROM t', 'ALTER FUNCTION g() VOLATILE; ALTER FUNCTION g() STABLE;')), 'rows');
});

test('a trigger that comes between two writes, or during one, is seen', async t => {
	const w = await reading(t);
	await w.sql(`CREATE TABLE log(id int); GRANT INSERT ON log TO app;
		CREATE FUNCTION logs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (NEW.id); NEW.a := NEW.a || '!'; RETURN NEW; END $$`);
	const make = f => `CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION ${f}()`;
	const UPDATE = 'UPDATE t SET a = \'y\' WHERE id = 1 RETURNING a';
	const seen = async answer => {
		const { json, text } = await answer;
		assert.equal(json?.status, 'pending', text);
		await w.agent.call('db_withdraw', { change_id: json.change_id });
		return [json.complete, json.returned.rows[0][0], ...json.tables.map(x => x.table).sort()];
	};
	const without = [true, 'y', 'public.t'], with_ = [true, 'y!', 'public.log', 'public.t'];
	assert.deepEqual(await seen(w.agent.execute(UPDATE)), without);
	await w.sql(make('logs'));
	assert.deepEqual(await seen(w.agent.execute(UPDATE)), with_);
	await w.sql('DROP TRIGGER tr ON t');
	assert.deepEqual(await seen(w.agent.execute(UPDATE)), without);
	const s = session(w);
	await s.run(`BEGIN; ${make('logs')}; LOCK TABLE t IN ACCESS EXCLUSIVE MODE;`);
	const answer = w.agent.execute(UPDATE);
	await ask(async () => await w.sql('SELECT count(*) FROM pg_locks WHERE NOT granted') !== '0', 'a waiting lock');
	await s.run('COMMIT;');
	await s.end();
	assert.deepEqual(await seen(answer), with_);
});

test('a table that is a view by the time that the read gets to it', async t => {
	const w = await reading(t);
	assert.equal(outcome(await w.agent.query('SELECT id FROM trace2')), '42P01');
	await w.sql('CREATE TABLE trace2(id int)');
	assert.equal(outcome(await w.agent.query('SELECT id FROM trace2')), 'rows');
	const s = session(w);
	await s.run('BEGIN; DROP TABLE trace2; CREATE VIEW trace2 AS SELECT vol() AS id;');
	const answer = w.agent.query('SELECT id FROM trace2');
	await ask(async () => await w.sql('SELECT count(*) FROM pg_locks WHERE NOT granted') !== '0', 'a waiting lock');
	await s.run('COMMIT');
	await s.end();
	assert.equal(outcome(await answer), 'FUNCTION_UNKNOWN');
});

test('a write may call a VOLATILE function, but nothing that reaches outside', async t => {
	const w = await reading(t);
	for (const [sql, code] of [
		['INSERT INTO trace SELECT vol()', 'pending'],
		['INSERT INTO trace SELECT x FROM v', 'pending'],
		['INSERT INTO trace SELECT 1 FROM v_lock', 'FUNCTION_OUTSIDE'],
		['UPDATE t SET a = (SELECT f FROM v_file LIMIT 1)', 'FUNCTION_OUTSIDE'],
		['DELETE FROM t USING v_xml WHERE x IS NULL', 'FUNCTION_OUTSIDE'],
	]) {
		const answer = await w.agent.execute(sql);
		assert.equal(outcome(answer), code, `${sql}: ${answer.text}`);
	}
});

test('a write that was let in before does not run by what is there now', async t => {
	const w = await reading(t);
	await w.sql('CREATE SEQUENCE told; GRANT ALL ON SEQUENCE told TO app; CREATE VIEW w AS SELECT 7 AS id;');
	const sql = 'INSERT INTO trace SELECT id FROM w';
	for (const more of [[], ['SELECT 1', 'SELECT id FROM w', 'SELECT id FROM w', 'SELECT id FROM w']]) {
		for (let i = 0; i < 2; i++) {
			const { json, text } = await w.agent.execute(sql);
			assert.equal(json?.status, 'pending', text);
			await w.agent.call('db_withdraw', { change_id: json.change_id });
		}
		// the second time nothing happens for a while, as far as snapshots tell
		for (const read of more)
			assert.equal(outcome(await w.agent.query(read)), 'rows');
		await w.sql('CREATE OR REPLACE VIEW w AS SELECT nextval(\'told\')::int AS id FROM v_lock');
		const answer = await w.agent.execute(sql);
		assert.equal(outcome(answer), 'FUNCTION_OUTSIDE', answer.text);
		assert.equal(await w.sql('SELECT is_called FROM told'), 'f');
		await w.sql('CREATE OR REPLACE VIEW w AS SELECT 7 AS id');
	}
	assert.equal(outcome(await w.agent.execute(sql)), 'pending');
	assert.equal(await w.sql('SELECT count(*) FROM pg_locks WHERE locktype = \'advisory\''), '0');
});

test('a condition that asks what the definition answers chooses nothing', async t => {
	const w = await world(t, { setup: `
		CREATE TABLE t(id int PRIMARY KEY, n int NOT NULL, a text); INSERT INTO t VALUES (1, 1, 'x'), (2, 2, NULL);
		CREATE VIEW v AS SELECT * FROM t;` });
	for (const [sql, code] of [
		['UPDATE t SET a = \'y\' WHERE id IS NOT NULL', 'VACUOUS_WHERE'],
		['DELETE FROM t AS x WHERE NOT x.n IS NULL AND id IS DISTINCT FROM NULL', 'VACUOUS_WHERE'],
		['DELETE FROM t WHERE a IS NOT NULL OR n IS NOT NULL', 'VACUOUS_WHERE'],
		['UPDATE t SET a = \'y\' WHERE a IS NOT NULL', undefined],
		['UPDATE t SET a = \'y\' WHERE id IS NOT NULL AND a IS NOT NULL', undefined],
		['DELETE FROM t WHERE id IS NOT NULL AND n = 1', undefined],
		['UPDATE t SET a = \'y\' WHERE 1 = 1', 'VACUOUS_WHERE'],
		['UPDATE t SET a = \'y\' WHERE id = id', 'VACUOUS_WHERE'],
		['UPDATE t SET a = \'y\' WHERE id = 1 OR true', 'VACUOUS_WHERE'],
		['UPDATE t SET a = \'y\' WHERE EXISTS (SELECT FROM pg_class)', 'WHERE_IGNORES_TARGET'],
		['UPDATE t SET a = \'y\'', 'NO_WHERE'],
		// where a WITH clause hides it
		['WITH d AS (DELETE FROM t RETURNING id) SELECT count(*) FROM d', 'NO_WHERE'],
		['WITH u AS (UPDATE t SET a = \'z\' WHERE n = n RETURNING id) INSERT INTO t SELECT id + 10, 1 FROM u', 'VACUOUS_WHERE'],
		['WITH u AS (UPDATE t SET a = \'z\' WHERE EXISTS (SELECT FROM pg_class) RETURNING id) SELECT 1', 'WHERE_IGNORES_TARGET'],
		['WITH d AS (DELETE FROM t WHERE id = 1 RETURNING id) SELECT count(*) FROM d', undefined],
	]) {
		const { json, text } = await w.agent.execute(sql);
		assert.equal(json?.status, 'pending', text);
		const found = json.reasons.map(r => r.code).find(c => /WHERE/.test(c));
		assert.equal(found, code, sql);
		if (code)
			assert.equal(json.risk, 'high');
		await w.agent.call('db_withdraw', { change_id: json.change_id });
	}
	// a definition that is another by then
	await w.sql('ALTER TABLE t ALTER n DROP NOT NULL');
	const { json } = await w.agent.execute('DELETE FROM t WHERE n IS NOT NULL');
	assert.ok(!json.reasons.some(r => r.code === 'VACUOUS_WHERE'), JSON.stringify(json.reasons));
});

test('a read inside a held change is judged by what is true now', async t => {
	const w = await reading(t);
	await w.sql('CREATE FUNCTION g() RETURNS int LANGUAGE sql STABLE AS \'SELECT 1\'');
	const { json } = await w.agent.execute('INSERT INTO t VALUES (2, \'y\')');
	const inside = { change_id: json.change_id };
	assert.equal(outcome(await w.agent.query('SELECT g(), count(*) FROM t', inside)), 'rows');
	await w.sql('ALTER FUNCTION g() VOLATILE');
	assert.equal(outcome(await w.agent.query('SELECT g(), count(*) FROM t', inside)), 'FUNCTION_UNKNOWN');
	assert.equal((await w.agent.query('SELECT count(*) FROM t', inside)).json.rows[0][0], '2');
});

test('an unknown name is answered with the nearest that this login may see', async t => {
	const w = await world(t, { role: 'nearsighted', setup: `
		DROP ROLE IF EXISTS nearsighted; CREATE ROLE nearsighted LOGIN;
		CREATE TABLE customers(id int, email text, first_name text);
		CREATE TABLE customer_secrets(id int);
		CREATE SCHEMA hr; CREATE TABLE hr.salaries(id int);
		GRANT SELECT ON customers TO nearsighted;` });
	for (const [sql, near, not] of [
		['SELECT * FROM custmers', /42P01.*Names near it: public\.customers/, /secrets/],
		['SELECT * FROM public.customer', /Names near it: public\.customers/, /secrets/],
		['SELECT * FROM salaries', /42P01.*db_schema tells/, /hr\./],
		['SELECT emial FROM customers', /42703.*Names near it: customers\.email/, /first/],
		['SELECT c.name FROM customers c', /42703.*customers\.first_name/, /email/],
		['SELECT "zzz" FROM customers', /42703.*db_schema tells/, /near it/],
	]) {
		const { text } = await w.agent.query(sql);
		assert.match(text, near, sql);
		assert.doesNotMatch(text, not, sql);
	}
	for (const [table, near] of [
		['custmers', /42P01.*"custmers" does not exist, or is not open to this agent\. Names near it: public\.customers\. Call db_schema/],
		['public."Customers"', /Names near it: public\.customers\./],
		['hr.salaries', /42501: permission denied for schema hr/],
		['customer_secrets', /open to this agent\. Call/],
		['zzz', /open to this agent\. Call db_schema without/],
	]) {
		const { text } = await w.agent.call('db_schema', { table });
		assert.match(text, near, table);
		assert.doesNotMatch(text, /public\.customer_secrets|Names.*salaries|integer/, table);
	}
	for (const answer of [await w.agent.query('SELECT * FROM hr.salaries'), await w.agent.execute('DELETE FROM hr.salaries')])
		assert.match(answer.text, /^ERROR 42501: permission denied for schema hr/);
	await w.sql('GRANT INSERT, UPDATE ON customers TO nearsighted');
	for (const sql of ['UPDATE customers SET emial = 1', 'INSERT INTO customers(emial) VALUES (1)'])
		assert.match((await w.agent.execute(sql)).text, /42703.*customers\.email/, sql);
	assert.match((await w.agent.execute('DELETE FROM custmers')).text, /42P01.*public\.customers/);
	const { json } = await w.agent.execute('INSERT INTO customers(id) VALUES (1)');
	const again = await w.agent.execute('UPDATE customers SET emial = 1', { change_id: json.change_id });
	assert.match(again.text, /42703.*customers\.email/);
	const now = await w.agent.status(json.change_id);
	assert.equal(outcome(now), 'pending', now.text);
});
