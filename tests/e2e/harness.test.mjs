// harness: what every other test stands on does what it says
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { APP, cluster, Cluster, release } from './lib/cluster.mjs';
import { terminal } from './lib/operator.mjs';
import { isRoot, run, scratch, user } from './lib/place.mjs';
import { Lines, within } from './lib/wait.mjs';
import { PassThrough } from 'node:stream';

after(release);

test('programs run as an ordinary user, in a session of their own', async () => {
	const { stdout } = await run('sh', ['-c', 'id -u; ps -o pid=,sid= -p $$']);
	const [uid, ids] = stdout.split('\n');
	assert.notEqual(uid, '0');
	if (isRoot)
		assert.equal(Number(uid), user.ids.uid);
	const [pid, sid] = ids.trim().split(/\s+/);
	assert.equal(pid, sid);
});

test('each test has a database of its own', async () => {
	const c = await cluster();
	const one = await c.database('CREATE TABLE t(a int); INSERT INTO t VALUES (1), (2)');
	const two = await c.database('', { from: one });
	assert.equal(await c.sql(one, 'DELETE FROM t WHERE a = 1; SELECT count(*) FROM t'), '1');
	assert.equal(await c.sql(two, 'SELECT count(*), max(a) FROM t'), '2|2');
});

test('airlockd\'s login writes every table, owns none, and is no superuser', async () => {
	const c = await cluster();
	const db = await c.database('CREATE SCHEMA s; CREATE TABLE s.t(a serial)');
	assert.equal(await c.sql(db, `INSERT INTO s.t DEFAULT VALUES;
		SELECT current_user, a FROM s.t`, { role: APP }), `${APP}|1`);
	await assert.rejects(c.sql(db, 'DROP TABLE s.t', { role: APP }), /must be owner/);
	assert.equal(await c.sql(db, `SELECT rolsuper FROM pg_roles WHERE rolname = '${APP}'`), 'f');
});

test('a cluster keeps what was committed when it crashes', async () => {
	const c = await Cluster.start();
	try {
		await c.sql('postgres', 'CREATE TABLE t AS SELECT 1 AS a');
		await c.restart('immediate');
		assert.equal(await c.sql('postgres', 'SELECT a FROM t'), '1');
		assert.equal(await c.sql('postgres', 'SHOW fsync; SHOW listen_addresses'), 'on\n');
	} finally {
		await c.stop();
	}
});

test('lines are waited for, seen already or to come, and an end is told', async () => {
	const stream = new PassThrough();
	const lines = new Lines(stream);
	stream.write('one\ntw');
	assert.equal(await lines.until(/one/), 'one');
	const two = lines.until(/^two$/);
	stream.write('o\n');
	assert.equal(await two, 'two');
	await assert.rejects(lines.until(/three/, { ms: 5 }), /not within 5 ms/);
	const never = lines.until(/three/);
	stream.destroy();
	await assert.rejects(never, /ended/);
	await assert.rejects(within(5, new Promise(() => {}), 'it'), /not within 5 ms: it/);
});

test('an operator leads a session on a terminal that a root process, or tmux, made', async () => {
	const place = () => ({ home: scratch(), env: { WHO: 'an operator' } });
	const r = await terminal.run(['sh', '-c', `echo "$WHO"; id -u; tty; ps -o sid= -p $$
		ps -o uid=,comm= -p $(ps -o ppid= -p $(ps -o sid= -p $$)); exit 3`], place());
	const [who, uid, tty, sid, parent] = r.stdout.split('\n').map(s => s.trim());
	assert.deepEqual([r.code, r.stderr, who], [3, '', 'an operator']);
	assert.notEqual(uid, '0');
	assert.match(tty, /^\/dev\/pts\//);
	assert.ok(Number(sid) > 1);
	assert.match(parent, isRoot ? /^0 / : /tmux/);
});

test('an operator types what a terminal asks for', async () => {
	const r = await terminal.talk(['sh', '-c',
		'printf "name? "; read a; printf "again? "; read b; echo "[$a,$b]"; exit 4'],
	[[/name\? $/, 'x y\n'], [/again\? $/, 'z\n']], { home: scratch() });
	assert.equal(r.code, 4);
	assert.match(r.screen, /\[x y,z\]/);
});
