// uids: the wall: daemon, agent, operators and a stranger are four users
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { mkdirSync, chmodSync, chownSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { cluster, release } from './lib/cluster.mjs';
import { Daemon } from './lib/daemon.mjs';
import { finished, isRoot, program, scratch, start, user } from './lib/place.mjs';
import { exited, Lines, within } from './lib/wait.mjs';

after(release);

const [AGENT, DECIDER, VIEWER, STRANGER] = [61181, 61182, 61183, 61184]; // that nobody has
const as = (uid, name, args) => start(program(name), args, { uid, gid: uid, home: '/', stdio: ['pipe', 'pipe', 'pipe'] });
const ask = (uid, ...args) => within(20000, finished(as(uid, 'airlock', args)), `airlock ${args} of ${uid}`);

test('each of four users may do what it is named for, and no more', { skip: !isRoot && 'takes root' }, async t => {
	const runtime = join(scratch(), 'run'), config = `
		[airlock]
		runtime_dir = ${runtime}
		[agent support]
		users = ${AGENT}
		[operator dana]
		user = ${DECIDER}
		role = decide
		[operator lee]
		user = ${VIEWER}
		role = view`.replaceAll('\t', '');
	mkdirSync(runtime);
	chownSync(runtime, user.ids.uid, user.ids.gid);
	chmodSync(runtime, 0o711);
	chmodSync(join(runtime, '..'), 0o711);
	const c = await cluster(), database = await c.database('CREATE TABLE t(id int PRIMARY KEY)');
	const d = await Daemon.start({ db: c.url(database), config, runtime });
	t.after(() => d.stop());
	const control = join(runtime, 'control.sock'), agent = d.socket('support');
	assert.equal(statSync(d.state).mode & 0o777, 0o700);
	assert.equal(statSync(agent).uid, user.ids.uid);

	const propose = async uid => {
		const call = { name: 'db_execute', arguments: { sql: 'INSERT INTO t VALUES (1)' } };
		const bridge = as(uid, 'airlock-mcp', ['--socket', agent]), out = new Lines(bridge.stdout);
		bridge.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call })}\n`);
		const line = await out.until(/jsonrpc/);
		bridge.stdin.end();
		await exited(bridge);
		return JSON.parse(line);
	};
	for (const uid of [STRANGER, DECIDER, VIEWER])
		assert.equal((await propose(uid)).error?.code, -32603, `${uid} is no agent`);
	const { change_id, status } = JSON.parse((await propose(AGENT)).result.content[0].text);
	assert.equal(status, 'pending');

	for (const uid of [AGENT, STRANGER])
		for (const verb of [['pending'], ['show', change_id], ['log'], ['rollback', change_id]])
			assert.equal((await ask(uid, '--socket', control, ...verb)).code, 4, `${verb} of ${uid}`);
	const [{ token }] = JSON.parse((await ask(VIEWER, '--socket', control, 'pending', '--json')).stdout);
	assert.equal((await ask(VIEWER, '--socket', control, 'commit', token)).code, 4);
	assert.equal((await ask(AGENT, '--socket', control, 'commit', token)).code, 4);
	assert.equal((await ask(DECIDER, '--state-dir', d.state, 'pending')).code, 4, 'the state is closed');
	const done = await ask(DECIDER, '--socket', control, 'commit', token);
	assert.equal(done.code, 0, done.stderr);
	assert.equal(await c.sql(database, 'SELECT count(*) FROM t'), '1');
	assert.equal(d.journal().find(r => r.kind === 'committed').operator, 'dana');
});
