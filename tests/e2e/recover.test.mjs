// recover: whatever dies, and whenever, the journal and the agent get the truth
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, readdirSync, statfsSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Cluster, cluster } from './lib/cluster.mjs';
import { isRoot, scratch, user } from './lib/place.mjs';
import { isCommit, isCommitted, Proxy } from './lib/proxy.mjs';
import { ask } from './lib/wait.mjs';
import { outcome, release, world } from './lib/world.mjs';

// A server of this file's own to crash.  Its WAL reaches the disk only when
// somebody waits for that, so that a crash takes what nobody made safe.
let own;
const crashing = () => own ??= Cluster.start({
	settings: {
		wal_writer_delay: '10s', wal_writer_flush_after: '100MB', bgwriter_lru_maxpages: 0, autovacuum: 'off',
		checkpoint_timeout: '1h', fsync: 'off',
	},
});

after(async () => {
	await release();
	await (await own)?.stop('immediate');
});

const SHOP = `
	CREATE TABLE t(id int PRIMARY KEY, a int);
	INSERT INTO t SELECT g, g FROM generate_series(1, 10) g;
	CREATE VIEW slow AS SELECT 9 AS n FROM (SELECT max(g) AS m FROM (SELECT generate_series(1::bigint, 100000000000) AS g) x) y WHERE m > 0;`;
const ONE = 'UPDATE t SET a = 0 WHERE id = 1';

async function hold(w, sql = ONE) {
	const answer = await w.agent.execute(sql);
	assert.equal(outcome(answer), 'pending', answer.text);
	return answer.json.change_id;
}

const head = async (w, id) => (await w.operator.pending()).find(c => c.id === id);
const records = (w, id) => w.daemon.journal().filter(r => r.change === id);
const recorded = (w, id, kind) => ask(() => records(w, id).some(r => r.kind === kind), `${kind} in the journal`);
const a1 = w => w.sql('SELECT a FROM t WHERE id = 1');

// A world whose airlockd reaches the server through a proxy, and a held change.
async function through(t, { server, ...more } = {}) {
	const c = server ?? await cluster();
	const proxy = await Proxy.start(c);
	const w = await world(t, { setup: SHOP, cluster: c, url: x => proxy.url(x.database), ...more });
	t.after(() => proxy.close());
	return Object.assign(w, { proxy, id: await hold(w), token: undefined });
}

async function crash(w) {
	await w.daemon.kill();
	await w.daemon.launch();
	w.agent = await w.connect();
}

test('nothing of a change that ends with its daemon stays on the disk', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w, 'DELETE FROM t WHERE id < 3');
	const added = await w.agent.execute('INSERT INTO t VALUES (1, 7)', { change_id: id });
	assert.equal(outcome(added), 'pending', added.text);
	assert.deepEqual(readdirSync(join(w.daemon.state, 'changes', id)).sort(), ['rows.ndjson', 'rows.net']);
	await crash(w);
	assert.deepEqual(readdirSync(join(w.daemon.state, 'changes')), []);
});

// Everybody says the same, and what they say is so.
async function ended(w, id, status, why) {
	await recorded(w, id, status);
	const { json } = await w.agent.status(id);
	assert.deepEqual([json.status, json.why], [status, why], JSON.stringify(json));
	assert.match(json.message, status === 'committed' ? /^Applied/ : /^NOT applied/);
	assert.equal(await a1(w), status === 'committed' ? '0' : '1');
	const shown = await w.operator.run('show', id, '--json');
	assert.equal(JSON.parse(shown.stdout).status, status);
	const { digest } = w.daemon.journal().find(r => r.change === id);
	const late = await w.operator.run('commit', `${id}@${digest}`);
	assert.equal(late.code, 1, late.stdout);
	assert.match(late.stderr, new RegExp(`is ${status} already`));
	assert.equal((await w.operator.run('log', '--verify')).code, 0);
	assert.equal(records(w, id).filter(r => ['committed', 'rolled_back', 'failed'].includes(r.kind)).length, 1, 'one end');
	const again = await w.agent.execute('UPDATE t SET a = a WHERE id = 1');
	assert.equal(outcome(again), 'pending', 'its lock is gone, and life goes on');
}

const status = async (w, id) => (await w.agent.status(id)).json.status;

test('killed while a statement runs: as if it had never been', async t => {
	const w = await world(t, { setup: SHOP });
	const slow = w.agent.execute('UPDATE t SET a = 0 WHERE id IN (SELECT n FROM slow)').catch(() => {});
	const running = () => w.sql('SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE \'%FROM slow%\' AND pid <> pg_backend_pid()');
	await ask(async () => await running() === '1', 'the statement to run');
	await crash(w);
	await slow;
	assert.deepEqual((await w.agent.status()).json.changes, []);
	assert.ok(!w.daemon.journal().some(r => r.change));
	await ask(async () => await running() === '0', 'the server to notice', 8000);
	assert.equal(await w.sql('SELECT a FROM t WHERE id = 9'), '9');
});

test('killed while a change is held: lost, and said to be', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w);
	const { token } = await head(w, id);
	await crash(w);
	assert.deepEqual(await w.operator.pending(), []);
	assert.match((await w.operator.run('commit', token)).stderr, /rolled_back already/);
	await ended(w, id, 'rolled_back', 'lost');
	await w.daemon.restart();
	w.agent = await w.connect();
	assert.equal((await w.agent.status(id)).json.why, 'lost', 'a second start knows it too');
});

test('killed between the intent and COMMIT: in doubt, then rolled back', async t => {
	const w = await through(t);
	const at = w.proxy.meet(isCommit, 'stall');
	const before = await head(w, w.id), { token } = before;
	const commit = w.operator.run('commit', token);
	const link = await at;
	assert.deepEqual(records(w, w.id).map(r => r.kind), ['held', 'intent']);
	await crash(w);
	assert.notEqual((await commit).code, 0);
	// The server still holds the transaction: nobody may claim to know its end.
	assert.equal(await status(w, w.id), 'in_doubt');
	assert.match((await w.operator.run('commit', token)).stderr, /in_doubt/);
	assert.equal((await w.operator.json('status')).in_doubt, 1);
	const [listed, ...more] = await w.operator.pending();
	assert.deepEqual(more, []);
	assert.match(before.replay_digest, /^[0-9a-f]{64}$/);
	for (const member of ['id', 'agent', 'database', 'intent', 'risk', 'reasons', 'statements', 'tables', 'complete',
		'digest', 'replay_digest', 'token'])
		assert.deepEqual(listed[member], before[member], member);
	assert.deepEqual([listed.status, listed.expires_at], ['in_doubt', null]);
	assert.ok(Math.abs(Date.parse(listed.created_at) - Date.parse(before.created_at)) < 60000);
	assert.match((await w.operator.run('pending')).stdout, /^chg_\w+ in_doubt, agent agent[^]*sql \| UPDATE/);
	assert.deepEqual((await w.agent.status()).json.changes.map(c => c.status), ['in_doubt']);
	link.cut();
	await ended(w, w.id, 'rolled_back', 'lost');
	assert.equal(await head(w, w.id), undefined);
});

test('killed after COMMIT, before its answer: committed', async t => {
	const w = await through(t);
	const at = w.proxy.meet(isCommitted, 'stall');
	const { token } = await head(w, w.id);
	const commit = w.operator.run('commit', token);
	await at;
	assert.deepEqual(records(w, w.id).map(r => r.kind), ['held', 'intent'], 'never told before the server confirmed');
	assert.equal(await status(w, w.id), 'pending');
	await crash(w);
	await commit;
	await ended(w, w.id, 'committed');
	assert.equal(records(w, w.id).at(-1).how, 'pg_xact_status');
});

// COMMIT waits on the server for a standby that there is not.
async function standstill(c) {
	await c.sql('postgres', 'ALTER SYSTEM SET synchronous_standby_names = \'nobody\'');
	await c.sql('postgres', 'SELECT pg_reload_conf()');
	await ask(async () => await c.sql('postgres', 'SHOW synchronous_standby_names') === 'nobody', 'the setting to hold');
	return async () => {
		await c.sql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
		await c.sql('postgres', 'SELECT pg_reload_conf()');
	};
}
const waiting = w => ask(async () => await w.sql('SELECT count(*) FROM pg_stat_activity WHERE wait_event = \'SyncRep\' AND query = \'COMMIT\'') === '1',
	'COMMIT to wait');

test('killed while the server is committing: in doubt until it has', async t => {
	const w = await world(t, { setup: SHOP, cluster: await crashing() });
	const id = await hold(w);
	const { token } = await head(w, id);
	const go = await standstill(w.cluster);
	t.after(go);
	const commit = w.operator.run('commit', token);
	await waiting(w);
	await crash(w);
	await commit;
	assert.equal(await status(w, id), 'in_doubt');
	await go();
	await ended(w, id, 'committed');
});

test('the server ends the session in the middle of COMMIT', async t => {
	const w = await world(t, { setup: SHOP, cluster: await crashing() });
	const id = await hold(w);
	const { token } = await head(w, id);
	const go = await standstill(w.cluster);
	t.after(go);
	const commit = w.operator.run('commit', token);
	await waiting(w);
	await w.sql('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = \'SyncRep\'');
	const r = await commit;
	assert.equal(r.code, 1, r.stdout);
	assert.match(r.stderr, /IN_DOUBT/);
	await ended(w, id, 'committed');
	await go();
	assert.deepEqual(records(w, id).map(x => x.kind), ['held', 'intent', 'in_doubt', 'committed']);
});

test('the link is cut before and after COMMIT is done', async t => {
	for (const [where, end, why] of [[isCommit, 'rolled_back', 'lost'], [isCommitted, 'committed', undefined]]) {
		const w = await through(t);
		w.proxy.meet(where, 'cut');
		const { token } = await head(w, w.id);
		const r = await w.operator.run('commit', token);
		assert.equal(r.code, 1, r.stdout);
		assert.match(r.stderr, /IN_DOUBT/);
		const told = await w.agent.status(w.id, { wait_s: 20 });
		assert.equal(told.json.status, end);
		await ended(w, w.id, end, why);
		assert.equal(records(w, w.id).at(-1).why, why);
	}
});

test('an answer to COMMIT that never comes is not waited for for ever', async t => {
	const w = await through(t, { config: '[airlock]\nwrite_timeout = 100ms\n[agent agent]\naccess = data\n' });
	const at = w.proxy.meet(isCommitted, 'stall');
	const { token } = await head(w, w.id);
	const commit = w.operator.run('commit', token);
	await at;
	const r = await commit;
	assert.equal(r.code, 1);
	assert.match(r.stderr, /IN_DOUBT/);
	await ended(w, w.id, 'committed');
	const next = await hold(w, 'UPDATE t SET a = 5 WHERE id = 5');
	w.proxy.meet(m => m.type === 'P' && m.link.isWriter && m.link.sql.at(-1) === 'ROLLBACK', 'stall');
	await w.operator.rollback(next);
	assert.equal(await status(w, next), 'rolled_back');
});

test('COMMIT answered with ROLLBACK is a failure', async t => {
	const w = await through(t);
	const text = Buffer.from('\0ROLLBACK\0\0\0');
	const parse = Buffer.alloc(5);
	parse.write('P');
	parse.writeUInt32BE(4 + text.length, 1);
	w.proxy.meet(isCommit, Buffer.concat([parse, text]));
	const { token } = await head(w, w.id);
	const r = await w.operator.run('commit', token);
	assert.equal(r.code, 1, r.stdout);
	assert.match(r.stderr, /answered COMMIT with ROLLBACK/);
	await ended(w, w.id, 'failed');
});

test('the server crashes while a change is held', async t => {
	const w = await world(t, { setup: SHOP, cluster: await crashing() });
	const id = await hold(w);
	const other = await hold(w, 'UPDATE t SET a = 0 WHERE id = 2');
	const told = w.agent.status(id, { wait_s: 30 });
	await w.cluster.restart('immediate');
	assert.deepEqual([(await told).json.status, (await told).json.why], ['rolled_back', 'lost']);
	await ask(async () => (await w.operator.json('status')).database === 'up', 'airlockd to be connected again');
	assert.equal((await w.agent.status(other)).json.why, 'lost');
	await ended(w, id, 'rolled_back', 'lost');
});

// After the crash other transactions commit under the ids that it gave away.
test('the server crashes before COMMIT: its transaction id is not taken for another\'s', async t => {
	const w = await through(t, { server: await crashing() });
	const { xid } = records(w, w.id)[0];
	const at = w.proxy.meet(isCommit, 'stall');
	const before = await head(w, w.id), { token } = before;
	const commit = w.operator.run('commit', token);
	const link = await at;
	await w.daemon.signal('SIGSTOP'); // asks when the ids are used again
	await w.cluster.restart('immediate');
	link.cut();
	for (let i = 0; i < 20; i++)
		await w.sql('INSERT INTO t VALUES ((SELECT max(id) + 1 FROM t), 7)');
	const now = Number(await w.sql('SELECT pg_current_xact_id()'));
	assert.ok(now > Number(xid), `${xid} has passed: ${now}`);
	w.daemon.signal('SIGCONT');
	assert.equal((await commit).code, 1);
	await ended(w, w.id, 'rolled_back', 'lost');
});

test('held, crashed, and its id used again: never committed', async t => {
	const w = await world(t, { setup: SHOP, cluster: await crashing() });
	const id = await hold(w);
	const { xid } = records(w, id)[0];
	await w.daemon.kill();
	await w.cluster.restart('immediate');
	for (let i = 0; i < 20; i++)
		await w.sql(`INSERT INTO t VALUES (${100 + i}, 7)`);
	assert.equal(await w.sql(`SELECT pg_xact_status('${xid}')`), 'committed', 'the hazard is real');
	await w.daemon.launch();
	w.agent = await w.connect();
	await ended(w, id, 'rolled_back', 'lost');
});

test('the server crashes after COMMIT, whose answer is lost: committed', async t => {
	const w = await through(t, { server: await crashing() });
	const at = w.proxy.meet(isCommitted, 'stall');
	const before = await head(w, w.id), { token } = before;
	const commit = w.operator.run('commit', token);
	const link = await at;
	await w.cluster.restart('immediate');
	link.cut();
	assert.match((await commit).stderr, /IN_DOUBT/);
	await ended(w, w.id, 'committed');
});

test('in doubt, another server\'s word is not taken for it', async t => {
	const w = await through(t);
	const other = await crashing();
	await other.sql('postgres', `CREATE DATABASE ${w.database}`);
	for (let i = 0; i < 3; i++) // the same id may well be another's there
		await other.sql(w.database, SHOP.replace('TABLE t(', `TABLE IF NOT EXISTS t${i}(`).replace('INTO t ', `INTO t${i} `).replace('VIEW slow', `VIEW s${i}`));
	const at = w.proxy.meet(isCommitted, 'stall');
	const before = await head(w, w.id), { token } = before;
	const commit = w.operator.run('commit', token);
	const link = await at;
	w.proxy.aim(other);
	for (const c of w.proxy.connections)
		c.cut();
	link.cut();
	await commit;
	const up = async () => (await w.operator.json('status')).database === 'up';
	await ask(up, 'the other server to be connected');
	await w.agent.query('SELECT 1');
	for (let i = 0; i < 3; i++) {
		assert.equal((await w.agent.status(w.id, { wait_s: 1 })).json.status, 'in_doubt');
		if (i === 0) {
			await w.daemon.kill();
			await w.daemon.launch();
			w.agent = await w.connect();
			await ask(up, 'the other server to be connected');
		}
	}
	w.proxy.aim(w.cluster);
	for (const c of w.proxy.connections)
		c.cut();
	await ended(w, w.id, 'committed');
});

const beacon = m => m.from === 'client' && m.type === 'P' && /pg_logical_emit_message|pg_current_wal_flush_lsn/.test(m.link.sql.at(-1));

test('the writer\'s link is cut while the beacon is lit', async t => {
	const w = await through(t);
	const { token } = await head(w, w.id);
	const at = w.proxy.meet(beacon, 'stall');
	const commit = w.operator.run('commit', token);
	const control = await at;
	const writer = [...w.proxy.connections].find(c => c.isWriter);
	writer.cut();
	await w.agent.query('SELECT 1');
	control.cut();
	const r = await commit;
	assert.equal(r.code, 1, r.stdout);
	await ask(async () => await status(w, w.id) === 'rolled_back', 'its end');
	assert.deepEqual(records(w, w.id).map(x => x.kind), ['held', 'rolled_back']);
	await ask(async () => (await w.operator.json('status')).database === 'up', 'airlockd to be connected again');
	await ended(w, w.id, 'rolled_back', 'lost');
});

test('the control link is cut while the beacon is lit: still held', async t => {
	const w = await through(t);
	const { token } = await head(w, w.id);
	w.proxy.meet(beacon, 'cut');
	const r = await w.operator.run('commit', token);
	assert.equal(r.code, 1, r.stdout);
	assert.match(r.stderr, /nothing was committed; the change is still held/);
	await ask(async () => (await w.operator.json('status')).database === 'up', 'airlockd to be connected again');
	await w.operator.commit(w.id);
	await ended(w, w.id, 'committed');
});

test('a change whose link is lost while a statement is parsed for it', async t => {
	for (const add of [(w, id) => w.agent.execute('UPDATE t SET a = 3 WHERE id = 3', { change_id: id }),
		(w, id) => w.agent.query('SELECT a FROM t', { change_id: id })]) {
		const w = await through(t, { config: '[airlock]\nparser_deadline = 20s\n[agent agent]\naccess = data\n' });
		const { parser_pid } = await w.operator.json('status');
		process.kill(parser_pid, 'SIGSTOP');
		const adding = add(w, w.id);
		const other = await w.connect();
		await ask(async () => (await w.operator.json('agents'))[0].calls > 0, 'the call to wait for the parser');
		[...w.proxy.connections].find(c => c.isWriter).cut();
		await recorded(w, w.id, 'rolled_back');
		process.kill(parser_pid, 'SIGCONT');
		assert.equal(outcome(await adding), 'CHANGE_NOT_PENDING');
		assert.equal((await other.status(w.id)).json.why, 'lost');
		await ended(w, w.id, 'rolled_back', 'lost');
	}
});

// --- a disk that does not take what it should ---

// The file of its rows is made while the server works.
test('a change whose rows have no place is refused, and nothing of it stays', async t => {
	const w = await world(t, { setup: SHOP });
	const changes = join(w.daemon.state, 'changes');
	chmodSync(changes, 0o500);
	for (const sql of [ONE, 'UPDATE t SET a = 0 WHERE id = 99', 'WITH x AS (DELETE FROM t RETURNING id) SELECT * FROM x']) {
		const refused = await w.agent.execute(sql);
		assert.equal(outcome(refused), 'UNAVAILABLE', refused.text);
		assert.match(refused.text, /the diff could not be kept: cannot make the directory of 'chg_/);
	}
	assert.equal(await w.sql('SELECT count(*) FROM pg_locks WHERE relation = \'t\'::regclass AND mode = \'RowExclusiveLock\''), '0');
	chmodSync(changes, 0o700);
	const id = await hold(w);
	assert.deepEqual(readdirSync(changes), [id]);
	await w.operator.commit(id);
	assert.equal(await w.sql('SELECT string_agg(a::text, \' \' ORDER BY id) FROM t'), '0 2 3 4 5 6 7 8 9 10');
});

function disk(t, size) {
	const dir = scratch('alkf-');
	execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=755`, 'airlock-test', dir]);
	t.after(() => execFileSync('umount', ['-l', dir]));
	chownSync(dir, user.ids.uid, user.ids.gid);
	let n = 0;
	const fill = () => {
		for (let free; (free = statfsSync(dir)).bfree > 0;)
			try {
				writeFileSync(join(dir, `filler${n++}`), Buffer.alloc(free.bfree * free.bsize));
			} catch (e) {
				if (e.code !== 'ENOSPC') // the daemon writes too
					throw e;
			}
	};
	const empty = () => {
		for (const f of readdirSync(dir))
			if (f.startsWith('filler'))
				unlinkSync(join(dir, f));
	};
	return { state: join(dir, 'state'), fill, empty };
}

test('a full disk: no commit without its record, rollbacks all the same', async t => {
	if (!isRoot || !existsSync('/bin/mount')) {
		t.diagnostic('SKIPPED: only root can mount a small disk');
		return t.skip('only root can mount a small disk');
	}
	const d = disk(t, '4m');
	const w = await world(t, {
		setup: SHOP, state: d.state,
		config: '[airlock]\njournal_reserve_bytes = 64K\n[agent agent]\naccess = data\n',
	});
	const ids = [];
	for (const n of [1, 2, 3, 4])
		ids.push(await hold(w, `UPDATE t SET a = 0 WHERE id = ${n}`));
	d.fill();
	// What the journal still has room for is used up by records of reads.
	await ask(async () => {
		await w.agent.query(`SELECT 1 /* ${'x'.repeat(20000)} */`);
		d.fill();
		return (await w.operator.json('status')).journal_low;
	}, 'the journal to see the disk full');
	const refused = await w.agent.execute('UPDATE t SET a = 0 WHERE id = 6');
	assert.equal(outcome(refused), 'UNAVAILABLE', refused.text);
	const adding = await w.agent.execute('UPDATE t SET a = 0 WHERE id = 7', { change_id: ids[0] });
	assert.equal(outcome(adding), 'UNAVAILABLE', adding.text);
	for (const length of [20000, 4000, 1000, ...Array(30).fill(0)]) {
		await w.agent.query(`SELECT 1 /* ${'x'.repeat(length)} */`);
		d.fill();
	}
	const { token } = await head(w, ids[0]);
	const no = await w.operator.run('commit', token);
	assert.equal(no.code, 1, no.stdout);
	assert.match(no.stderr, /nothing was committed/);
	assert.equal(await status(w, ids[0]), 'pending');
	assert.equal(await a1(w), '1');
	await w.operator.rollback(ids[1], 'no room');
	assert.deepEqual([(await w.agent.status(ids[1])).json.status, (await w.agent.status(ids[1])).json.reason], ['rolled_back', 'no room']);
	assert.equal(outcome(await w.agent.call('db_withdraw', { change_id: ids[2] })), 'rolled_back');
	d.empty();
	await ask(async () => !(await w.operator.json('status')).journal_low, 'the journal to have its reserve again');
	await w.operator.commit(ids[0]);
	assert.equal(await a1(w), '0');
	assert.equal((await w.operator.run('log', '--verify')).code, 0);
	await w.daemon.kill();
	await w.daemon.launch();
	w.agent = await w.connect();
	assert.equal(await status(w, ids[0]), 'committed');
	for (const id of ids.slice(1))
		assert.equal(await status(w, id), 'rolled_back');
	assert.equal((await w.operator.run('log', '--verify')).code, 0);
	assert.equal(await w.sql('SELECT count(*) FROM t WHERE a = 0'), '1');
});
