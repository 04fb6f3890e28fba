// trace: after all red and read-only cases the server is as it was before, in
// everything that it keeps; and the comparison sees what there is to see
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { join } from 'node:path';
import { ground, traces } from '../siege/ground.mjs';
import { Pipe } from '../siege/pipe.mjs';
import { casts, fields, liars, reds, volatile } from '../siege/seeds.mjs';

// What an attack would leave, done by hand, and where it must be seen.
const left = [
	['UPDATE depot SET label = \'y\' WHERE depot_id = 1', /rows of depot: /],
	['CREATE TABLE siege_t()', /rows of pg_type: /],
	['GRANT SELECT ON vault_key TO f_other', /rows of pg_class: /],
	['CREATE FUNCTION siege_f() RETURNS int LANGUAGE sql AS \'SELECT 1\'', /rows of pg_proc: /],
	['CREATE ROLE siege', /rows of pg_authid: /],
	['GRANT pg_monitor TO f_other', /rows of pg_auth_members: /],
	['ALTER ROLE f_other SET work_mem = \'1MB\'', /rows of pg_db_role_setting: /],
	['ALTER SYSTEM SET work_mem = \'5MB\'', /file settings: [^]*files of the server: [^]*postgresql.auto.conf/],
	['SELECT lo_create(4242)', /large objects: \+ 4242/],
	['SELECT pg_create_physical_replication_slot(\'siege\')', /slots: \+ siege/],
	['SELECT pg_replication_origin_create(\'siege\')', /origins: \+ siege/],
	['BEGIN; INSERT INTO audit VALUES (1); PREPARE TRANSACTION \'siege\'', /prepared transactions: \+ siege/],
	['SELECT nextval(\'ticket_no\')', /sequences: /],
	['NOTIFY siege, \'heard\'', /Asynchronous notification/],
	['SELECT pg_stat_reset()', /resets: /],
];

test('the comparison sees what is left behind', async t => {
	const w = await ground(t);
	const was = await w.state();
	assert.deepEqual(await traces(w, was), []);
	for (const [sql] of left)
		await w.sql(sql);
	writeFileSync(join(w.cluster.data, 'siege'), '');
	w.victim.child.stdin.write('SELECT pg_advisory_lock(77); \\echo locked\n');
	await w.victim.out.until(/^locked/);
	const found = (await traces(w, was)).join('\n');
	for (const [sql, names] of [...left, ['a file', /\+ siege$/m], ['a lock', /advisory locks: \+ 0\|77/]])
		assert.match(found, names, sql);
	await w.sql(`SELECT pg_terminate_backend(${w.victim.pid}); SELECT pg_drop_replication_slot('siege'); ROLLBACK PREPARED 'siege'`);
	await assert.rejects(w.victim.harm(), /ended/);
});

test('red, read-only and parser cases leave nothing', async t => {
	const w = await ground(t);
	const all = [
		...reds, ...fields,
		...liars.flatMap(e => [`SELECT ${e}`, `EXPLAIN SELECT ${e}`, `EXPLAIN ANALYZE SELECT ${e}`].map(sql => ({ id: e, sql }))),
		...[...volatile, ...casts].map(sql => ({ id: sql, sql })),
	];
	const was = await w.state();

	await Pipe.all(all, 12, c => w.pipe.call('db_query', { sql: c.sql }));
	assert.deepEqual(await traces(w, was), [], 'after db_query');

	let held = 0;
	await Pipe.all(all, 1, async c => {
		const a = await w.pipe.call('db_execute', { sql: c.sql });
		assert.notEqual(a.outcome, 'committed', c.id);
		if (!a.json?.change_id)
			return;
		held++;
		assert.equal((await w.pipe.call('db_withdraw', { change_id: a.json.change_id })).outcome, 'rolled_back');
	});
	assert.ok(held > 30, `${held} were held`);
	assert.deepEqual(await traces(w, was, { sequences: false }), [], 'after db_execute');
	assert.deepEqual(await w.operator.pending(), []);
});
