// daemon: airlockd while the database, its peers and its own child misbehave
import assert from 'node:assert/strict';
import { closeSync, constants, openSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { bindir, Cluster, cluster } from './lib/cluster.mjs';
import { Daemon } from './lib/daemon.mjs';
import { terminal } from './lib/operator.mjs';
import { program, run, scratch, start, tests, user, writeFor } from './lib/place.mjs';
import { Proxy } from './lib/proxy.mjs';
import { ask, exited, Lines } from './lib/wait.mjs';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const SHOP = `
	CREATE TABLE t(id int PRIMARY KEY, a int);
	INSERT INTO t SELECT g, g FROM generate_series(1, 10) g;`;
const ONE = 'UPDATE t SET a = 0 WHERE id = 1';
const nowhere = { dir: '/nonexistent', port: 5432 };

async function hold(w, sql = ONE, { agent = w.agent, ...more } = {}) {
	const answer = await agent.execute(sql, more);
	assert.equal(outcome(answer), 'pending', answer.text);
	return answer.json.change_id;
}

async function through(t, { aim, ...more } = {}) {
	const c = more.cluster ?? await cluster();
	const proxy = await Proxy.start(aim ?? c);
	proxy.on = more.on ?? proxy.on;
	const w = await world(t, { setup: SHOP, cluster: c, url: x => proxy.url(x.database), ...more });
	t.after(() => proxy.close());
	return Object.assign(w, { proxy });
}

const health = async w => w.operator.json('status');
const up = w => ask(async () => (await health(w)).database === 'up', 'the database to be up');
const down = w => ask(async () => (await health(w)).database === 'down', 'the database to be down');
const why = async w => (await health(w)).logins[0].why;
const backends = w => w.sql(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
	AND pid <> pg_backend_pid() AND application_name LIKE 'airlock%'`);
const gone = w => ask(async () => await backends(w) === '0', 'its backends to be gone');

test('the database is down at the start, comes, goes and comes back', async t => {
	const w = await through(t, { aim: nowhere });
	for (const answer of [await w.agent.query('SELECT 1'), await w.agent.execute(ONE), await w.agent.call('db_schema')])
		assert.equal(outcome(answer), 'DATABASE_DOWN', answer.text);
	assert.equal((await w.agent.status()).json.database.database, 'down');
	w.proxy.aim(w.cluster);
	await up(w);
	assert.equal(outcome(await w.agent.query('SELECT 1')), 'rows');
	const id = await hold(w);
	w.proxy.aim(nowhere);
	for (const c of w.proxy.connections)
		c.cut();
	await down(w);
	assert.equal((await w.agent.status(id)).json.why, 'lost');
	assert.equal(outcome(await w.agent.query('SELECT 1')), 'DATABASE_DOWN');
	w.proxy.aim(w.cluster);
	await up(w);
	await w.operator.commit(await hold(w));
	assert.equal(await w.sql('SELECT a FROM t WHERE id = 1'), '0');
	const lines = w.daemon.log.all.filter(l => /database/.test(l));
	assert.ok(lines.length < 10, `it is not said again and again:\n${lines.join('\n')}`);
});

test('a standby is refused with the reason, until it is promoted', async t => {
	const c = await Cluster.start();
	const database = await c.database(SHOP);
	await c.stop('fast');
	writeFor(c.data, 'standby.signal', '');
	const standby = start(join(bindir, 'postgres'), ['-D', c.data], { home: c.dir, last: 'SIGQUIT' });
	await new Lines(standby.stderr).until(/ready to accept read-only connections/);
	const w = await world(t, { cluster: Object.assign(Object.create(Cluster.prototype), c, { database: () => database }) });
	t.after(() => standby.kill('SIGQUIT'));
	await down(w);
	await ask(async () => /standby/.test(await why(w)), 'the reason');
	assert.match((await w.agent.execute(ONE)).text, /DATABASE_DOWN.*standby/);
	await c.sql('postgres', 'SELECT pg_promote()');
	await up(w);
	await w.operator.commit(await hold(w));
	const intent = w.daemon.journal().find(r => r.kind === 'intent');
	assert.equal(intent.timeline, '2', 'the new one, though no checkpoint has told of it');
});

test('a pooler in between is refused with the reason', async t => {
	const w = await through(t, {
		on: m => {
			const other = Buffer.from(m.bytes);
			if (m.from === 'server' && m.type === 'K')
				other.writeUInt32BE(1, 5);
			// It keeps some settings to itself, so that what needs them fails.
			const at = m.from === 'client' && m.type === 'P' ? other.indexOf('EXPLAIN EXECUTE') : -1;
			if (at !== -1)
				other.write('EXPLAIN EXECUTF', at);
			return other;
		},
	});
	await down(w);
	await ask(async () => /pooler/.test(await why(w)), 'the reason');
	assert.match((await w.agent.query('SELECT 1')).text, /DATABASE_DOWN.*pooler/);
});

test('SIGTERM rolls back what is held, tells everybody, and leaves nothing', async t => {
	const w = await world(t, { setup: `${SHOP} CREATE VIEW slow AS SELECT 9 AS n FROM (SELECT max(g) AS m FROM (SELECT generate_series(1::bigint, 100000000000) AS g) x) y WHERE m > 0;` });
	const ids = [await hold(w), await hold(w, 'UPDATE t SET a = 0 WHERE id = 2')];
	const names = await w.sql(`SELECT string_agg(application_name, ',' ORDER BY application_name) FROM pg_stat_activity
		WHERE datname = current_database() AND state = 'idle in transaction'`);
	assert.equal(names, ids.map(id => `airlock: agent ${id}`).sort().join(','));
	const told = w.agent.status(ids[0], { wait_s: 30 });
	const slow = w.agent.execute('UPDATE t SET a = 0 WHERE id IN (SELECT n FROM slow)', { change_id: ids[1] }).catch(e => e);
	await ask(async () => await w.sql(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
		AND query LIKE '%FROM slow%' AND pid <> pg_backend_pid()`) === '1', 'the statement to run');
	await w.daemon.stop();
	assert.deepEqual([(await told).json.status, (await told).json.why], ['rolled_back', 'shutdown']);
	await slow;
	const ends = w.daemon.journal().filter(r => r.kind === 'rolled_back');
	assert.deepEqual(ends.map(r => [r.change, r.why]), ids.map(id => [id, 'shutdown']));
	assert.equal(w.daemon.journal().at(-1).kind, 'stop');
	await gone(w);
	await w.daemon.launch();
	w.agent = await w.connect();
	assert.equal((await w.agent.status(ids[0])).json.why, 'shutdown');
});

test('stopped while a commit waits for its beacon: rolled back, not half done', async t => {
	const w = await through(t);
	const id = await hold(w);
	const at = w.proxy.meet(m => m.from === 'client' && m.type === 'P' && /flush_lsn|emit_message/.test(m.link.sql.at(-1)), 'stall');
	const commit = w.operator.run('commit', (await w.operator.pending())[0].token);
	const control = await at;
	w.daemon.signal('SIGTERM');
	await w.daemon.log.until(/stopping/);
	control.cut();
	assert.deepEqual(await exited(w.daemon.child), { code: 0, signal: null });
	assert.notEqual((await commit).code, 0);
	assert.deepEqual(w.daemon.journal().filter(r => r.change === id).map(r => [r.kind, r.why]),
		[['held', undefined], ['rolled_back', 'shutdown']]);
	assert.equal(await w.sql('SELECT a FROM t WHERE id = 1'), '1');
});

test('SIGHUP takes new limits; a file with an error changes nothing', async t => {
	const file = more => `[airlock]\n${more}\n[agent agent]\naccess = data\n`;
	const w = await world(t, { setup: SHOP, config: file('changes_max = 1') });
	const id = await hold(w);
	const other = 'UPDATE t SET a = 0 WHERE id = 2';
	assert.equal(outcome(await w.agent.execute(other)), 'TOO_MANY_CHANGES');
	const reload = async (text, says) => {
		writeFor(w.daemon.home, 'airlockd.conf', text);
		const from = w.daemon.log.all.length;
		w.daemon.signal('SIGHUP');
		await w.daemon.log.until(says, { from });
	};
	await reload(file('changes_max = two'), /not reloaded: .*changes_max/);
	assert.equal(outcome(await w.agent.execute(other)), 'TOO_MANY_CHANGES');
	await reload(file('changes_max = 2\nttl = 5m'), /reloaded: 2 keys changed/);
	await hold(w, other);
	await reload(file('changes_max = 2\nttl = 5m\nparser_deadline = 3s'), /waits for a restart: .*parser_deadline/);
	await w.operator.commit(id);
});

// What systemd listens on; Node has no datagrams on a path, perl is in every Debian.
const MANAGER = `socket(S, PF_UNIX, SOCK_DGRAM, 0) && bind(S, sockaddr_un($ARGV[0])) or die $!;
	$| = 1; print "bound\\n"; print "$m\\n" while defined recv(S, $m, 4096, 0);`;

test('a service manager is told READY once it is so, and STOPPING', async t => {
	const c = await cluster(), path = join(scratch(), 'notify');
	const manager = start('perl', ['-MSocket', '-e', MANAGER, path]), told = new Lines(manager.stdout);
	t.after(() => manager.kill());
	await told.until(/bound/);
	const d = await Daemon.start({ db: c.url(await c.database(SHOP)), env: { NOTIFY_SOCKET: path } });
	await told.until(/^READY=1$/);
	await d.stop();
	await told.until(/^STOPPING=1$/);
	assert.deepEqual(told.all.filter(Boolean), ['bound', 'READY=1', 'STOPPING=1']);
});

test('one daemon a state directory', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w);
	const second = await run(program('airlockd'), w.daemon.args, { home: w.daemon.home });
	assert.notEqual(second.code, 0);
	assert.match(second.stderr, /another airlockd|in use|locked/i);
	await w.operator.commit(id);
});

test('a parser that is killed costs one statement at most', async t => {
	const w = await world(t, { setup: SHOP, config: '[airlock]\nparser_deadline = 20s\n[agent one]\n[agent two]\n', name: 'one' });
	const two = await w.connect({ name: 'two' });
	const parser = async () => (await health(w)).parser_pid;
	for (let i = 0; i < 3; i++) {
		const pid = await parser();
		process.kill(pid, 'SIGKILL');
		await ask(async () => ![0, pid].includes(await parser()), 'another child');
		assert.equal(outcome(await w.agent.query('SELECT 1')), 'rows');
	}
	const id = await hold(w);
	const pid = await parser();
	process.kill(pid, 'SIGSTOP');
	const busy = w.agent.execute('UPDATE t SET a = 0 WHERE id = 2', { change_id: id });
	await ask(async () => (await w.operator.json('agents'))[0].calls > 0, 'the statement to be with it');
	const others = [two.query('SELECT 2'), two.execute('UPDATE t SET a = 0 WHERE id = 3')];
	await ask(async () => (await w.operator.json('agents'))[1].calls === 2, 'others to wait');
	process.kill(pid, 'SIGKILL');
	assert.equal(outcome(await busy), 'STATEMENT_TOO_COMPLEX');
	assert.deepEqual((await Promise.all(others)).map(outcome), ['rows', 'pending']);
	await w.operator.commit(id);
	assert.equal(await w.sql('SELECT string_agg(id::text, \',\') FROM t WHERE a = 0'), '1');
});

async function rawly(w, name) {
	const raw = w.raw({ through: 'socket', name });
	raw.send({ id: 'i', method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } } });
	await raw.answer('i');
	return raw;
}

test('an agent that stops reading waits alone', async t => {
	const w = await world(t, { setup: SHOP, config: '[agent one]\n[agent two]\n', name: 'two' });
	const raw = await rawly(w, 'one');
	raw.child.stdout.pause();
	const n = 300;
	for (let id = 1; id <= n; id++)
		raw.send({ id, method: 'tools/call', params: { name: 'db_query', arguments: { sql: `SELECT repeat('x', 900) FROM generate_series(1, 40)` } } });
	for (let i = 0; i < 5; i++)
		assert.equal(outcome(await w.agent.query('SELECT 1')), 'rows');
	await w.operator.commit(await hold(w));
	const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${w.daemon.pid}/status`, 'utf8'))[1]);
	const size = Number(readFileSync(`/proc/${w.daemon.pid}/statm`, 'utf8').split(' ')[0]) * 4096;
	if (size < 2 ** 40) // the shadow of ASan is larger
		assert.ok(rss < 64 * 1024, `${rss} kB`);
	raw.child.stdout.resume();
	for (let id = 1; id <= n; id++)
		assert.ok((await raw.answer(id, 30000)).result, `call ${id} is answered`);
});

test('an operator that stops reading a large change is in nobody\'s way', async t => {
	const w = await world(t, { setup: `${SHOP} CREATE TABLE big(id int PRIMARY KEY, v text);
		INSERT INTO big SELECT g, repeat('v', 50) FROM generate_series(1, 60000) g;` });
	const id = await hold(w, 'UPDATE big SET v = v || id');
	const home = scratch('alko-');
	const fifo = join(home, 'fifo');
	execFileSync('mkfifo', ['-m', '666', fifo]);
	const fd = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
	t.after(() => closeSync(fd));
	const show = terminal.run(['sh', '-c', `exec "$0" --state-dir "$1" show ${id} --json >fifo`, program('airlock'), w.daemon.state], { home });
	const piece = Buffer.alloc(65536);
	const read = () => {
		try {
			return readSync(fd, piece, 0, piece.length);
		} catch (e) {
			if (e.code !== 'EAGAIN')
				throw e;
			return 0;
		}
	};
	await ask(() => read() > 0, 'the first rows');
	const other = await hold(w);
	await w.operator.commit(other);
	await w.operator.rollback(id, 'too much');
	assert.equal((await w.agent.status(id)).json.why, 'operator');
	let over = false;
	show.finally(() => { over = true; }).catch(() => {});
	await ask(() => {
		while (read() > 0);
		return over;
	}, 'the reader to be told');
	const { code, stderr } = await show;
	assert.equal(code, 1, stderr);
	assert.match(stderr, /decided or added to/);
	assert.equal(await w.sql('SELECT max(length(v)) FROM big'), '50');
});

test('half messages hold up nobody', async t => {
	const w = await world(t, { setup: SHOP });
	const halves = ['{"jsonrpc":"2.0","id":1,"method":', '{', '[', '{"a":"\\', '\xff'];
	const raws = [];
	for (const half of halves) {
		const raw = w.raw({ through: 'socket' });
		raw.write(half);
		raws.push(raw);
	}
	const control = ['', '{"airlock":1,"nonce":"'].map(half => {
		const child = start(process.execPath, [join(tests, 'e2e/lib/relay.mjs'), join(w.daemon.state, 'run/control.sock')],
			{ home: scratch('alkc-'), stdio: ['pipe', 'pipe', 'pipe'] });
		child.stdin.write(half);
		return child;
	});
	await Promise.all(control.map(child => new Lines(child.stdout).until(/nonce/)));
	await w.operator.commit(await hold(w));
	for (const raw of raws)
		raw.child.kill('SIGKILL');
	for (const child of control)
		child.kill('SIGKILL');
	assert.equal(outcome(await w.agent.query('SELECT 1')), 'rows');
});

test('what a function sets does not outlast its statement', async t => {
	const w = await world(t, {
		setup: `${SHOP} CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			PERFORM set_config('idle_in_transaction_session_timeout', '0', true),
				set_config('synchronous_commit', 'off', true), set_config('search_path', 'evil', true),
				set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true),
				set_config('application_name', 'x', true), set_config('TimeZone', 'Asia/Tokyo', true),
				set_config('DateStyle', 'SQL', false), set_config('bytea_output', 'escape', false);
			RETURN NEW; END $$;
			CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f();`,
	});
	const id = await hold(w);
	const settings = ['idle_in_transaction_session_timeout', 'synchronous_commit', 'search_path', 'statement_timeout', 'lock_timeout',
		'application_name', 'timezone', 'datestyle', 'bytea_output'];
	const sql = `SELECT ${settings.map(s => `current_setting('${s}')`)}`;
	const pinned = ['', 'on', '"$user", public, pg_temp', '30s', '2s', `airlock: agent ${id}`, 'UTC', 'ISO, MDY', 'hex'];
	for (let i = 0; i < 2; i++) {
		const { rows: [row] } = (await w.agent.query(sql, { change_id: id })).json;
		const idle = /^(\d+)(ms|s|min)$/.exec(row[0]);
		const seconds = Number(idle[1]) * { ms: 0.001, s: 1, min: 60 }[idle[2]];
		assert.ok(seconds > 600 && seconds <= 630, row[0]);
		assert.deepEqual(row.slice(1), pinned.slice(1));
		assert.equal(outcome(await w.agent.execute('UPDATE t SET a = 3 WHERE id = 3', { change_id: id })), 'pending');
	}
	await w.operator.commit(id);
	for (let i = 0; i < 6; i++) // whichever link it is
		assert.deepEqual((await w.agent.query(`SELECT ${settings.slice(6).map(s => `current_setting('${s}')`)}`)).json.rows,
			[pinned.slice(6)]);
});

test('a stopped airlockd holds nothing for ever: the server ends it', async t => {
	const w = await world(t, { setup: SHOP, args: ['--ttl', '1s'] });
	const id = await hold(w);
	w.daemon.signal('SIGSTOP');
	const from = Date.now();
	await ask(async () => {
		await w.sql('SELECT pg_sleep(0.2)');
		return await w.sql('SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE \'idle in tr%\'') === '0';
	}, 'the transaction to be ended', 40000);
	assert.ok(Date.now() - from > 25000, 'not before its time');
	w.daemon.signal('SIGCONT');
	await ask(async () => (await w.agent.status(id)).json.status === 'rolled_back', 'its end');
	assert.match((await w.agent.status(id)).json.why, /expired|lost/);
	assert.equal(await w.sql('SELECT a FROM t WHERE id = 1'), '1');
});

test('a role with two connections holds one change, and says so of a second', async t => {
	const c = await cluster();
	const role = `two_${process.pid}`;
	await c.sql('postgres', `CREATE ROLE ${role} LOGIN CONNECTION LIMIT 2; GRANT pg_read_all_data, pg_write_all_data TO ${role}`);
	const w = await world(t, { setup: SHOP, role });
	for (let i = 0; i < 3; i++) {
		const id = await hold(w);
		const second = await w.agent.execute('UPDATE t SET a = 0 WHERE id = 2');
		assert.equal(outcome(second), 'TOO_MANY_CHANGES', second.text);
		assert.match((await w.agent.query('SELECT 1')).text, /TOO_MANY_CHANGES|\[\["1"\]\]/);
		assert.equal((await w.agent.status(id)).json.status, 'pending');
		await (i === 1 ? w.operator.rollback(id) : w.operator.commit(id));
	}
	assert.equal(outcome(await w.agent.query('SELECT 1')), 'rows');
});

test('the control link goes while a change is held: the change stays', async t => {
	const w = await world(t, { setup: SHOP });
	const id = await hold(w);
	await w.sql('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = \'airlock: control\'');
	await w.daemon.log.until(/database .*(terminat|closed)/i);
	await up(w);
	assert.equal(outcome(await w.agent.execute('UPDATE t SET a = 0 WHERE id = 2', { change_id: id })), 'pending');
	await w.operator.commit(id);
	assert.equal(await w.sql('SELECT count(*) FROM t WHERE a = 0'), '2');
});

test('a call that is cancelled while the catalog is asked is forgotten', async t => {
	for (const how of ['cancel', 'eof']) {
		const w = await through(t);
		const raw = await rawly(w);
		const at = w.proxy.meet(m => m.from === 'client' && m.type === 'P' && m.link.sql.at(-1).includes('c.relhassubclass'), 'stall');
		raw.send({ id: 1, method: 'tools/call', params: { name: 'db_execute', arguments: { sql: ONE } } });
		const control = await at;
		if (how === 'cancel') {
			raw.send({ method: 'notifications/cancelled', params: { requestId: 1 } });
			raw.send({ id: 2, method: 'ping' });
			await raw.answer(2);
		} else {
			await raw.close();
		}
		await ask(async () => (await w.operator.json('agents'))[0].calls === 0, 'the call to be over');
		control.release();
		await hold(w);
	}
});

test('db_status lists what is not decided, and the last 20 of what is', async t => {
	const w = await world(t, { setup: SHOP });
	const held = await hold(w, 'UPDATE t SET a = 0 WHERE id = 2'), ended = [];
	for (let i = 0; i < 22; i++) {
		ended.push(await hold(w));
		await w.agent.call('db_withdraw', { change_id: ended.at(-1) });
	}
	const { json } = await w.agent.status();
	assert.deepEqual(json.changes.map(c => c.change_id), [held, ...ended.slice(-20)]);
	assert.equal(json.older_ended, 2);
	assert.equal((await w.agent.status(ended[0])).json.why, 'withdrawn');
});

test('the oldest of many ended changes are still answered for', { skip: !process.env.AIRLOCK_LONG && 'long: AIRLOCK_LONG=1' }, async t => {
	const w = await world(t, { setup: SHOP });
	const oldest = await hold(w, 'UPDATE t SET a = 5 WHERE id = 5');
	let first;
	for (let i = 0; i < 1005; i++) {
		const id = await hold(w);
		first ??= id;
		await w.agent.call('db_withdraw', { change_id: id });
	}
	await w.operator.commit(oldest);
	assert.equal((await w.agent.status(oldest)).json.status, 'committed');
	assert.equal((await w.agent.status(first)).json.why, 'withdrawn');
});
