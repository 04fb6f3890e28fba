// limits: each has a key, and what is under it, at it and over it is told apart
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { run, program } from './lib/place.mjs';
import { outcome, release, world } from './lib/world.mjs';
import { Pipe } from '../siege/pipe.mjs';

after(release);

const setup = `
	CREATE TABLE t(id int PRIMARY KEY, a text); INSERT INTO t SELECT g, 'x' FROM generate_series(1, 20) g;
	CREATE TABLE wide(id int PRIMARY KEY, a text);
	ALTER TABLE wide ALTER a SET STORAGE PLAIN;`;

const bytes = n => `SELECT '${'x'.repeat(n - 9)}'`;
const list = (n, f) => Array.from({ length: n }, (_, i) => f(i)).join(', ');
const names = ['abs(1)', 'ceil(1)', 'floor(1)', 'sign(1)', 'sqrt(1)', 'upper(\'a\')'];

// key, value, the outcome and words of a refusal, and a call that is n large;
// at is the largest that is let through.
const sizes = [
	['statement_bytes_max', '1K', 1024, 'STATEMENT_TOO_LARGE', /1025 bytes long, 1024 at most/, n => ['db_query', { sql: bytes(n) }]],
	['statement_bytes_max', '1M', 2 ** 20, 'STATEMENT_TOO_LARGE', /at most/, n => ['db_query', { sql: bytes(n) }]],
	['statement_names_max', '4', 4, 'STATEMENT_TOO_COMPLEX', /names 5 different things, 4 at most \(statement_names_max\)/,
		n => ['db_query', { sql: `SELECT ${names.slice(0, n).join(', ')}` }]],
	['operator_run_max', '8', 8, 'STATEMENT_TOO_COMPLEX', /operator characters in a row, 8 at most \(at character 16/,
		n => ['db_query', { sql: `SELECT ${'+'.repeat(n)}1` }]],
	['comment_depth_max', '3', 3, 'STATEMENT_TOO_COMPLEX', /comments one in another, 3 at most \(at character/,
		n => ['db_query', { sql: `${'/* '.repeat(n)}${'*/ '.repeat(n)} SELECT 1` }]],
	['params_max', '3', 3, 'PARAMETERS', /4 parameters, 3 at most/,
		n => ['db_query', { sql: `SELECT ${list(n, i => `$${i + 1}::text`)}`, params: Array(n).fill('x') }]],
	['param_bytes_max', '1K', 1024, 'PARAMETERS', /1025 bytes long, 1024 at most/,
		n => ['db_query', { sql: 'SELECT length($1), length($2)', params: ['x', 'x'.repeat(n - 1)] }]],
	['rows_max', '5', 5, 'ARGUMENTS', /max_rows must be an integer from 1 to 5; got 6/, n => ['db_query', { sql: 'SELECT 1', max_rows: n }]],
];

for (const [key, value, at, code, says, call, fine = 'rows'] of sizes)
	test(`${key} = ${value}`, async t => {
		const w = await world(t, { setup, config: `[airlock]\nrows_default = 1\n${key} = ${value}\n` });
		for (const [n, expected] of [[at - 1, fine], [at, fine], [at + 1, code]]) {
			const answer = await w.agent.call(...call(n));
			assert.equal(outcome(answer), expected, `${n}: ${answer.text.slice(0, 300)}`);
			if (expected === code)
				assert.match(answer.text, says);
		}
		assert.equal(outcome(await w.agent.query('SELECT 1')), 'rows', 'the next call works');
	});

test('statement_depth_max', async t => {
	const w = await world(t, { setup, config: '[airlock]\nstatement_depth_max = 40\n' });
	const deep = n => `SELECT ${'abs('.repeat(n)}1${')'.repeat(n)}`;
	const says = /nested (\d+) levels deep, 40 at most \(statement_depth_max\) \(at character 1/;
	const refused = await w.agent.query(deep(60));
	assert.equal(outcome(refused), 'STATEMENT_TOO_COMPLEX', refused.text);
	const at = 60 - (Number(says.exec(refused.text)[1]) - 40); // one call, one level
	assert.equal(outcome(await w.agent.query(deep(at - 1))), 'rows');
	assert.equal(outcome(await w.agent.query(deep(at))), 'rows');
	assert.match((await w.agent.query(deep(at + 1))).text, /STATEMENT_TOO_COMPLEX: .*nested 41 levels deep/);
	assert.equal(outcome(await w.agent.execute(`UPDATE t SET a = (${deep(at)})::text WHERE id = 1`)), 'STATEMENT_TOO_COMPLEX');
});

test('no configuration goes beyond what is sound', async t => {
	const w = await world(t, { setup });
	for (const [n, expected] of [[450, 'rows'], [480, 'rows'], [600, 'STATEMENT_TOO_COMPLEX']])
		assert.equal(outcome(await w.agent.query(`SELECT 1${'+1'.repeat(n)}`)), expected, `${n}`);
	assert.equal(outcome(await w.agent.query(bytes(65536))), 'rows');
	assert.equal(outcome(await w.agent.query(bytes(65537))), 'STATEMENT_TOO_LARGE');
	assert.equal(outcome(await w.agent.query(`SELECT ${'+'.repeat(256)}1`)), 'rows');
	assert.equal(outcome(await w.agent.query(`SELECT ${'+'.repeat(257)}1`)), 'STATEMENT_TOO_COMPLEX');
});

// What is cut, not refused: [under, at, over].
test('rows_default, cell_bytes_max, result_bytes_max and sample_rows cut, and say so', async t => {
	const w = await world(t, { setup, config: '[airlock]\nrows_default = 3\ncell_bytes_max = 16\nresult_bytes_max = 1K\nsample_rows = 2\n' });
	for (const [n, rows, truncated] of [[2, 2, false], [3, 3, false], [4, 3, true]]) {
		const { json } = await w.agent.query(`SELECT g FROM generate_series(1, ${n}) g`);
		assert.deepEqual([json.row_count, json.truncated], [rows, truncated], `${n} rows`);
	}
	for (const [n, shown, cut] of [[15, 15, undefined], [16, 16, undefined], [17, 16, [{ row: 0, column: 0, bytes: 17 }]]]) {
		const { json } = await w.agent.query(`SELECT repeat('x', ${n})`);
		assert.deepEqual([json.rows[0][0].length, json.cut], [shown, cut], `${n} bytes`);
	}
	// a row is 3 bytes, a value 3 and its own: 22 for one of 16
	for (const [n, rows, truncated] of [[45, 45, false], [46, 46, false], [47, 46, true]]) {
		const { json } = await w.agent.query(`SELECT repeat('x', 16) FROM generate_series(1, ${n}) g`, { max_rows: 100 });
		assert.deepEqual([json.row_count, json.truncated], [rows, truncated], `${n} rows of 22 bytes`);
	}
	for (const [n, shown] of [[1, 1], [2, 2], [3, 2]]) {
		const { json } = await w.agent.execute(`UPDATE t SET a = 'z${n}' WHERE id <= ${n}`);
		assert.equal(json.sample?.length ?? json.tables[0].sample?.length, shown, JSON.stringify(json));
		await w.agent.call('db_withdraw', { change_id: json.change_id });
	}
});

// One agent's large rows must not keep the others waiting.
test('of large rows a sample has few', async t => {
	const w = await world(t, { setup });
	const { json, text } = await w.agent.execute('UPDATE t SET a = repeat(id::text, 3000000) WHERE id < 6');
	assert.equal(json?.tables[0].updated, 5, text);
	assert.deepEqual(json.sample, [{ table: 'public.t', op: 'update', collateral: false, key: { id: '1' },
		before: { a: 'x' }, after: { a: `${'1'.repeat(200)}... (3000000 bytes)` } }]);
});

// The largest n for which fits(n) holds; it must hold for low, and not for high.
async function edge(low, high, fits) {
	while (high - low > 1) {
		const n = (low + high) >> 1;
		if (await fits(n))
			low = n;
		else
			high = n;
	}
	return low;
}

// What is much larger is not even read to its end.
test('row_bytes_max', async t => {
	const w = await world(t, { setup, config: '[airlock]\nrow_bytes_max = 1M\n' });
	const at = 2 ** 20;
	for (const sql of [n => `SELECT repeat('x', ${n})`, n => `SELECT NULL, repeat('x', ${n - 5}), 'x', 1234`])
		for (const [n, expected] of [[at / 2, 'rows'], [at - 1, 'rows'], [at, 'rows'], [at + 1, 'UNAVAILABLE'], [2 ** 26, 'UNAVAILABLE']]) {
			const answer = await w.agent.query(sql(n));
			assert.equal(outcome(answer), expected, `${n}: ${answer.text.slice(0, 300)}`);
			if (expected !== 'rows')
				assert.match(answer.text, /too large.*ask for parts.*row_bytes_max/);
		}
	const many = await w.agent.query(`SELECT repeat('x', ${at}) FROM generate_series(1, 20)`);
	assert.equal(outcome(many), 'rows', 'each is a row of its own');
	// a row of a write has what identifies it beside its values
	const write = async (n, more) => {
		const answer = await w.agent.execute(`UPDATE t SET a = repeat('x', ${n}) WHERE id = 1`, more);
		if (answer.json?.change_id)
			await w.agent.call('db_withdraw', { change_id: answer.json.change_id });
		return answer;
	};
	const most = await edge(at / 2, at, async n => outcome(await write(n)) === 'pending');
	assert.ok(most > at - 200, `${most}`);
	for (const n of [most + 1, 2 ** 21, 2 ** 26])
		assert.match((await write(n)).text, /^REFUSED DIFF_TOO_LARGE: .*larger than row_bytes_max; the transaction was ended/, `${n}`);
	const held = await w.agent.execute('UPDATE t SET a = \'y\' WHERE id = 2');
	assert.equal(outcome(await write(2 ** 21, { change_id: held.json.change_id })), 'DIFF_TOO_LARGE');
	assert.deepEqual((await w.agent.status(held.json.change_id)).json.why, 'lost');
	assert.equal(await w.sql('SELECT count(*) FROM t WHERE a <> \'x\''), '0');
	assert.equal(outcome(await w.agent.query('SELECT 1')), 'rows');
});

test('diff_bytes_max', async t => {
	const w = await world(t, { setup, config: '[airlock]\ndiff_bytes_max = 1M\n' });
	const write = async n => {
		const answer = await w.agent.execute('INSERT INTO t VALUES (100, repeat(\'x\', $1))', { params: [String(n)] });
		if (answer.json?.change_id)
			await w.agent.call('db_withdraw', { change_id: answer.json.change_id });
		return answer;
	};
	const at = await edge(500000, 2000000, async n => outcome(await write(n)) === 'pending');
	assert.ok(at > 1000000 && at < 2 ** 20, `${at}`);
	assert.equal(outcome(await write(at - 1)), 'pending');
	assert.equal(outcome(await write(at)), 'pending');
	const over = await write(at + 1);
	assert.match(over.text, /^REFUSED DIFF_TOO_LARGE: .*diff_bytes_max/);
	assert.equal(await w.sql('SELECT count(*) FROM t'), '20');
});

test('fold_rows_max', async t => {
	const w = await world(t, { setup, config: '[airlock]\nfold_rows_max = 5\n' });
	for (const [n, expected] of [[4, 'pending'], [5, 'pending'], [6, 'CHANGE_TOO_LARGE']]) {
		const { json } = await w.agent.execute(`UPDATE t SET a = 'f' WHERE id <= ${n}`);
		const more = await w.agent.execute('INSERT INTO wide VALUES (1)', { change_id: json.change_id });
		assert.equal(outcome(more), expected, more.text);
		if (expected !== 'pending')
			assert.match(more.text, /fold_rows_max|5 at most|more than 5/);
		await w.agent.call('db_withdraw', { change_id: json.change_id });
	}
});

test('the statements of a change may not grow until nobody can be shown it', async t => {
	const w = await world(t, { setup, config: '[airlock]\nparam_bytes_max = 4M\n' });
	const write = more => w.agent.execute('UPDATE t SET a = length($1)::text WHERE id = 1', { params: ['x'.repeat(4000000)], ...more });
	const first = await write();
	let more, n = 1;
	for (; outcome(more = await write({ change_id: first.json.change_id })) === 'pending' && n < 30; n++);
	assert.match(more.text, /^REFUSED CHANGE_TOO_LARGE: the change holds more rows or longer statements than can be added to/);
	assert.equal(n, 8);
	const [held] = await w.operator.pending();
	assert.equal(held.statements.length, 8);
	await w.operator.commit(held.id);
});

test('count_rows_max and sweep_limit leave things out of a diff, and say so', async t => {
	const config = '[airlock]\ncount_rows_max = 20\nsweep_limit = 100K\n';
	const w = await world(t, { setup: `${setup}
		CREATE TABLE log(id int); INSERT INTO log SELECT g FROM generate_series(1, 10) g;
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (NEW.id); RETURN NEW; END $$;
		CREATE TRIGGER f AFTER INSERT ON wide FOR EACH ROW EXECUTE FUNCTION f();`, config });
	const rows = async () => {
		const { json } = await w.agent.execute('UPDATE t SET a = \'c\' WHERE id = 1');
		await w.agent.call('db_withdraw', { change_id: json.change_id });
		return json.tables[0].rows_before;
	};
	for (const [n, counted] of [[19, 19], [20, 20], [21, undefined]]) {
		await w.sql(`TRUNCATE t; INSERT INTO t SELECT g, 'x' FROM generate_series(1, ${n}) g`);
		assert.equal(await rows() ?? undefined, counted, `${n} rows`);
	}
	const complete = async () => {
		const { json, text } = await w.agent.execute('INSERT INTO wide VALUES (7)');
		assert.ok(json, text);
		await w.agent.call('db_withdraw', { change_id: json.change_id });
		return json;
	};
	assert.equal((await complete()).complete, true);
	await w.sql('INSERT INTO log SELECT g FROM generate_series(1, 10000) g');
	const over = await complete();
	assert.equal(over.complete, false);
	assert.match(JSON.stringify(over.reasons), /INCOMPLETE.*sweep_limit/);
});

test('changes_max and agent_changes_max', async t => {
	const w = await world(t, { setup, name: 'one', config: '[airlock]\nchanges_max = 3\nagent_changes_max = 2\nshared_uid = yes\n[agent one]\n[agent two]\n[agent three]\n' });
	const [two, three] = [await w.connect({ name: 'two' }), await w.connect({ name: 'three' })];
	const write = (a, id) => a.execute(`UPDATE t SET a = 'h' WHERE id = ${id}`);
	const first = await write(w.agent, 1);
	assert.deepEqual([outcome(first), outcome(await write(w.agent, 2))], ['pending', 'pending']);
	assert.match((await write(w.agent, 3)).text, /TOO_MANY_CHANGES.*2 of them this agent's, 2 at most \(agent_changes_max\)/);
	assert.equal(outcome(await write(two, 3)), 'pending', 'another agent has its own');
	assert.match((await write(three, 4)).text, /TOO_MANY_CHANGES.*3 changes are held, 3 at most \(changes_max\)/);
	await w.agent.call('db_withdraw', { change_id: first.json.change_id });
	assert.equal(outcome(await write(three, 4)), 'pending', 'and one that has ended makes room');
});

test('agent_calls_max', async t => {
	const w = await world(t, { setup, config: '[airlock]\nagent_calls_max = 3\n' });
	const held = await w.agent.execute('UPDATE t SET a = \'h\' WHERE id = 1');
	const pipe = Pipe.open(w.daemon);
	t.after(() => pipe.close());
	const waits = [1, 2, 3].map(() => pipe.call('db_status', { change_id: held.json.change_id, wait_s: 50 }));
	const over = await pipe.call('db_status', {});
	assert.equal(over.outcome, 'TOO_MANY_CALLS', over.text);
	assert.match(over.text, /3/);
	await w.operator.rollback(held.json.change_id, 'enough');
	for (const a of await Promise.all(waits))
		assert.equal(a.json?.status, 'rolled_back', a.text);
	assert.equal((await pipe.call('db_status', {})).error, false);
});

test('parser_deadline and parser_memory_max', async t => {
	const big = `SELECT * FROM (VALUES ${list(95000, i => `(${i},${i % 10})`)}) AS v LIMIT 1`;
	const answer = async (sql, config) => {
		const w = await world(t, { setup, config: `[airlock]\nstatement_bytes_max = 1M\n${config}` });
		const a = await w.agent.query(sql);
		assert.equal(outcome(await w.agent.query('SELECT 1')), 'rows', 'the next call works');
		return a.text.slice(0, 300);
	};
	assert.match(await answer(big, 'parser_deadline = 20s'), /"rows"/);
	assert.match(await answer(big, 'parser_deadline = 10ms'), /STATEMENT_TOO_COMPLEX: .*too long/);
	assert.match(await answer(big, 'parser_deadline = 20s\nparser_memory_max = 128M'), /"rows"/);
	if (!readFileSync(program('airlockd')).includes('__asan_init'))
		assert.match(await answer(big, 'parser_deadline = 20s\nparser_memory_max = 64M'), /STATEMENT_TOO_COMPLEX: (?!.*too long)/);
});

// Keys that bound something, where else they are tested, and as what.
const elsewhere = {
	ttl: ['limits-times.test.mjs'], read_timeout: ['limits-times.test.mjs'], write_timeout: ['limits-times.test.mjs'],
	lock_timeout: ['limits-times.test.mjs'], connect_timeout: ['limits-times.test.mjs'],
	narrow_above: ['narrow.test.mjs'], reads_max: ['limits-server.test.mjs'], parser_queue_max: ['../unit/core/test_parser.c', 'o.queue_max = 3'],
	refusals_max: ['refusals.test.mjs'], refusals_window: ['../unit/core/test_cooloff.c', 'struct cooloff_rule three'], cool_off: ['refusals.test.mjs'],
	journal_file_bytes_max: ['../unit/record/test_journal_limits.c', 'file_bytes_max'], journal_reserve_bytes: ['../unit/record/test_journal_limits.c', 'the_reserve'],
	journal_record_bytes_max: ['../unit/record/test_journal_limits.c', 'record_bytes_max'],
};

test('every key that bounds something is tested', async t => {
	const w = await world(t, { config: '[airlock]\n' });
	const { stdout } = await run(program('airlockd'), ['-n', '-v', ...w.daemon.args], { home: w.daemon.home });
	const text = file => readFileSync(new URL(file, import.meta.url), 'utf8');
	const here = text(import.meta.url);
	const keys = [...stdout.matchAll(/^([a-z_]+) *= *\d+\w*$/gm)].map(m => m[1]).filter(k => k !== 'user');
	assert.ok(keys.length > 25, stdout);
	for (const key of keys) {
		const [file, as = `${key} = `] = elsewhere[key] ?? [];
		assert.ok(file ? text(file).includes(as) : here.includes(`${key} = `) || here.includes(`'${key}'`), `${key} has no test`);
	}
});
