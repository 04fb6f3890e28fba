// race: a decision that meets a statement which is just being added, or just
// given up; AIRLOCK_ROUNDS asks for more rounds than a few
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { release, world } from './lib/world.mjs';
import { scratch, start, tests } from './lib/place.mjs';
import { exited, Lines, within } from './lib/wait.mjs';

after(release);

const ROUNDS = Number(process.env.AIRLOCK_ROUNDS ?? 24);
const pause = ms => new Promise(done => setTimeout(done, ms)); // the race itself, not a wait

// One connection to control.sock, without a command to start for each word.
async function control(daemon) {
	const child = start(process.execPath, [join(tests, 'e2e/lib/relay.mjs'), join(daemon.state, 'run/control.sock')],
		{ home: scratch('alkc-'), stdio: ['pipe', 'pipe', 'pipe'] });
	const out = new Lines(child.stdout);
	const { nonce } = JSON.parse(await out.until(/nonce/));
	return {
		async say(verb, args = {}) {
			const from = out.all.length;
			child.stdin.write(`${JSON.stringify({ airlock: 1, nonce, verb, args })}\n`);
			const end = JSON.parse(await out.until(/^{"ok"/, { from }));
			return { ...end, data: out.all.slice(from).map(l => JSON.parse(l).data).filter(Boolean) };
		},
		async close() {
			child.stdin.end();
			await within(10000, exited(child), 'the relay to end');
		},
	};
}

// An addition that folds, one that is searched for, one that is paired, one
// that fails, and a read inside.
const ADDITIONS = [
	'UPDATE t SET a = a + 1',
	'UPDATE s SET a = a + 1',
	'INSERT INTO t SELECT g, 7 FROM generate_series(1500, 2500) g ON CONFLICT (id) DO UPDATE SET a = 7',
	'INSERT INTO t SELECT g, 1 / (1000 - g) FROM generate_series(3000, 1, -1) g ON CONFLICT DO NOTHING',
	'DELETE FROM t WHERE id > 100',
];

test('a decision right behind an addition that is given up', async t => {
	const w = await world(t, { args: ['--operator-guard', 'off'], setup: `
		CREATE TABLE t(id int PRIMARY KEY, a int); INSERT INTO t SELECT g, 0 FROM generate_series(1, 2000) g;
		CREATE TABLE s(id int PRIMARY KEY, a int); INSERT INTO s SELECT g, 0 FROM generate_series(1, 1000) g;
		CREATE TABLE log(id int);
		CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (NEW.id); RETURN NULL; END $$;
		CREATE TRIGGER tr AFTER UPDATE ON s FOR EACH ROW EXECUTE FUNCTION g();
		CREATE TABLE done(n int PRIMARY KEY);` });
	const c = await control(w.daemon);
	const agent = w.raw({ through: 'socket' });
	await agent.request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } });
	agent.send({ method: 'notifications/initialized' });
	const seen = {};
	for (let n = 0; n < ROUNDS; n++) {
		const held = await agent.tool('db_execute', { sql: 'INSERT INTO done VALUES ($1)', params: [String(n)] });
		assert.equal(held.error, false, held.text);
		const id = JSON.parse(held.text).change_id;
		const digest = async () => (await c.say('pending')).data.find(x => x.id === id)?.digest;
		const before = await digest();
		const request = ++agent.id;
		const reading = n % 6 === 5;
		agent.send({ id: request, method: 'tools/call', params: { name: reading ? 'db_query' : 'db_execute',
			arguments: { sql: reading ? 'SELECT count(*) FROM t, generate_series(1, 3000)' : ADDITIONS[n % 6], change_id: id } } });
		await pause(Math.random() ** 2 * 60);
		agent.send({ method: 'notifications/cancelled', params: { requestId: request } });
		await pause(Math.random() * 20);
		let end, tries = 0;
		do // BUSY while the addition is being taken back
			end = n % 3 === 2 ? await c.say('rollback', { change: id, reason: 'race' })
				: await c.say('commit', { change: id, digest: before });
		while (!end.ok && end.code === 'BUSY' && tries++ < 2000);
		const rows = Number(await w.sql(`SELECT count(*) FROM done WHERE n = ${n}`));
		const touched = await w.sql('SELECT (SELECT count(*) FROM t WHERE a <> 0), (SELECT count(*) FROM t), (SELECT count(*) FROM log)');
		assert.equal(touched, '0|2000|0', `round ${n}: nothing of the addition is committed`);
		const what = end.ok ? end.change.status : end.code;
		seen[what] = (seen[what] ?? 0) + 1;
		assert.equal(rows, what === 'committed' ? 1 : 0, `round ${n}: ${JSON.stringify(end)}`);
		if (what === 'DIGEST_MOVED') { // the addition came through before it was given up
			assert.notEqual(await digest(), before);
			await c.say('rollback', { change: id, reason: 'moved' });
		} else {
			assert.match(what, /^(committed|rolled_back)$/, `round ${n}: nothing of what was held is lost: ${JSON.stringify(end)}`);
		}
	}
	t.diagnostic(JSON.stringify(seen));
	assert.deepEqual((await c.say('pending')).data, []);
	await c.close();
});
