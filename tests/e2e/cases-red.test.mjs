// cases-red: none of tests/cases/red.jsonl is ever applied, by either tool
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { coverage, fixture, load, mapFaults } from './lib/cases.mjs';
import { cluster, release } from './lib/cluster.mjs';
import { outcome, world } from './lib/world.mjs';

// Dozens of refusals in a second are what is tested here.
const PATIENT = '[airlock]\nrefusals_max = 0\n';

let base;
before(async () => {
	base = await (await cluster()).database(fixture);
});
after(release);

test('every case leads to its test, or says why not yet', () => {
	assert.deepEqual(mapFaults(), []);
});

// All rows of all tables, and all there is in the catalogs; a sequence alone
// may have moved, since a rollback does not take that back.
const EVERYTHING = `
	SELECT format('SELECT %L, count(*), md5(string_agg(t::text, %L ORDER BY t::text)) FROM %s t;',
		c.oid::regclass, ',', c.oid::regclass)
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE relkind = 'r' AND nspname IN ('public', 'hr', 'ops') ORDER BY 1;`;
const CATALOGS = `
	SELECT count(*), md5(string_agg(oid || relname || relkind::text || coalesce(relacl::text, ''), ',' ORDER BY oid))
	FROM pg_class WHERE relkind <> 't';
	SELECT count(*) FROM pg_proc; SELECT count(*) FROM pg_database WHERE datname = 'scratch'; SELECT count(*) FROM pg_largeobject_metadata;
	SELECT count(*) FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf';`;
const everything = async w => `${await w.sql(await w.sql(EVERYTHING))}\n${await w.sql(CATALOGS)}`;

for (const [at, tool] of ['db_query', 'db_execute'].entries())
	test(`red through ${tool}`, async t => {
		const w = await world(t, { from: base, config: PATIENT });
		const was = await everything(w);
		const merges = Number(await w.sql('SHOW server_version_num')) >= 150000;
		for (const c of load('red'))
			await t.test(`${c.id}: ${c.why}`, async () => {
				const now = coverage.red[c.id].split(' ')[at];
				const expected = !merges && now === 'pending' && /^MERGE /.test(c.sql) ? '42601' : now;
				const answer = await w.agent.call(tool, { sql: c.sql });
				assert.equal(outcome(answer), expected, answer.text);
				if (expected === 'pending') {
					assert.match(answer.json.message, /NOT applied/);
					const back = await w.agent.call('db_withdraw', { change_id: answer.json.change_id });
					assert.equal(outcome(back), 'rolled_back', back.text);
				}
				const green = await w.agent.query('SELECT label FROM depot WHERE depot_id = 5');
				assert.deepEqual(green.json?.rows, [['depot 5']], green.text);
			});
		assert.equal(await everything(w), was, 'nothing was applied, nothing was left behind');
		assert.deepEqual(await w.operator.pending(), []);
	});
