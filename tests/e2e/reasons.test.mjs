// reasons: each code of the table is given by something; a new one without a
// case here fails
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { bindir } from './lib/cluster.mjs';
import { program, run, tests } from './lib/place.mjs';
import { ask, exited, Lines } from './lib/wait.mjs';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const setup = `
	CREATE TABLE t(id int PRIMARY KEY, a text); INSERT INTO t SELECT g, 'x' FROM generate_series(1, 30) g;
	CREATE TABLE big(id int); INSERT INTO big SELECT g FROM generate_series(1, 1200) g;
	CREATE TABLE other(id int);
	CREATE TABLE parent(id int PRIMARY KEY); INSERT INTO parent VALUES (1);
	CREATE TABLE child(id int REFERENCES parent ON DELETE CASCADE); INSERT INTO child VALUES (1);
	CREATE TABLE late(id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
	CREATE TABLE seen(id int); CREATE TABLE copied(id int);
	CREATE FUNCTION copy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO copied VALUES (1); RETURN NEW; END $$;
	CREATE TRIGGER copy AFTER INSERT ON seen FOR EACH ROW EXECUTE FUNCTION copy();
	CREATE TABLE locked(id int);
	CREATE FUNCTION takes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_lock(99); RETURN NEW; END $$;
	CREATE TRIGGER takes AFTER INSERT ON locked FOR EACH ROW EXECUTE FUNCTION takes();
	CREATE FUNCTION sneak() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN GRANT SELECT ON other TO PUBLIC; RETURN 1; END $$;
	CREATE FUNCTION vol() RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1';
	CREATE FUNCTION g() RETURNS int LANGUAGE sql STABLE AS 'SELECT 1';
	CREATE TABLE numbered(id serial, a int);
	GRANT USAGE ON SEQUENCE numbered_id_seq TO app;`;

const withdraw = async (w, a) => a.json?.change_id && await w.agent.call('db_withdraw', { change_id: a.json.change_id });
const query = (sql, more) => w => w.agent.call('db_query', { sql, ...more });
const execute = (sql, more) => w => w.agent.call('db_execute', { sql, ...more });

// What a write is told when this is done while it waits for a lock.
async function whileItWaits(w, sql, what) {
	const s = spawn(join(bindir, 'psql'), ['-X', '-q', '-A', '-t', '-d', w.cluster.conninfo(w.database, 'postgres')], { stdio: ['pipe', 'pipe', 'inherit'] });
	const lines = new Lines(s.stdout);
	s.stdin.write('BEGIN; LOCK TABLE other IN ACCESS EXCLUSIVE MODE;\n\\echo locked\n');
	await lines.until(/^locked/);
	const answer = w.agent.execute(sql);
	await ask(async () => await w.sql('SELECT count(*) FROM pg_locks WHERE NOT granted') !== '0', 'a waiting lock');
	await w.sql(what);
	s.stdin.end('COMMIT;\n');
	await exited(s);
	return answer;
}

const refusals = {
	MULTIPLE_STATEMENTS: query('SELECT 1; SELECT 2'),
	NOTHING_TO_RUN: query('-- nothing'),
	STATEMENT_TOO_LARGE: query(`SELECT '${'x'.repeat(70000)}'`),
	STATEMENT_TOO_COMPLEX: query(`SELECT 1${'+1'.repeat(600)}`),
	INVALID_ENCODING: query('SELECT \'a\0b\''),
	TRANSACTION_CONTROL: execute('COMMIT'),
	SESSION_CONTROL: execute('SET work_mem = 1'),
	LOCKING: query('SELECT 1 FROM t FOR UPDATE'),
	COPY: query('COPY t TO STDOUT'),
	PROCEDURAL: execute('DO $$ BEGIN END $$'),
	SYSTEM: execute('CREATE ROLE x'),
	MAINTENANCE: execute('VACUUM t'),
	SCHEMA_CHANGE: execute('DROP TABLE t'),
	WRITE_IN_QUERY: query('DELETE FROM t'),
	READ_IN_EXECUTE: execute('SELECT 1'),
	FUNCTION_OUTSIDE: query('SELECT pg_sleep(1)'),
	FUNCTION_UNKNOWN: query('SELECT vol()'),
	ARGUMENTS: query('SELECT 1', { max_rows: -1 }),
	PARAMETERS: query('SELECT $1::int', { params: [] }),
	CHANGE_UNKNOWN: execute('DELETE FROM t', { change_id: 'chg_0123456789' }),
	ACCESS: w => w.reader.execute('DELETE FROM t'),
	CHANGE_NOT_PENDING: async w => {
		const a = await w.agent.execute('DELETE FROM t WHERE id = 1');
		await withdraw(w, a);
		return w.agent.execute('DELETE FROM t WHERE id = 1', { change_id: a.json.change_id });
	},
	CHANGE_BUSY: async w => {
		const { json } = await w.agent.execute('DELETE FROM t WHERE id = 1');
		const both = await Promise.all([1, 2].map(() => w.agent.execute('DELETE FROM t WHERE id = 2', { change_id: json.change_id })));
		await withdraw(w, { json });
		return both.find(a => a.error) ?? both[0];
	},
	DEFINITION_CHANGED: w => whileItWaits(w, 'INSERT INTO other SELECT g()', 'ALTER FUNCTION g() VOLATILE'),
	LOST: w => whileItWaits(w, 'INSERT INTO other VALUES (1)', 'SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted'),
	DATABASE_DOWN: async w => (await world(w.t, { cluster: w.cluster, role: 'nobody_at_all' })).agent.query('SELECT 1'),
};

// The reasons that a held change carries; the first table's rows are in setup.
const risks = {
	NO_WHERE: 'UPDATE other SET id = 1',
	VACUOUS_WHERE: 'UPDATE other SET id = 1 WHERE true',
	WHERE_IGNORES_TARGET: 'UPDATE other SET id = 1 WHERE EXISTS (SELECT FROM t)',
	MANY_ROWS: 'UPDATE big SET id = id + 1 WHERE id > 0',
	HUNDRED_ROWS: 'UPDATE big SET id = id + 1 WHERE id <= 100',
	LARGE_SHARE: 'UPDATE t SET a = \'y\' WHERE id <= 20',
	COLLATERAL_DELETE: 'DELETE FROM parent WHERE id = 1',
	COLLATERAL: 'INSERT INTO seen VALUES (1)',
	SEVERAL_TABLES: 'WITH d AS (INSERT INTO other VALUES (1)) INSERT INTO copied VALUES (1)',
	HIDDEN_DDL: 'INSERT INTO other SELECT sneak()',
	INCOMPLETE: 'INSERT INTO other SELECT sneak()',
	DEFERRED_FAILURE: 'INSERT INTO late VALUES (77)',
	OUTSIDE_EFFECT: 'INSERT INTO locked VALUES (1)',
	SEQUENCE: 'INSERT INTO numbered(a) VALUES (1)',
};

// Where else one is given, and asserted by its name.
const elsewhere = {
	NOT_UNDERSTOOD: 'unit/rule/test_verdict.c',
	NOT_PROVED: 'unit/core/test_parts.c',
	CHANGE_TOO_LARGE: 'e2e/limits.test.mjs',
	TOO_MANY_CHANGES: 'e2e/limits.test.mjs',
	TOO_MANY_CALLS: 'e2e/limits.test.mjs',
	DIFF_TOO_LARGE: 'e2e/limits.test.mjs',
	UNAVAILABLE: 'e2e/limits.test.mjs',
	COOL_OFF: 'e2e/refusals.test.mjs',
	SETTING_CHANGED: 'e2e/settings.test.mjs',
	HOLDABLE_CURSOR: 'e2e/late.test.mjs',
	NOTIFICATION: 'e2e/inside.test.mjs',
	STATEMENT_TEXT: 'e2e/inside.test.mjs',
	TRIGGERS_OFF: 'e2e/inside.test.mjs',
};

test('each code of the table has a case', async () => {
	const { stdout } = await run(program('airlock'), ['reasons', '--json']);
	const codes = JSON.parse(stdout).map(r => r.code);
	const known = [...Object.keys(refusals), ...Object.keys(risks), ...Object.keys(elsewhere)];
	assert.deepEqual(codes.filter(c => !known.includes(c)), [], 'codes without a case');
	assert.deepEqual(known.filter(c => !codes.includes(c)), [], 'cases without a code');
	for (const [code, file] of Object.entries(elsewhere))
		assert.match(readFileSync(join(tests, file), 'utf8'), new RegExp(`\\b(REASON_)?${code}\\b`), `${code} is not in ${file}`);
});

test('each refusal is given', async t => {
	const w = await world(t, { setup, name: 'one', config: '[airlock]\nshared_uid = yes\n[agent one]\n[agent reader]\naccess = read\n' });
	w.t = t;
	w.reader = await w.connect({ name: 'reader' });
	for (const [code, give] of Object.entries(refusals)) {
		const answer = await give(w);
		assert.equal(outcome(answer), code, answer.text);
		assert.match(answer.text, /^REFUSED [A-Z_]+: .+\. [A-Z].+\.|\)$/s, 'with advice');
	}
});

test('each risk is found', async t => {
	const w = await world(t, { setup });
	for (const [code, sql] of Object.entries(risks)) {
		const answer = await w.agent.execute(sql);
		assert.equal(outcome(answer), 'pending', answer.text);
		const { head } = await w.operator.show(answer.json.change_id);
		const found = [...head.reasons, ...head.effects].map(r => r.code);
		assert.ok(found.includes(code), `${code} is not among ${found} of: ${sql}`);
		await withdraw(w, answer);
	}
});
