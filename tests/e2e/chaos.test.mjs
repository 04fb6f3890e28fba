// chaos: whatever is killed at whatever moment, the journal tells what the
// database holds
//
// CHAOS_ROUNDS rounds from CHAOS_SEED: changes are proposed, added to, committed
// and rolled back all at once, and in the midst of it the daemon, a session of
// the server or the whole server is killed.  Which moment that is nobody knows;
// what must hold afterwards is the same for all of them.
import assert from 'node:assert/strict';
import { readdirSync, watch } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Rand } from '../oracle/rand.mjs';
import { Cluster } from './lib/cluster.mjs';
import { ask } from './lib/wait.mjs';
import { outcome, release, world } from './lib/world.mjs';

const ROUNDS = Number(process.env.CHAOS_ROUNDS ?? 8);
const SEED = Number(process.env.CHAOS_SEED ?? 1);
const ENDS = ['committed', 'rolled_back', 'failed'];

// Two rows for each statement that stands: one named, one by a trigger.
const SETUP = `
	CREATE TABLE t(change text, n int, PRIMARY KEY (change, n));
	CREATE TABLE log(change text, n int);
	CREATE FUNCTION logged() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO log VALUES (NEW.change, NEW.n);
		RETURN NULL;
	END $$;
	CREATE TRIGGER logged AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION logged();`;

// Only what is made safe on purpose survives an immediate stop.
const server = Cluster.start({
	settings: { wal_writer_delay: '10s', wal_writer_flush_after: '100MB', autovacuum: 'off', fsync: 'off' },
});
after(async () => {
	await release();
	await (await server).stop();
});

// What a promise came to, or null where it was cut off.
const tried = promise => promise.then(r => r, () => null);

async function propose(agent, change, statements) {
	for (let n = 1; n <= statements; n++) {
		const answer = await tried(agent.execute('INSERT INTO t VALUES ($1, $2)',
			{ params: [change.name, String(n)], ...(change.id && { change_id: change.id }) }));
		if (answer === null || outcome(answer) !== 'pending')
			return;
		change.id = answer.json.change_id;
	}
}

// An operator's word on it, and whether that was said to be done.
async function decide(w, change, verdict) {
	const head = change.id && (await tried(w.operator.pending()))?.find(c => c.id === change.id);
	if (!head)
		return;
	change.statements = head.statements.length;
	const r = await tried(verdict === 'committed'
		? w.operator.run('commit', head.token) : w.operator.run('rollback', change.id, '--reason', 'no'));
	if (r?.code === 0)
		change.told = verdict;
}

const strikes = {
	daemon: w => w.daemon.kill(),
	server: w => w.cluster.restart('immediate'),
	both: async w => {
		await w.daemon.kill();
		await w.cluster.restart('immediate');
	},
	// The server ends all other sessions then, and recovers.
	async session(w) {
		const pid = await tried(w.sql(`SELECT pid FROM pg_stat_activity WHERE datname = current_database()
			AND application_name LIKE 'airlock%' LIMIT 1`));
		if (pid)
			process.kill(Number(pid), 'SIGKILL');
	},
};

// Strikes when so many more records are in the journal.
function strikeAt(w, records, strike) {
	const dir = join(w.daemon.state, 'journal');
	const from = w.daemon.journal().length;
	return new Promise((done, fail) => {
		const watcher = watch(dir, () => {
			if (w.daemon.journal().length < from + records)
				return;
			watcher.close();
			strike(w).then(done, fail);
		});
	});
}

async function settle(w) {
	if (!w.daemon.running)
		await w.daemon.launch();
	await ask(async () => await tried(w.sql('SELECT 1')) === '1', 'the server to be back');
	await ask(async () => {
		const s = await w.operator.json('status');
		for (const c of await w.operator.pending())
			await tried(w.operator.run('rollback', c.id, '--reason', 'the round is over'));
		return s.database === 'up' && s.in_doubt === 0 && s.pending === 0;
	}, 'every change to have its end', 30000);
}

async function verify(w, change) {
	const mine = w.daemon.journal().filter(r => r.change === change.id);
	const ends = mine.filter(r => ENDS.includes(r.kind)).map(r => r.kind);
	assert.equal(ends.length, 1, `one end of ${change.id}: ${JSON.stringify(mine)}`);
	const rows = ends[0] === 'committed' ? String(change.statements) : '0';
	for (const table of ['t', 'log'])
		assert.equal(await w.sql(`SELECT count(*) FROM ${table} WHERE change = '${change.name}'`), rows, `${ends[0]}, ${table}`);
	if (change.told)
		assert.equal(ends[0], change.told, 'what the operator was told');
	assert.equal((await w.agent.status(change.id)).json.status, ends[0], 'what the agent is told');
	return ends[0];
}

async function round(w, rand, number) {
	const changes = [1, 2, 3, 4].map(i => ({ name: `round ${number}, ${i}`, verdict: rand.pick(['committed', 'committed', 'rolled_back']) }));
	const agents = await Promise.all(changes.map(() => w.connect()));
	const kind = rand.pick(Object.keys(strikes));
	let over = false;
	const struck = strikeAt(w, rand.int(3, 20), strikes[kind]).finally(() => { over = true; });
	await Promise.all(changes.map(async (c, i) => {
		await propose(agents[i], c, rand.int(1, 2));
		await decide(w, c, c.verdict);
	}));
	while (!over) // there may not have been so many records
		await tried(w.agent.query('SELECT 1'));
	await struck;
	await Promise.all(agents.map(a => tried(a.client.close())));
	await settle(w);
	w.agent = await w.connect();
	const ends = [];
	for (const c of changes.filter(c => c.id))
		ends.push(await verify(w, c));
	assert.equal((await w.operator.run('log', '--verify')).code, 0);
	assert.deepEqual(readdirSync(join(w.daemon.state, 'changes')), []);
	return `${kind}: ${ends.join(' ')}`;
}

test(`${ROUNDS} rounds of killing, seed ${SEED}`, async t => {
	const w = await world(t, { setup: SETUP, cluster: await server });
	const rand = new Rand(SEED);
	for (let n = 1; n <= ROUNDS; n++)
		t.diagnostic(`round ${n}, ${await round(w, rand, n)}`);
});
