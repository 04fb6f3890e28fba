// decide: who may end a change, how, and what everybody is told of it
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Operator, withoutTerminal } from './lib/operator.mjs';
import { user } from './lib/place.mjs';
import { ask } from './lib/wait.mjs';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const SHOP = `
	CREATE TABLE t(id int PRIMARY KEY, a int);
	INSERT INTO t SELECT g, g FROM generate_series(1, 40) g;
	CREATE VIEW slow AS SELECT 9 AS n FROM (SELECT max(g) AS m FROM (SELECT generate_series(1::bigint, 100000000000) AS g) x) y WHERE m > 0;`;
const ONE = 'UPDATE t SET a = 0 WHERE id = 1';
const SLOW = 'UPDATE t SET a = 0 WHERE id IN (SELECT n FROM slow)';
const SLOW_READ = 'SELECT n FROM slow';

async function hold(w, sql = ONE, { agent = w.agent, ...more } = {}) {
	const answer = await agent.execute(sql, more);
	assert.equal(outcome(answer), 'pending', answer.text);
	return answer.json.change_id;
}

const head = async (w, id) => (await w.operator.pending()).find(c => c.id === id);
const kinds = (w, id) => w.daemon.journal().filter(r => r.change === id).map(r => r.kind);
const a1 = w => w.sql('SELECT a FROM t WHERE id = 1');

// Waits for the decision; taken when this resolves, since calls are taken in
// their order: { told }.
async function wait(w, id, agent = w.agent) {
	const told = agent.status(id, { wait_s: 20 });
	await agent.query('SELECT 1');
	return { told };
}

// A backend at work on this text, by the agent's own application name.
const working = (w, text) => w.sql(`SELECT count(*) FROM pg_stat_activity
	WHERE datname = current_database() AND state = 'active' AND query LIKE '%${text}%' AND pid <> pg_backend_pid()`);
const atWork = (w, text) => ask(async () => await working(w, text) === '1', `${text} to run`);
const stopped = (w, text) => ask(async () => await working(w, text) === '0', `${text} to stop`, 4000);

async function verified(w) {
	const r = await w.operator.run('log', '--verify');
	assert.equal(r.code, 0, r.stderr);
}

test('a commit by token: the agent that waits is told, and the journal has it all', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w);
	const { told } = await wait(w, id);
	assert.equal(await a1(w), '1');
	const { token } = await head(w, id);
	const done = await w.operator.run('commit', token, '--json');
	assert.equal(done.code, 0, done.stderr);
	assert.equal(JSON.parse(done.stdout).status, 'committed');
	assert.equal((await told).json.status, 'committed');
	assert.match((await told).json.message, /^Applied/);
	assert.equal(await a1(w), '0');
	assert.deepEqual(kinds(w, id), ['held', 'intent', 'committed']);
	const [held, intent, committed] = w.daemon.journal().filter(r => r.change === id);
	assert.deepEqual([intent.digest, committed.digest], [held.digest, held.digest]);
	assert.equal(committed.operator, user.name);
	const again = await w.operator.run('commit', token);
	assert.equal(again.code, 1);
	assert.match(again.stderr, /committed already/);
	assert.equal((await w.operator.run('rollback', id)).code, 1);
	assert.equal(outcome(await w.agent.call('db_withdraw', { change_id: id })), 'CHANGE_NOT_PENDING');
	await verified(w);
});

test('on a terminal: y commits, anything else does not', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w);
	for (const no of ['n\r', '\r', '1\r', 'commit\r', '\x04']) {
		const { code, screen } = await w.operator.talk(['commit', id], [[/Commit chg_\w+\? \[y\/N\] /, no]]);
		assert.equal(code, 1, screen);
		assert.match(screen, /stays pending/);
		assert.match(screen, /1 -> 0/, 'the diff was shown');
	}
	assert.equal(await a1(w), '1');
	const { code, screen } = await w.operator.talk(['commit', id], [[/\[y\/N\] /, 'y\r']]);
	assert.equal(code, 0, screen);
	assert.equal(await a1(w), '0');
});

test('at high risk the number of rows is typed', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w, 'UPDATE t SET a = -1');
	for (const wrong of ['y\r', '4\r', '400\r', '\r']) {
		const { code, screen } = await w.operator.talk(['commit', id], [[/number of rows that change: /, wrong]]);
		assert.equal(code, 1, screen);
	}
	assert.equal((await w.agent.status(id)).json.status, 'pending');
	const { code } = await w.operator.talk(['commit', id], [[/number of rows that change: /, '40\r']]);
	assert.equal(code, 0);
	assert.equal(await w.sql('SELECT sum(a) FROM t'), '-40');
});

test('a digest that has moved is refused, and the difference shown', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w);
	const { token } = await head(w, id);
	const more = await w.agent.execute('UPDATE t SET a = 77 WHERE id = 2', { change_id: id });
	assert.equal(outcome(more), 'pending');
	const old = await w.operator.run('commit', token);
	assert.equal(old.code, 1);
	assert.match(old.stderr, /no longer what the digest names[^]*2 -> 77/);

	const { code, screen } = await w.operator.talk(['commit', id], [[/\[y\/N\] /, async () => {
		assert.equal(outcome(await w.agent.execute('UPDATE t SET a = 88 WHERE id = 3', { change_id: id })), 'pending');
		return 'y\r';
	}]]);
	assert.equal(code, 1, screen);
	assert.match(screen, /has changed since it was shown[^]*what differs[^]*statements: 2 -> 3[^]*updated 2 -> 3[^]*3 -> 88/);
	assert.equal(await w.sql('SELECT sum(a) FROM t'), '820');
	await w.operator.commit(id);
	assert.equal(await w.sql('SELECT sum(a) FROM t'), String(820 - 1 + 75 + 85));
});

test('a commit by a token of before is told what has changed since', async t => {
	const w = await world(t, { setup: `${SHOP} CREATE TABLE log(n int, s text); CREATE TABLE far(n int);
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO far VALUES (1); RETURN NULL; END $$;
		CREATE TRIGGER f AFTER INSERT ON log FOR EACH ROW EXECUTE FUNCTION f();` });
	const id = await hold(w);
	const tokens = [(await head(w, id)).token];
	for (const [sql, ...params] of [['UPDATE t SET a = id WHERE id IN (1, 2)'],
		['INSERT INTO log VALUES (3, $1) -- \x1b[2J', 'x\x1b[31m'], ['DELETE FROM t WHERE id > 9']]) {
		assert.equal(outcome(await w.agent.execute(sql, { change_id: id, params })), 'pending');
		tokens.push((await head(w, id)).token);
	}
	const told = [];
	for (const token of tokens.slice(0, 3)) {
		const r = await w.operator.run('commit', token);
		assert.deepEqual([r.code, r.stdout], [1, '']);
		assert.match(r.stderr, /\(DIGEST_MOVED\)[^]*is no longer what the digest names[^]*it is now:\n/);
		assert.ok(r.stderr.trimEnd().endsWith(`\n${tokens[3]}`), 'the token to use now');
		assert.doesNotMatch(r.stderr, /\x1b/);
		told.push(r.stderr.slice(0, r.stderr.indexOf('it is now:')));
	}
	const lines = told.map(s => s.split('\n').filter(l => l.startsWith(' ')));
	const added = ['  added sql | UPDATE t SET a = id WHERE id IN (1, 2)',
		'  added sql | INSERT INTO log VALUES (3, $1) -- \\x1b[2J', '    $1 = "x\\x1b[31m"', '  added sql | DELETE FROM t WHERE id > 9'];
	const risk = lines[0][0], t1 = lines[0].find(l => l.includes('public.t:'));
	assert.match(risk, /^ {2}risk: low -> high$/);
	assert.deepEqual(lines[0].slice(1, 6), ['  statements: 1 -> 4', ...added]);
	assert.match(t1, /^ {2}table public\.t: inserted 0, updated 1 -> 0, deleted 0 -> 31, unchanged 0( -> \d)?$/);
	const log = '  table public.log (new): inserted 0 -> 1, updated 0, deleted 0, unchanged 0';
	const far = log.replace('log', 'far');
	assert.ok(lines[0].includes(log) && lines[0].includes(far), told[0]);
	assert.deepEqual(lines[1].slice(1, 5), ['  statements: 2 -> 4', ...added.slice(1)]);
	assert.deepEqual(lines[2].slice(1, 3), ['  statements: 3 -> 4', added[3]]);
	assert.ok(!told[2].includes('public.log') && !told[2].includes('public.far'), told[2]);

	const never = await w.operator.run('commit', `${id}@${'0'.repeat(64)}`);
	assert.deepEqual([never.code, never.stdout], [1, '']);
	assert.equal(never.stderr, `airlock: that never was the digest of ${id} (DIGEST_UNKNOWN)\n`);
	assert.equal((await w.operator.run('commit', tokens[3])).code, 0);
	assert.match((await w.operator.run('commit', tokens[0])).stderr, /ALREADY_DECIDED/);
});

test('of a change of many statements the first digests are forgotten, and that is said', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w);
	const first = (await head(w, id)).token;
	let second;
	for (let n = 0; n < 100; n++) {
		assert.equal(outcome(await w.agent.execute(`UPDATE t SET a = ${n} WHERE id = 1`, { change_id: id })), 'pending');
		second ??= (await head(w, id)).token;
	}
	const old = await w.operator.run('commit', first);
	assert.equal(old.code, 1);
	assert.equal(old.stderr, `airlock: that is not among the last digests of ${id} (DIGEST_UNKNOWN)\n`);
	assert.match((await w.operator.run('commit', second)).stderr, /statements: 2 -> 101/);
});

test('a rollback and its reason reach the agent, waiting or not', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w);
	const { told } = await wait(w, id);
	await w.operator.rollback(id, 'not on a \x1b[31mFriday');
	for (const { json } of [await told, await w.agent.status(id)]) {
		assert.deepEqual([json.status, json.why, json.reason], ['rolled_back', 'operator', 'not on a \x1b[31mFriday']);
		assert.match(json.message, /^NOT applied/);
	}
	assert.deepEqual(kinds(w, id), ['held', 'rolled_back']);
	assert.equal(await w.sql('SELECT count(*) FROM pg_locks WHERE relation = \'t\'::regclass'), '0');
	assert.equal(outcome(await w.agent.execute('UPDATE t SET a = 5 WHERE id = 2', { change_id: id })), 'CHANGE_NOT_PENDING');
	const short = await w.agent.status(await hold(w), { wait_s: 1 });
	assert.equal(short.json.status, 'pending', 'a wait ends too');
});

test('db_withdraw takes back a change of one\'s own', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w);
	const { told } = await wait(w, id);
	const gone = await w.agent.call('db_withdraw', { change_id: id, reason: 'mistaken' });
	assert.deepEqual([gone.json.status, gone.json.why], ['rolled_back', 'withdrawn']);
	assert.equal((await told).json.why, 'withdrawn');
	const r = await w.operator.run('commit', id + '@' + '0'.repeat(64));
	assert.equal(r.code, 1);
	assert.match(r.stderr, /rolled_back already: withdrawn/);
	assert.equal(await a1(w), '1');
});

test('the time to live rolls back by itself, and everybody is told', async t => {
	const w = await world(t, { setup: SHOP, args: ['--ttl', '2s'] });
	const from = Date.now();
	const id = await hold(w);
	const { token, expires_at } = await head(w, id);
	assert.ok(Math.abs(Date.parse(expires_at) - from - 2000) < 1500, expires_at);
	const { told } = await wait(w, id);
	assert.deepEqual([(await told).json.status, (await told).json.why], ['rolled_back', 'expired']);
	assert.ok(Date.now() - from >= 1900, 'not before its time');
	const record = w.daemon.journal().find(r => r.kind === 'rolled_back');
	assert.deepEqual([record.change, record.why], [id, 'expired']);
	assert.match((await w.operator.run('commit', token)).stderr, /expired/);
	const shown = await w.operator.run('show', id);
	assert.match(shown.stdout, /expired/);
	assert.equal(await a1(w), '1');
	// An addition does not make it live longer, and one under way ends with it.
	const next = await hold(w);
	const answer = await w.agent.execute(SLOW, { change_id: next });
	assert.equal(outcome(answer), 'CHANGE_NOT_PENDING', answer.text);
	await stopped(w, 'FROM slow');
	assert.equal((await w.agent.status(next)).json.why, 'expired');
	await verified(w);
});

const TWO = '[agent one]\naccess = data\n[agent two]\naccess = data\n';
const two = async (t, more = '') => {
	const w = await world(t, { setup: SHOP, config: `[airlock]\n${more}\n${TWO}`, name: 'one' });
	w.two = await w.connect({ name: 'two' });
	return w;
};

test('an agent sees its own changes alone, by any tool', async t => {
	const w = await two(t);
	const id = await hold(w);
	const other = await hold(w, 'UPDATE t SET a = 0 WHERE id = 2', { agent: w.two });
	for (const [agent, mine, theirs] of [[w.agent, id, other], [w.two, other, id]]) {
		for (const answer of [
			await agent.status(theirs),
			await agent.status(theirs, { wait_s: 5 }),
			await agent.call('db_withdraw', { change_id: theirs }),
			await agent.execute('UPDATE t SET a = 9 WHERE id = 9', { change_id: theirs }),
			await agent.query('SELECT 1', { change_id: theirs }),
		])
			assert.equal(outcome(answer), 'CHANGE_UNKNOWN', answer.text);
		const { text } = await agent.status();
		assert.ok(text.includes(mine) && !text.includes(theirs), text);
	}
	assert.deepEqual((await w.operator.pending()).map(c => [c.id, c.agent]), [[id, 'one'], [other, 'two']]);
	await w.operator.commit(other);
	assert.equal(outcome(await w.agent.status(other)), 'CHANGE_UNKNOWN', 'nor when it has ended');
	const unknown = await w.agent.status('chg_0123456789');
	const theirs = await w.agent.status(other);
	assert.equal(unknown.text.replace('chg_0123456789', other), theirs.text, 'nor that there is one');
});

test('changes are held at once, to a limit that says so', async t => {
	const w = await two(t, 'changes_max = 3\nagent_changes_max = 2');
	const row = (id, agent) => hold(w, `UPDATE t SET a = 0 WHERE id = ${id}`, { agent });
	const ids = [await row(1), await row(2)];
	const mine = await w.agent.execute('UPDATE t SET a = 0 WHERE id = 3');
	assert.equal(outcome(mine), 'TOO_MANY_CHANGES', mine.text);
	ids.push(await row(3, w.two));
	assert.equal(outcome(await w.two.execute('UPDATE t SET a = 0 WHERE id = 4')), 'TOO_MANY_CHANGES');
	assert.equal(outcome(await w.agent.execute('UPDATE t SET a = 0 WHERE id = 4', { change_id: ids[0] })), 'pending',
		'one that is held can be added to');
	assert.equal(outcome(await w.agent.query('SELECT 1')), 'rows', 'and reads go on');
	assert.deepEqual((await w.operator.pending()).map(c => c.id), ids);
	await w.operator.rollback(ids[0]);
	ids[0] = await row(4);
	for (const id of ids)
		await w.operator.commit(id);
	assert.equal(await w.sql('SELECT string_agg(id::text, \',\' ORDER BY id) FROM t WHERE a = 0'), '2,3,4');
});

test('an agent that goes away leaves its changes held', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w);
	const slow = w.raw();
	slow.send({ id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } } });
	await slow.answer(0);
	slow.send({ id: 1, method: 'tools/call', params: { name: 'db_status', arguments: { change_id: id, wait_s: 60 } } });
	await w.agent.close();
	slow.child.kill('SIGKILL');
	await w.operator.commit(id);
	assert.equal(await a1(w), '0');
	const back = await w.connect();
	assert.equal((await back.status(id)).json.status, 'committed');
});

const call = (name, args) => ({ method: 'tools/call', params: { name, arguments: args } });
async function rawly(w) {
	const raw = w.raw();
	raw.send({ id: 'i', method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } } });
	await raw.answer('i');
	raw.send({ method: 'notifications/initialized' });
	return raw;
}

test('a call that is cancelled stops in the server and leaves nothing', async t => {
	const w = await world(t, { setup: SHOP });
	for (const [tool, sql] of [['db_execute', SLOW], ['db_query', SLOW_READ]]) {
		for (const end of ['notification', 'eof', 'kill']) {
			const raw = await rawly(w);
			raw.send({ id: 7, ...call(tool, { sql }) });
			await atWork(w, 'FROM slow');
			if (end === 'notification')
				raw.send({ method: 'notifications/cancelled', params: { requestId: 7, reason: 'enough' } });
			else if (end === 'eof')
				raw.child.stdin.end();
			else
				raw.child.kill('SIGKILL');
			await stopped(w, 'FROM slow');
			if (end === 'notification') {
				assert.equal((await raw.tool('db_query', { sql: 'SELECT 1' })).error, false, 'the connection goes on');
				assert.ok(!raw.out.all.some(line => JSON.parse(line).id === 7), 'a cancelled call is not answered');
			}
			await ask(async () => await w.sql(`SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND state LIKE 'idle in transaction%'`) === '0', 'its transaction to be gone');
		}
	}
	assert.deepEqual(await w.operator.pending(), []);
	assert.deepEqual((await w.agent.status()).json.changes, []);
	assert.equal(await w.sql('SELECT sum(a) FROM t'), '820');
});

test('an added statement that is cancelled leaves the change as it was, each time', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w);
	const before = await w.operator.show(id);
	const raw = await rawly(w);
	for (const n of [1, 2, 3]) {
		raw.send({ id: n, ...call('db_execute', { sql: SLOW, change_id: id }) });
		await atWork(w, 'FROM slow');
		raw.send({ method: 'notifications/cancelled', params: { requestId: n } });
		await stopped(w, 'FROM slow');
		await ask(async () => outcome(await w.agent.query('SELECT 1', { change_id: id })) === 'rows', 'the change to be held again');
	}
	for (const n of [11, 12]) {
		raw.send({ id: n, ...call('db_query', { sql: SLOW_READ, change_id: id }) });
		await atWork(w, 'FROM slow');
		raw.send({ method: 'notifications/cancelled', params: { requestId: n } });
		await stopped(w, 'FROM slow');
		await ask(async () => outcome(await w.agent.query('SELECT 1', { change_id: id })) === 'rows', 'the change to be held again');
	}
	const { head: now, rows } = await w.operator.show(id);
	assert.deepEqual([now, rows], [before.head, before.rows]);
	const added = await w.agent.execute('UPDATE t SET a = 0 WHERE id = 2', { change_id: id });
	assert.equal(outcome(added), 'pending', added.text);
	await w.operator.commit(id);
	assert.equal(await w.sql('SELECT string_agg(id::text, \',\' ORDER BY id) FROM t WHERE a = 0'), '1,2');
	await verified(w);
});

test('while a statement is added a commit is refused, and a rollback stops it', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w);
	const { token } = await head(w, id);
	const adding = w.agent.execute(SLOW, { change_id: id });
	await atWork(w, 'FROM slow');
	const refused = await w.operator.run('commit', token);
	assert.equal(refused.code, 1);
	assert.match(refused.stderr, /being added/);
	assert.equal(outcome(await w.agent.call('db_withdraw', { change_id: id })), 'CHANGE_BUSY');
	await w.operator.rollback(id, 'no more');
	assert.equal(outcome(await adding), 'CHANGE_NOT_PENDING');
	await stopped(w, 'FROM slow');
	const { json } = await w.agent.status(id);
	assert.deepEqual([json.status, json.why, json.reason], ['rolled_back', 'operator', 'no more']);

	const read = await hold(w);
	const reading = w.agent.query(SLOW_READ, { change_id: read });
	await atWork(w, 'FROM slow');
	await w.operator.rollback(read);
	assert.equal(outcome(await reading), 'CHANGE_NOT_PENDING');
	await stopped(w, 'FROM slow');
	assert.equal(await w.sql('SELECT sum(a) FROM t'), '820');
});

test('airlock log shows, picks and checks; exit codes say how it went', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w, ONE, { intent: 'tidy up' });
	await hold(w, 'UPDATE t SET a = 0 WHERE id = 2');
	await w.agent.execute('VACUUM');
	await w.operator.commit(id);
	const all = await w.operator.json('log');
	assert.deepEqual(all.map(r => r.seq), all.map((_, i) => i + 1));
	assert.deepEqual(all, w.daemon.journal().slice(0, all.length));
	const about = await w.operator.json('log', '--change', id);
	assert.deepEqual(about.map(r => r.kind), ['held', 'intent', 'committed']);
	assert.equal(about[0].intent, 'tidy up');
	const text = await w.operator.run('log');
	assert.match(text.stdout, /tidy up|UPDATE t/);
	assert.match(text.stdout, /VACUUM/);
	const check = await w.operator.json('log', '--verify');
	assert.ok(JSON.stringify(check).match(/"records":\d+/), JSON.stringify(check));
	for (const [code, ...words] of [
		[0, 'ping'], [0, 'status'], [0, 'version'], [0, 'agents'],
		[1, 'show', 'chg_0123456789'], [1, 'rollback', 'chg_0123456789'],
		[2, 'show', 'latest'], [2, 'frobnicate'],
	])
		assert.equal((await w.operator.run(...words)).code, code, words.join(' '));
	assert.equal((await withoutTerminal(w.daemon, 'pending')).code, 4);
	const nobody = new Operator({ state: '/nonexistent' });
	assert.equal((await nobody.run('pending')).code, 3);
});

test('a role that is not enough is denied, and journaled', async t => {
	const me = user.name;
	for (const [operators, decides] of [
		[`[operator eve]\nuser = ${me}\nrole = view\n`, 4],
		[`[operator dan]\nuser = ${me}\nrole = decide\n`, 0],
		[`[operator ann]\nuser = ${me}\nrole = admin\n`, 0],
	]) {
		const w = await world(t, { setup: SHOP, config: `[agent agent]\naccess = data\n${operators}` });
		const id = await hold(w);
		assert.equal((await w.operator.run('ping')).code, 0);
		for (const words of [['pending'], ['show', id], ['log'], ['agents']])
			assert.equal((await w.operator.run(...words)).code, 0, `${operators} ${words}`);
		const { digest } = w.daemon.journal().find(r => r.change === id);
		const r = await w.operator.run('commit', `${id}@${digest}`);
		assert.equal(r.code, decides, r.stderr);
		if (decides === 4) {
			assert.equal((await w.operator.run('rollback', id)).code, 4);
			assert.equal((await w.agent.status(id)).json.status, 'pending');
			const denied = w.daemon.journal().filter(x => x.kind === 'denied');
			assert.deepEqual(denied.slice(-2).map(x => x.verb), ['commit', 'rollback']);
		} else {
			const [, name] = /operator (\w+)/.exec(operators);
			assert.equal(w.daemon.journal().find(x => x.kind === 'committed').operator, name);
		}
		const status = await w.operator.json('status');
		assert.ok('logins' in status);
	}
});
