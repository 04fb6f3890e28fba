// values: the exact text of values of every type, in a diff and after it
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Pg } from '../oracle/pgwire.mjs';
import { contents, faultsOf, PINS, tablesOf } from '../oracle/truth.mjs';
import { outcome, release, world } from './lib/world.mjs';

after(release);

// type: [what is written, what it reads as (where it is not the same)] ...
const VALUES = {
	'boolean': [['t'], ['f']],
	'smallint': [['-32768'], ['32767']],
	'int': [['-2147483648'], ['0']],
	'bigint': [['-9223372036854775808'], ['9007199254740993']],
	'numeric': [['0'], ['0.00', '0.00'], ['1e40', `1${'0'.repeat(40)}`], ['NaN'], ['Infinity'], ['-Infinity'],
		['-0.000000000000000000000000000001'], [`${'9'.repeat(200)}.${'1'.repeat(150)}`]],
	'numeric(17,8)': [['0.1', '0.10000000'], ['100000000.00000001']],
	'real': [['0.1'], ['-0'], ['3.4028235e+38'], ['NaN'], ['1e-45']],
	'float8': [['0.1'], ['0.30000000000000004'], ['-0'], ['NaN'], ['Infinity'], ['-Infinity'], ['1.7976931348623157e+308'], ['5e-324']],
	'money': [['$12.34'], ['-$0.01'], ['$92,233,720,368,547,758.07']],
	'text': [['', ''], [' '], ['NULL'], ['\\N'], ['"quoted"'], ['it\'s'], ['a\\b\\\\c'], ['line\nfeed\r\ttab'], ['\u0001\u007f'], ['é'], ['e\u0301'], ['🐘'],
		['\u2028\u2029'], ['\ufeffbom'], ['\u202eright to left'], ['x'.repeat(10000)], ['ß中文'.repeat(2000)]],
	'varchar(5)': [['abc'], ['ab   ']],
	'char(5)': [['ab', 'ab   '], ['', '     ']],
	'name': [['n'], ['']],
	'"char"': [['a'], ['']],
	'bytea': [['\\x'], ['\\x00'], ['\\x5c785c'], ['\\xffd8ff00']],
	'date': [['2024-02-29'], ['0044-03-15 BC'], ['infinity'], ['-infinity'], ['5874897-12-31']],
	'time': [['00:00:00'], ['24:00:00'], ['04:05:06.000001']],
	'timetz': [['12:34:56.789+05:45', '12:34:56.789+05:45'], ['24:00:00-12']],
	'timestamp': [['1999-01-08 04:05:06.789012'], ['4713-01-01 00:00:00 BC'], ['infinity'], ['294276-12-31 23:59:59.999999']],
	'timestamptz': [['2024-03-04 05:06:07+05:30', '2024-03-03 23:36:07+00'], ['-infinity'], ['0001-01-01 00:00:00+00 BC']],
	'interval': [['1 year 2 mons'], ['-1 days +02:03:00'], ['00:00:00'], ['178000000 years'], ['-00:00:00.000001']],
	'uuid': [['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']],
	'json': [['{"a": 1,  "a":2}'], ['null'], [' [1.0, 1e2,\n3] '], ['"\\u00e9"'], ['12345678901234567890.10']],
	'jsonb': [['{"b":1,"a":[1,null]}', '{"a": [1, null], "b": 1}'], ['null'], ['1.10'], ['"\\u00e9"', '"é"']],
	'jsonpath': [['$."a"[*]?(@ > 1)', '$."a"[*]?(@ > 1)']],
	'xml': [['<r/>'], ['<a b="c">&lt; é</a>'], ['some text'], ['']],
	'int[]': [['{}'], ['{1,NULL,3}'], ['[2:3]={7,8}'], ['{{1,2},{3,4}}'], ['[0:1][-1:0]={{1,2},{3,4}}']],
	'text[]': [['{NULL,"NULL","",a,"a,b","\\"q\\"","\\\\"}']],
	'float8[]': [['{-0,NaN,Infinity}']],
	'date[]': [['{infinity,"0044-03-15 BC"}']],
	'int4range': [['empty'], ['[1,5)'], ['(,)'], ['[1,5]', '[1,6)']],
	'numrange': [['[1.10,2.0)'], ['(,5]']],
	'tstzrange': [['["2024-01-01 00:00:00+00",infinity)']],
	'int4multirange': [['{}'], ['{[1,2),[5,7)}']],
	'mood': [['sad'], ['so "so"'], ['é,']],
	'posint': [['7']],
	'pair': [['(1,x)'], ['(,)'], ['(,"")'], ['(5,"a,b ""c"" \\\\")']],
	'pair[]': [['{"(1,x)",NULL,"(,\\"\\")"}']],
	'nest': [['("(1,x)","{1,NULL}")']],
	'citext': [['Abc'], ['']],
	'hstore': [['"a"=>"1", "b"=>NULL'], ['""=>""'], ['']],
	'inet': [['10.0.0.1'], ['10.0.0.0/8'], ['::ffff:1.2.3.4']],
	'cidr': [['10.0.0.0/8'], ['2001:db8::/32']],
	'macaddr': [['08:00:2b:01:02:03']],
	'macaddr8': [['08:00:2b:01:02:03:04:05']],
	'bit(4)': [['0101']],
	'varbit': [[''], ['1']],
	'tsvector': [['\'a\' \'fat\':2,4C \'it\'\'s\''], ['']],
	'tsquery': [['\'a\' & !\'b\' <-> \'c\':*']],
	'point': [['(1,2)'], ['(-0,NaN)'], ['(Infinity,1e+300)']],
	'line': [['{1,-1,0}']],
	'lseg': [['[(0,0),(1,1)]']],
	'box': [['(1,1),(0,0)']],
	'path': [['((0,0),(1,1))'], ['[(0,0),(1,1)]']],
	'polygon': [['((0,0),(1,1),(1,0))']],
	'circle': [['<(0,0),1.5>']],
	'oid': [['0'], ['4294967295']],
	'regclass': [['pg_class'], ['pg_toast.pg_toast_1255', 'pg_toast.pg_toast_1255']],
	'regtype': [['integer'], ['timestamp with time zone']],
	'xid8': [['18446744073709551615']],
	'pg_lsn': [['FFFFFFFF/FFFFFFFF']],
	'pg_snapshot': [['10:20:10,14,15']],
	'tid': [['(0,1)']],
};
const TYPES = `CREATE EXTENSION citext; CREATE EXTENSION hstore;
	CREATE TYPE mood AS ENUM ('sad', 'so "so"', 'é,');
	CREATE DOMAIN posint AS int CHECK (VALUE > 0);
	CREATE TYPE pair AS (i int, t text);
	CREATE TYPE nest AS (p pair, a int[]);`;
const literal = s => `'${s.replaceAll('\'', '\'\'')}'`;
const name = i => `v${i}`;

// Every value is deleted, inserted anew, set from NULL and set to NULL.
test('every value of every type reads back as the server wrote it', async t => {
	const all = Object.entries(VALUES);
	const setup = all.map(([type, list], i) => `CREATE TABLE ${name(i)} (id int PRIMARY KEY, v ${type}, other int);
		INSERT INTO ${name(i)} VALUES (0, NULL, 0), ${list.map(([v], k) => `(${k + 1}, ${literal(v)}, 0)`).join(', ')};`);
	const w = await world(t, { setup: `${TYPES} SET lc_monetary = 'C'; ${setup.join('\n')}` });
	const pg = await Pg.open({ ...w.cluster, database: w.database, options: PINS.replace('search_path=pg_catalog', 'search_path=public') });
	t.after(() => pg.close());
	const tables = await tablesOf(pg, ['public']), before = await contents(pg, tables);
	let change_id;
	for (const [i, [type, list]] of all.entries())
		for (const sql of [`UPDATE ${name(i)} SET v = NULL, other = 1 WHERE id > 0`,
			`INSERT INTO ${name(i)} VALUES ${list.map(([v], k) => `(${k + 101}, ${literal(v)}, 0)`).join(', ')}`,
			`UPDATE ${name(i)} SET v = ${literal(list[0][0])} WHERE id = 0`]) {
			const answer = await w.agent.execute(sql, { ...change_id && { change_id } });
			assert.equal(outcome(answer), 'pending', `${type}: ${answer.text}`);
			({ change_id } = answer.json);
		}
	const shown = await w.operator.show(change_id);
	for (const [i, [type, list]] of all.entries()) {
		const texts = new Map(list.map(([v, reads], k) => [k + 1, reads ?? v]));
		const rows = shown.rows.filter(r => r.table === `public.${name(i)}`);
		for (const row of rows) {
			const id = Number(row.key.id);
			if (row.op === 'insert')
				assert.equal(row.after.v, texts.get(id - 100), `${type}, inserted`);
			else
				assert.deepEqual([row.before.v, row.after.v], id === 0 ? [null, texts.get(1)] : [texts.get(id), null], type);
		}
		assert.equal(rows.length, 2 * list.length + 1, type);
	}
	await w.operator.commit(change_id);
	assert.deepEqual(faultsOf(shown, tables, before, await contents(pg, tables)), []);
});

test('equal is what reads the same, not what = says', async t => {
	const w = await world(t, {
		setup: `${TYPES} CREATE TABLE t (id int PRIMARY KEY, n numeric, f float8, c citext, j json, p point, i interval, x char(3));
			INSERT INTO t VALUES (1, 1.0, 0, 'abc', '{"a":1}', '(1,1)', '1 day', 'a');`,
	});
	for (const [set, seen] of [
		['n = 1.00', ['1.0', '1.00']], ['f = \'-0\'', ['0', '-0']], ['c = \'ABC\'', ['abc', 'ABC']],
		['j = \'{"a": 1}\'', ['{"a":1}', '{"a": 1}']], ['i = \'24:00:00\'', ['1 day', '24:00:00']],
		['n = 1.0', null], ['p = \'(1,1)\'', null], ['j = \'{"a":1}\'', null], ['x = \'a  \'', null],
	]) {
		const answer = await w.agent.execute(`UPDATE t SET ${set}`);
		assert.equal(outcome(answer), 'pending', answer.text);
		const { rows } = await w.operator.show(answer.json.change_id);
		const column = set[0];
		assert.deepEqual(rows.map(r => [r.before[column], r.after[column]]), seen ? [seen] : [], set);
		await w.operator.rollback(answer.json.change_id);
	}
});

test('what is dropped, generated, defaulted, identity or stored apart', async t => {
	const w = await world(t, {
		setup: `CREATE TABLE t (gone int, id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, long text, g int GENERATED ALWAYS AS (length(long)) STORED, d text DEFAULT 'd');
			ALTER TABLE t ALTER long SET STORAGE EXTERNAL; ALTER TABLE t DROP gone;
			INSERT INTO t (long) VALUES (repeat('0123456789', 100000)); ALTER TABLE t ADD late timestamptz DEFAULT '2020-01-01 00:00+00';`,
	});
	const answer = await w.agent.execute('UPDATE t SET d = \'e\'');
	const { rows: [row] } = await w.operator.show(answer.json.change_id);
	const long = '0123456789'.repeat(100000);
	assert.deepEqual(row.before, { id: '1', long, g: '1000000', d: 'd', late: '2020-01-01 00:00:00+00' });
	assert.deepEqual(row.after, { ...row.before, d: 'e' });
	await w.operator.commit(answer.json.change_id);
	const more = await w.agent.execute('INSERT INTO t (long, d) VALUES (\'\', DEFAULT)');
	const { rows: [added] } = await w.operator.show(more.json.change_id);
	assert.deepEqual({ ...added.after, id: '' }, { id: '', long: '', g: '0', d: 'd', late: '2020-01-01 00:00:00+00' });
});

// A database of another encoding, made from template0.
async function encoded(t, encoding, setup) {
	return world(t, {
		setup: '',
		url: w => {
			w.database = `${w.database}_${encoding.toLowerCase()}`;
			return w.cluster.url(w.database);
		},
		cluster: await makeFirst(encoding, setup),
	});
}

// The cluster with its database() made to give one in that encoding.
async function makeFirst(encoding, setup) {
	const { cluster } = await import('./lib/cluster.mjs');
	const c = await cluster();
	return Object.assign(Object.create(Object.getPrototypeOf(c)), c, {
		sql: c.sql.bind(c),
		database: async () => {
			const name = await c.database();
			await c.sql('postgres', `CREATE DATABASE ${name}_${encoding.toLowerCase()} TEMPLATE template0 ENCODING '${encoding}' LOCALE 'C'`);
			await c.sql(`${name}_${encoding.toLowerCase()}`, setup);
			return name;
		},
	});
}

test('a database in LATIN1 gives its letters', async t => {
	const w = await encoded(t, 'LATIN1', `SET client_encoding = 'UTF8'; CREATE TABLE t (id int PRIMARY KEY, v text, "ä" int); INSERT INTO t VALUES (1, chr(228) || chr(255), 0), (2, 'a', 0);`);
	const answer = await w.agent.execute('UPDATE t SET "ä" = 1, v = v || \'é\'');
	assert.equal(outcome(answer), 'pending', answer.text);
	const { head, rows } = await w.operator.show(answer.json.change_id);
	assert.equal(head.complete, true);
	assert.deepEqual(rows.map(r => [r.before.v, r.after.v, r.after['ä']]).sort(), [['a', 'aé', '1'], ['äÿ', 'äÿé', '1']]);
	await w.operator.commit(answer.json.change_id);
	assert.equal(await w.sql('SELECT convert_to(v, \'LATIN1\') FROM t WHERE id = 1'), '\\xe4ffe9');
	const none = await w.agent.execute('UPDATE t SET v = \'🐘\' WHERE id = 1');
	assert.equal(outcome(none), '22P05', none.text);
});

test('a database in SQL_ASCII does not break the diff', async t => {
	const w = await encoded(t, 'SQL_ASCII', `CREATE TABLE t (id int PRIMARY KEY, v text, n int); INSERT INTO t VALUES (1, E'a\\xff\\xe4b', 0), (2, E'\\xc3\\xa4', 0), (3, 'plain', 0);`);
	const answer = await w.agent.execute('UPDATE t SET n = n + 1');
	assert.equal(outcome(answer), 'pending', answer.text);
	const { head, rows } = await w.operator.show(answer.json.change_id);
	assert.equal(head.complete, true, JSON.stringify(head.reasons));
	assert.deepEqual(rows.map(r => [r.key.id, r.before.n, r.after.n]).sort(), [['1', '0', '1'], ['2', '0', '1'], ['3', '0', '1']]);
	assert.deepEqual(rows.map(r => r.after.v).sort(), ['a\ufffdff\ufffde4b', 'plain', 'ä']);
	await w.operator.commit(answer.json.change_id);
	assert.equal(await w.sql('SELECT convert_to(v, \'SQL_ASCII\') FROM t WHERE id = 1'), '\\x61ffe462');
	// bytes that are no character are told apart
	const swap = await w.agent.execute('UPDATE t SET v = convert_from(\'\\x61fee462\', \'SQL_ASCII\') WHERE id = 1');
	assert.deepEqual(swap.json?.tables.map(x => [x.updated, x.unchanged]), [[1, 0]], swap.text);
	const swapped = await w.operator.show(swap.json.change_id);
	assert.deepEqual(swapped.rows.map(r => [r.before.v, r.after.v]), [['a\ufffdff\ufffde4b', 'a\ufffdfe\ufffde4b']]);
	const other = await w.agent.execute('UPDATE t SET v = convert_from(\'\\x61fde462\', \'SQL_ASCII\') WHERE id = 1',
		{ change_id: swap.json.change_id });
	assert.equal((await w.operator.show(other.json.change_id)).rows[0].after.v, 'a\ufffdfd\ufffde4b');
});

test('names in SQL_ASCII that are not UTF-8 are shown and counted', async t => {
	const bad = hex => `convert_from('\\x${hex}', 'SQL_ASCII')`;
	const w = await encoded(t, 'SQL_ASCII', `CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0);
		DO $$ BEGIN
			EXECUTE format('CREATE TABLE %I (%I int PRIMARY KEY, v text)', ${bad('74ff')}, ${bad('63fe')});
			EXECUTE format('CREATE SEQUENCE %I', ${bad('73ff')});
			EXECUTE format('CREATE FUNCTION %I() RETURNS trigger LANGUAGE plpgsql AS %L', ${bad('66ff')},
				format('BEGIN INSERT INTO %I VALUES (NEW.v, %L); PERFORM nextval(%L), pg_notify(''x'', ''y''); RETURN NULL; END',
					${bad('74ff')}, ${bad('e4')}, quote_ident(${bad('73ff')})));
			EXECUTE format('CREATE TRIGGER %I AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION %I()', ${bad('67ff')}, ${bad('66ff')});
			EXECUTE format('GRANT ALL ON %I TO app', ${bad('74ff')}); EXECUTE format('GRANT ALL ON SEQUENCE %I TO app', ${bad('73ff')});
		END $$;`);
	const listed = await w.agent.call('db_schema');
	assert.deepEqual(listed.json?.tables.map(x => x.table).sort(), ['public."t\ufffdff"', 'public.t'], listed.text);
	const { json, text } = await w.agent.execute('UPDATE t SET v = 7');
	assert.equal(json?.complete, true, text);
	assert.deepEqual(json.tables.map(x => [x.table, x.inserted, x.updated]).sort(), [['public."t\ufffdff"', 1, 0], ['public.t', 0, 1]]);
	const { head, rows } = await w.operator.show(json.change_id);
	assert.deepEqual(rows.find(x => x.op === 'insert').after, { 'c\ufffdfe': '7', v: '\ufffde4' });
	assert.deepEqual(head.effects.map(x => x.code).sort(), ['NOTIFICATION', 'SEQUENCE']);
	await w.operator.commit(json.change_id);
	assert.equal(await w.sql(`SELECT (xpath('//v/text()', query_to_xml(format('SELECT encode(convert_to(v, ''SQL_ASCII''), ''hex'') AS v FROM %I', ${bad('74ff')}), false, true, '')))[1]`), 'e4');
	const again = await w.agent.execute('UPDATE t SET v = 7');
	assert.equal(outcome(again), '23505', again.text);
});
