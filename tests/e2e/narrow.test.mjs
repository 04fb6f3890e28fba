// narrow: rows that others wrote in a large table are found without a scan of it
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const BIG = 24000; // more than are counted
const EACH = BIG / 1000; // rows of big that belong to one of t
const fn = (name, body) => `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} RETURN NULL; END $$;`;
const on = (event, name = 'f') => `CREATE TRIGGER ${name} AFTER ${event} ON t FOR EACH ROW EXECUTE FUNCTION ${name}();`;
const T = 'CREATE TABLE t(id int PRIMARY KEY, a int); INSERT INTO t SELECT g, g FROM generate_series(1, 1000) g;';
const LOG = `CREATE TABLE big(id bigserial PRIMARY KEY, x text); INSERT INTO big(x) SELECT repeat('x', 50) || g FROM generate_series(1, ${BIG}) g;`;
const KID = (action, index = 'CREATE INDEX ON big(p);') => `CREATE TABLE big(id int PRIMARY KEY, p int REFERENCES t ${action}, x text);
	INSERT INTO big SELECT g, 1 + g % 1000, 'x' FROM generate_series(1, ${BIG}) g; ${index}`;
const PARENT = `CREATE TABLE big(id int PRIMARY KEY, n int); INSERT INTO big SELECT g, 0 FROM generate_series(1, ${BIG}) g;
	CREATE TABLE t(id int PRIMARY KEY, a int REFERENCES big); INSERT INTO t SELECT g, g FROM generate_series(1, 1000) g;`;

// What is swept and must not be scanned is called big, or begins so.
const cases = {
	'rows behind the largest key': [`${T} ${LOG} ${fn('f', 'INSERT INTO big(x) VALUES (\'new\'), (\'newer\');')} ${on('UPDATE')}`,
		'UPDATE t SET a = 0 WHERE id < 4', { inserted: 6 }],
	'rows at the end of a table without a key': [`${T} CREATE TABLE big(x text); INSERT INTO big SELECT repeat('x', 50) || g FROM generate_series(1, ${BIG}) g;
		${fn('f', 'INSERT INTO big(x) VALUES (OLD.id);')} ${on('DELETE')}`, 'DELETE FROM t WHERE id < 200', { inserted: 199 }],
	'rows that a cascade deletes': [T + KID('ON DELETE CASCADE'), 'DELETE FROM t WHERE id IN (7, 9)', { deleted: 2 * EACH }],
	'rows that a cascade sets null': [T + KID('ON DELETE SET NULL'), 'DELETE FROM t WHERE id IN (7, 9)', { updated: 2 * EACH }],
	'rows whose key changes with that of the other': [T + KID('ON UPDATE CASCADE'), 'UPDATE t SET id = 5000 WHERE id = 7', { updated: EACH }],
	'rows that are referred to': [`${PARENT} ${fn('f', 'UPDATE big SET n = n + 1 WHERE id = NEW.a;')} ${on('INSERT')}`,
		'INSERT INTO t VALUES (2000, 777), (2001, 888)', { updated: 2 }],
	'of those that are referred to, some': [`${PARENT} ${fn('f', 'UPDATE big SET n = n + 1 WHERE id = NEW.a AND id < 800;')} ${on('INSERT')}`,
		'INSERT INTO t VALUES (2000, 777), (2001, 888)', { updated: 1 }],
	'rows that a cascade of a cascade deletes': [`${T} CREATE TABLE big2(id int PRIMARY KEY, p int REFERENCES t ON DELETE CASCADE);
		INSERT INTO big2 SELECT g, 1 + g % 1000 FROM generate_series(1, ${BIG}) g; CREATE INDEX ON big2(p);
		CREATE TABLE big(id int PRIMARY KEY, p int REFERENCES big2 ON DELETE CASCADE); INSERT INTO big SELECT g, g FROM generate_series(1, ${BIG}) g; CREATE INDEX ON big(p);`,
	'DELETE FROM t WHERE id = 7', { deleted: EACH }],
	'rows that a key of several columns leads to': [`CREATE TABLE t(id int, a text, u uuid DEFAULT gen_random_uuid(), UNIQUE (u), PRIMARY KEY (id, a));
		INSERT INTO t SELECT g / 10, 'a' || g % 10 FROM generate_series(1, 1000) g;
		CREATE TABLE big(x int, b text, p int, UNIQUE (p, b, x), FOREIGN KEY (p, b) REFERENCES t(id, a) ON DELETE CASCADE ON UPDATE CASCADE);
		INSERT INTO big SELECT g, 'a' || g % 10, 1 + g % 90 FROM generate_series(1, ${BIG}) g; INSERT INTO big VALUES (1, 'a7', NULL);`,
	'DELETE FROM t WHERE id = 8 AND a = \'a7\' OR id = 7 AND a IN (\'a6\', \'a8\')', { deleted: 534 }],
	'rows whose key of several columns changes': [`CREATE TABLE t(id int, a text, PRIMARY KEY (id, a)); INSERT INTO t SELECT g / 10, 'a,\"' || g % 10 FROM generate_series(1, 1000) g;
		CREATE TABLE big(x int, b text, p int, FOREIGN KEY (p, b) REFERENCES t(id, a) ON UPDATE CASCADE);
		INSERT INTO big SELECT g, 'a,\"' || g % 10, 1 + g % 99 FROM generate_series(1, ${BIG}) g; CREATE INDEX ON big(b, p);`,
	'UPDATE t SET a = \'z\' WHERE id = 8 AND a LIKE \'a%7\'', { updated: 25 }],
	'rows in parts of a table': [`${T} CREATE TABLE big(id int, p int REFERENCES t ON DELETE CASCADE) PARTITION BY HASH (id); CREATE INDEX ON big(p);
		CREATE TABLE big1 PARTITION OF big FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE big2 PARTITION OF big FOR VALUES WITH (MODULUS 2, REMAINDER 1);
		INSERT INTO big SELECT g, 1 + g % 1000 FROM generate_series(1, ${2 * BIG}) g;`,
	'DELETE FROM t WHERE id = 7', { deleted: 2 * EACH }],
};

// Scans from one end to the other, by table, that have been since.
const scans = async w => JSON.parse(await w.sql('SELECT json_object_agg(relname, seq_scan) FROM pg_stat_user_tables'));

async function held(t, setup, sql, config = '[airlock]\nnarrow_above = 256K\n') {
	const w = await world(t, { setup, url: x => x.cluster.url(x.database), config });
	await w.sql('VACUUM ANALYZE');
	const before = await scans(w);
	const { json, text } = await w.agent.execute(sql);
	assert.equal(json?.status, 'pending', text);
	const { head, rows } = await w.operator.show(json.change_id);
	// What the server fills is told to who reviews it, not to the agent.
	assert.deepEqual(head.tables.map(({ filled, ...rest }) => rest), json.tables);
	return { w, json, rows, before, big: json.tables.find(x => x.table === 'public.big') };
}

// Its sessions report what they did when they end.
async function scanned({ w, before, json }) {
	await w.operator.rollback(json.change_id);
	await w.daemon.stop();
	const now = await scans(w);
	return Object.keys(now).filter(name => name.startsWith('big') && now[name] > before[name]);
}

for (const [name, [setup, sql, expected]] of Object.entries(cases))
	test(`${name} are found without a scan`, async t => {
		const x = await held(t, setup, sql);
		assert.equal(x.json.complete, true);
		assert.deepEqual({ inserted: 0, updated: 0, deleted: 0, ...expected },
			{ inserted: x.big.inserted, updated: x.big.updated, deleted: x.big.deleted });
		assert.equal(x.rows.filter(r => r.table === 'public.big').length, Object.values(expected)[0]);
		assert.deepEqual(await scanned(x), []);
	});

test('rows that nothing leads to are found by a scan', async t => {
	const x = await held(t, `${T} ${LOG} ${fn('f', 'UPDATE big SET x = \'changed\' WHERE id = 500 + NEW.id;')} ${on('UPDATE')}`,
		'UPDATE t SET a = 0 WHERE id < 4');
	assert.equal(x.json.complete, true);
	assert.equal(x.big.updated, 3);
	assert.deepEqual(await scanned(x), ['big']);
});

test('a table above sweep_limit is complete where its rows are found without a scan, else not', async t => {
	const config = '[airlock]\nsweep_limit = 512K\nnarrow_above = 256K\n';
	const found = await held(t, T + KID('ON DELETE CASCADE'), 'DELETE FROM t WHERE id = 7', config);
	assert.equal(found.json.complete, true);
	assert.equal(found.big.deleted, EACH);
	const lost = await held(t, `${T} ${LOG} ${fn('f', 'UPDATE big SET x = \'changed\' WHERE id = 500 + NEW.id;')} ${on('UPDATE')}`,
		'UPDATE t SET a = 0 WHERE id < 4', config);
	assert.deepEqual([lost.json.complete, lost.big.complete, lost.big.updated, lost.json.risk], [false, false, 3, 'high']);
	assert.match(lost.json.reasons.find(r => r.code === 'INCOMPLETE').text, /sweep_limit/);
	assert.deepEqual(await scanned(lost), []);
});

test('a table of just sweep_limit is scanned, of one byte more is not', async t => {
	const setup = `${T} CREATE TABLE big(x text); INSERT INTO big SELECT 'x' FROM generate_series(1, 10000);
		${fn('f', 'UPDATE big SET x = \'y\' WHERE ctid = \'(0,1)\';')} ${on('UPDATE')}`;
	const first = await held(t, setup, 'UPDATE t SET a = 0 WHERE id = 1');
	const size = Number(await first.w.sql('SELECT pg_relation_size(\'big\')'));
	for (const [limit, complete] of [[size, true], [size - 1, false]]) {
		const x = await held(t, setup, 'UPDATE t SET a = 0 WHERE id = 1', `[airlock]\nsweep_limit = ${limit}\nnarrow_above = 0\n`);
		assert.equal(Number(await x.w.sql('SELECT pg_relation_size(\'big\')')), size);
		assert.equal(x.json.complete, complete);
		assert.equal(x.big.updated, 1);
	}
});

test('a table of just narrow_above is scanned, of one byte more is searched', async t => {
	const setup = `${T} ${LOG} ${fn('f', 'INSERT INTO big(x) VALUES (\'new\');')} ${on('UPDATE')}`;
	const config = limit => `[airlock]\nnarrow_above = ${limit}\n`;
	const size = async w => Number(await w.sql('SELECT pg_relation_size(\'big\')'));
	const sql = 'UPDATE t SET a = 0 WHERE id = 1';
	const first = await held(t, setup, sql);
	const at = await size(first.w);
	for (const [limit, whole] of [[at + 1, true], [at, true], [at - 1, false]]) {
		const x = await held(t, setup, sql, config(limit));
		assert.equal(await size(x.w), at);
		assert.deepEqual([x.json.complete, x.big.inserted], [true, 1]);
		assert.equal((await scanned(x)).includes('big'), whole, `${limit} of ${at}`);
	}
});
