// reuse: what a statement leaves in its session is not there for the next one
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { outcome, release, world } from './lib/world.mjs';
import { ask } from './lib/wait.mjs';

after(release);

// Calls itself STABLE, as db_query asks, and reaches past the transaction.
const SETUP = `
	CREATE TABLE t(id int PRIMARY KEY, n int);
	INSERT INTO t SELECT g, 0 FROM generate_series(1, 30) g;
	CREATE FUNCTION forge() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
		DEALLOCATE airlock_counts;
		EXECUTE 'PREPARE airlock_counts(oid[]) AS SELECT 0 WHERE false';
		RETURN 1;
	END $$;
	CREATE FUNCTION lock() RETURNS int STABLE LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_advisory_lock(7); RETURN 1; END $$;
	CREATE FUNCTION swap() RETURNS int STABLE LANGUAGE plpgsql AS
		$$ BEGIN RETURN (SELECT forge()); END $$;`;

test('a read that locks or prepares leaves neither behind', async t => {
	const w = await world(t, { setup: SETUP });
	for (const call of ['lock()', 'swap()']) {
		const read = await w.agent.query(`SELECT ${call}`);
		assert.equal(outcome(read), 'rows', read.text);
	}
	await ask(async () => await w.sql(
		`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) === '0',
	'the lock to be let go');
	for (let id = 1; id <= 6; id++) {
		const { json, text } = await w.agent.execute(`UPDATE t SET n = 1 WHERE id = ${id}`);
		assert.equal(json?.complete, true, text);
		assert.equal(json.tables[0].updated, 1);
	}
});

test('what a read has chosen as the seed of random numbers is not there for the next', async t => {
	const w = await world(t, { setup: `CREATE FUNCTION seed() RETURNS void LANGUAGE sql AS 'SELECT setseed(0.25)';
		CREATE FUNCTION sow() RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM seed(); RETURN 1; END $$;` });
	const [first, second] = (await w.sql('SELECT setseed(0.25); SELECT random(); SELECT random()')).split('\n').filter(Boolean);
	for (let i = 0; i < 6; i++)
		assert.equal(outcome(await w.agent.query('SELECT sow()')), 'rows');
	for (let i = 0; i < 12; i++) {
		const { json, text } = await w.agent.query('SELECT random()');
		assert.ok(![first, second].includes(json?.rows[0][0]), text);
	}
});

test('what a read did to a catalog, and a rollback took back, is not counted with the next write', async t => {
	const w = await world(t, { setup: `${SETUP} CREATE FUNCTION made() RETURNS oid LANGUAGE sql AS 'SELECT lo_create(0)';
		CREATE FUNCTION make() RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM made(); RETURN 1; EXCEPTION WHEN read_only_sql_transaction THEN RETURN 1; END $$;` });
	for (let id = 1; id <= 6; id++) {
		assert.equal(outcome(await w.agent.query('SELECT make()')), 'rows');
		const { json, text } = await w.agent.execute(`UPDATE t SET n = 1 WHERE id = ${id}`);
		assert.deepEqual([json?.complete, json?.reasons], [true, []], text);
		await w.agent.call('db_withdraw', { change_id: json.change_id });
	}
});

// A trigger may leave what it likes in the session of a write that is committed.
test('a committed write leaves nothing behind', async t => {
	const w = await world(t, { setup: `${SETUP}
		CREATE FUNCTION litter() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			PERFORM set_config('work_mem', '65kB', false), pg_advisory_lock(8);
			CREATE TEMP TABLE IF NOT EXISTS pebble(n int);
			RETURN NULL;
		END $$;
		CREATE TABLE bin(id int PRIMARY KEY);
		CREATE TRIGGER litter AFTER INSERT ON bin FOR EACH STATEMENT EXECUTE FUNCTION litter();` });
	const { json, text } = await w.agent.execute('INSERT INTO bin VALUES (1)');
	assert.ok(json, text);
	await w.operator.commit(json.change_id);
	await ask(async () => await w.sql(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) === '0'
		&& await w.sql('SELECT count(*) FROM pg_class WHERE relname = \'pebble\'') === '0',
	'the lock and the table to go');
	for (let id = 11; id <= 16; id++) {
		const { json, text } = await w.agent.execute(`UPDATE t SET n = 1 WHERE id = ${id}
			RETURNING current_setting('work_mem')`);
		assert.equal(json?.complete, true, text);
		assert.deepEqual(json.returned.rows, [['4MB']]);
	}
});

test('a setting of its own that a function makes is not there for the next change', async t => {
	const how = {
		config: 'PERFORM set_config(\'my.config\', NEW.id::text, true);',
		local: 'SET LOCAL my.local = \'x\';',
		attached: '',
	};
	const w = await world(t, { setup: `
		${Object.entries(how).map(([n, sql]) => `CREATE TABLE ${n}(id int, was text);
			CREATE FUNCTION f_${n}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				NEW.was := COALESCE(current_setting('my.${n}', true), 'none'); ${sql} RETURN NEW; END $$;
			CREATE TRIGGER tr BEFORE INSERT ON ${n} FOR EACH ROW EXECUTE FUNCTION f_${n}();`).join('\n')}
		CREATE FUNCTION silent() RETURNS trigger LANGUAGE plpgsql SET my.attached = 'x' AS $$ BEGIN RETURN NULL; END $$;
		CREATE TRIGGER tr2 AFTER INSERT ON attached EXECUTE FUNCTION silent();` });
	for (const table of Object.keys(how))
		for (let id = 1; id <= 4; id++) {
			const { json, text } = await w.agent.execute(`INSERT INTO ${table} VALUES (${id})`);
			assert.equal(json?.complete, true, text);
			assert.deepEqual((await w.operator.show(json.change_id)).rows.map(x => x.after.was), ['none'], `${table}, the ${id}th time`);
			if (id % 2)
				await w.operator.commit(json.change_id);
			else
				await w.agent.call('db_withdraw', { change_id: json.change_id });
		}
});

test('nor is one that a read inside a change made, or a statement that failed', async t => {
	const w = await world(t, { setup: `CREATE TABLE t(id int CHECK (id < 9), was text); CREATE TABLE o(id int);
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			NEW.was := COALESCE(current_setting('my.read', true), current_setting('my.fails', true), 'none');
			IF NEW.id > 8 THEN EXECUTE format('SET LOCAL %s = 1', 'my' || '.fails'); END IF; RETURN NEW; END $$;
		CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();
		CREATE FUNCTION sets() RETURNS text LANGUAGE sql AS 'SELECT set_config(''my.read'', ''x'', true)';
		CREATE FUNCTION reads() RETURNS text STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN sets(); END $$;` });
	for (const other of [c => w.agent.query('SELECT reads()', c), c => w.agent.execute('INSERT INTO t VALUES (9)', c), () => {}])
		for (let i = 0; i < 3; i++) {
			const { json: { change_id }, text } = await w.agent.execute('INSERT INTO t VALUES (1)');
			assert.deepEqual((await w.operator.show(change_id)).rows.map(x => x.after.was), ['none'], text);
			await other({ change_id });
			await w.operator.commit(change_id);
		}
});

test('nor what the functions of an index did, which the planner calls', async t => {
	const w = await world(t, { setup: `${SETUP}
		CREATE FUNCTION gone() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
			IF current_user = 'app' THEN EXECUTE 'DEALLOCATE ALL'; END IF; RETURN 1; END $$;
		CREATE FUNCTION fixed(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT public.gone()); END $$;
		CREATE INDEX ON t ((n + fixed(1))); CREATE TABLE o(id int);` });
	for (let i = 0; i < 6; i++) {
		assert.equal(outcome(await w.agent.query('SELECT count(*) FROM t WHERE n > 5')), 'rows');
		const { json, text } = await w.agent.execute('INSERT INTO o VALUES (1)');
		assert.equal(json?.complete, true, text);
		await w.operator.commit(json.change_id);
	}
});
