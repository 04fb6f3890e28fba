// cases-field: the field cases whose truth is an outcome for each call
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, test } from 'node:test';
import { here, load } from './lib/cases.mjs';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const reading = place => `SELECT id FROM accounts ${place}`;
const FILE = 'pg_read_file(\'PG_VERSION\')';
const both = (outcomes, sqls) => ['db_query', 'db_execute'].flatMap(tool =>
	sqls.map(sql => [tool, sql, ...[outcomes].flat()]));
const balance = id => `SELECT balance FROM accounts WHERE id = ${id}`;
const rows = async (w, sql, expected) => {
	const answer = await w.agent.query(sql);
	assert.deepEqual(answer.json?.rows.map(r => r.map(String)), expected, answer.text);
};

// calls: the outcome of each agent_sql, through the case's own tool; says: what
// the refusals name; also: further [tool, sql, outcome]; then: what else holds.
const cases = {
	F001: { calls: ['MULTIPLE_STATEMENTS'] },
	F002: {
		calls: ['MULTIPLE_STATEMENTS'],
		then: () => assert.ok(!existsSync('/tmp/airlock_case_f002_pwned')),
	},
	F003: { calls: ['SESSION_CONTROL', 'WRITE_IN_QUERY'] },
	F006: {
		calls: ['MULTIPLE_STATEMENTS'],
		then: w => rows(w, 'SELECT count(*) FROM accounts', [['3']]),
	},
	F007: {
		calls: ['FUNCTION_OUTSIDE'],
		says: /pg_read_file/,
		also: [`SELECT * FROM ROWS FROM (${FILE}) f`,
			`SELECT * FROM accounts, LATERAL ${FILE} f`,
			`SELECT * FROM accounts a JOIN ${FILE} f ON true`,
		].map(sql => ['db_query', sql, 'FUNCTION_OUTSIDE']),
	},
	F008: {
		calls: ['FUNCTION_OUTSIDE'],
		says: /pg_read_file/,
		also: [`OFFSET length(${FILE})`, `GROUP BY id, ${FILE}`, `ORDER BY ${FILE}`,
			`WHERE CASE WHEN true THEN ${FILE} ELSE '' END > ''`,
			`WHERE ARRAY[${FILE}] = '{}'`, `WHERE ROW(id, ${FILE}) IS NULL`,
			`, (VALUES (${FILE})) v`,
			`, XMLTABLE('/a' PASSING xmlparse(CONTENT ${FILE}) COLUMNS b text) x`,
		].map(place => ['db_query', reading(place), 'FUNCTION_OUTSIDE']).concat([
			['db_query', `SELECT count(*) FILTER (WHERE ${FILE} > '') FROM accounts`, 'FUNCTION_OUTSIDE'],
			['db_query', `SELECT sum(id) OVER (ORDER BY id ROWS length(${FILE}) PRECEDING) FROM accounts`,
				'FUNCTION_OUTSIDE'],
		]),
	},
	F010: {
		calls: ['FUNCTION_OUTSIDE'],
		says: /dblink_exec/,
		also: [['db_execute', 'UPDATE accounts SET owner = dblink_exec(\'\', \'DELETE FROM accounts\')',
			'FUNCTION_OUTSIDE']],
	},
	F014: {
		calls: ['SESSION_CONTROL', 'SESSION_CONTROL', 'LOCKING', 'SESSION_CONTROL', 'SESSION_CONTROL'],
		then: w => rows(w, 'SELECT current_user, current_setting(\'search_path\') !~ \'^pg_temp\'',
			[['app', 't']]),
	},
	F015: {
		calls: ['FUNCTION_OUTSIDE', 'rows'],
		then: w => rows(w, 'SELECT count(*) FROM accounts', [['3']]),
	},
	F016: { calls: ['FUNCTION_OUTSIDE'] },
	F018: {
		calls: ['COPY'],
		also: both('COPY', ['COPY accounts TO PROGRAM \'cat > /tmp/airlock_case_f018_out\'',
			'COPY accounts TO \'/tmp/airlock_case_f018_out\'', 'COPY accounts FROM \'/etc/passwd\'',
			'COPY accounts TO STDOUT', 'COPY accounts FROM STDIN']),
		then: () => assert.ok(!existsSync('/tmp/airlock_case_f018_out')),
	},
	F019: { calls: ['COPY'] },
	F020: { calls: ['PROCEDURAL'] },
	F021: { calls: ['SCHEMA_CHANGE', 'READ_IN_EXECUTE'], also: [['db_query', 'SELECT peek()', '42883']] },
	F022: { calls: ['WRITE_IN_QUERY', 'WRITE_IN_QUERY', 'SCHEMA_CHANGE'] },
	F026: { calls: ['rows'], then: w => rows(w, 'SELECT owner FROM rich(50) ORDER BY owner', [['ann'], ['bob']]) },
	F034: { calls: ['rows', 'rows', 'rows'] },
	F042: {
		calls: ['rows'],
		then: w => rows(w, 'SELECT \'\\\'\' ; DELETE FROM accounts --\'', [['\\\' ; DELETE FROM accounts --']]),
	},
	F047: {
		calls: ['INVALID_ENCODING'],
		also: [['db_execute', 'DELETE FROM accounts WHERE id = 1\0 AND false', 'INVALID_ENCODING']],
	},
	F049: {
		calls: ['rows', 'rows', 'rows', 'rows'],
		then: async w => {
			await rows(w, 'SELECT \'ok\' AS test', [['ok']]);
			await rows(w, 'SELECT $dbx$ok$dbx$ AS test', [['ok']]);
			await rows(w, 'SELECT \'it\'\'s; -- /* fine */\' AS s', [['it\'s; -- /* fine */']]);
		},
	},
	F089: {
		calls: ['pending', 'SCHEMA_CHANGE'],
		then: async w => assert.equal(await w.sql('SET lock_timeout = 1; SELECT count(*) FROM accounts'), '3'),
	},
	F090: { calls: ['SCHEMA_CHANGE'], then: w => rows(w, balance(1), [['100.00']]) },
	F120: {
		calls: ['FUNCTION_UNKNOWN', 'FUNCTION_UNKNOWN'],
		then: w => rows(w, 'SELECT abs(-1), upper(\'a\')', [['1', 'A']]),
	},
	F122: { calls: ['42601', '42601', 'MULTIPLE_STATEMENTS'] },
	F125: { calls: ['MULTIPLE_STATEMENTS'] },
	F126: { calls: ['SCHEMA_CHANGE', 'SCHEMA_CHANGE'] },
	F133: {
		calls: ['WRITE_IN_QUERY', 'SCHEMA_CHANGE'],
		then: async w => {
			const sql = load('field').find(c => c.id === 'F133').agent_sql[0];
			const { json, text } = await w.agent.execute(sql);
			assert.equal(json?.status, 'pending', text);
			assert.deepEqual(json.tables.map(t => [t.table, t.inserted]), [['public.audit', 1]]);
		},
	},
	F134: { calls: ['rows', 'MULTIPLE_STATEMENTS'] },
	F135: { calls: ['rows', 'rows', '42601'] },
	F136: {
		calls: ['COPY', 'COPY', 'COPY'],
		also: [['db_query', 'COPY accounts FROM STDIN', 'COPY'], ['db_query', 'COPY (SELECT 1) TO STDOUT', 'COPY']],
	},
};

test('the map and this table agree', () => {
	assert.deepEqual(Object.keys(cases).sort(), here('field', 'cases-field.test.mjs').sort());
});

for (const c of load('field').filter(c => c.id in cases))
	test(`${c.id} (${c.area}): ${c.what}`, async t => {
		const { calls, says, also = [], then } = cases[c.id];
		const w = await world(t, { setup: c.setup });
		const sqls = [c.agent_sql].flat();
		assert.equal(calls.length, sqls.length);
		for (const [i, sql] of sqls.entries()) {
			const answer = await w.agent.call(c.tool, { sql });
			assert.equal(outcome(answer), calls[i], `${sql}: ${answer.text}`);
			if (says && answer.error)
				assert.match(answer.text, says);
		}
		for (const [tool, sql, expected] of also) {
			const answer = await w.agent.call(tool, { sql });
			assert.equal(outcome(answer), expected, `${sql}: ${answer.text}`);
			if (says)
				assert.match(answer.text, says);
		}
		await rows(w, 'SELECT 1', [['1']]);
		await then?.(w);
		if (c.check) {
			const [sql, value] = c.check.split(' -- ');
			assert.equal(await w.sql(sql), value === 'empty' ? '' : value);
		}
	});
