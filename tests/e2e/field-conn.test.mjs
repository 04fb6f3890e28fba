// field-conn: field cases about connections to the database and their ends
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { load } from './lib/cases.mjs';
import { Cluster, cluster } from './lib/cluster.mjs';
import { Daemon } from './lib/daemon.mjs';
import { program, run, scratch } from './lib/place.mjs';
import { ask, within } from './lib/wait.mjs';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const find = id => load('field').find(c => c.id === id);

test('F085: the server\'s idle timeout does not end a held change', async t => {
	const c = find('F085');
	const w = await world(t, { setup: c.setup });
	const { json, text } = await w.agent.execute(c.agent_sql);
	assert.equal(json?.status, 'pending', text);
	await w.sql('SELECT pg_sleep(2.5)'); // longer than the database's timeout
	const ended = await w.operator.commit(json.change_id);
	assert.equal(ended.code, 0);
	assert.equal((await w.agent.status(json.change_id)).json.status, 'committed');
	assert.equal(await w.sql('SELECT balance FROM accounts WHERE id = 1'), '0.00');
});

test('F088: a role with few connections is told so, and gets them back', async t => {
	const c = find('F088');
	const w = await world(t, { setup: c.setup, role: 'f_lim' });
	const answers = [];
	for (const sql of c.agent_sql)
		answers.push(await w.agent.execute(sql));
	const held = answers.filter(a => outcome(a) === 'pending');
	const refused = answers.filter(a => a.error);
	assert.ok(refused.length > 0, answers.map(a => a.text).join('\n'));
	for (const { text } of refused)
		assert.match(text, /too many|connection|TOO_MANY_CHANGES/i);
	const read = await w.agent.query('SELECT 1');
	assert.ok(outcome(read) === 'rows' || /connection/i.test(read.text), read.text);
	if (held.length > 0) {
		await w.operator.rollback(held[0].json.change_id);
		assert.equal(outcome(await w.agent.execute('INSERT INTO lim VALUES (9)')), 'pending');
	}
	await w.daemon.stop();
	await ask(async () => await w.sql('SELECT count(*) FROM pg_stat_activity WHERE usename = \'f_lim\'') === '0',
		'the connections to be gone');
});

test('F091: a second write to the same row names the change in its way', async t => {
	const c = find('F091');
	const w = await world(t, { setup: c.setup });
	const first = await w.agent.execute(c.agent_sql[0]);
	const second = await w.agent.execute(c.agent_sql[1]);
	assert.equal(outcome(second), '55P03', second.text);
	assert.ok(second.text.includes(first.json.change_id), second.text);
	assert.equal((await w.agent.status(first.json.change_id)).json.status, 'pending');
	await w.operator.commit(first.json.change_id);
	assert.equal(outcome(await w.agent.execute(c.agent_sql[1])), 'pending');
});

// A read through a daemon on this connection string: its only value.
async function value(t, w, db, sql) {
	const d = await world(t, { cluster: w.cluster, url: () => db });
	const answer = await d.agent.query(sql);
	assert.equal(outcome(answer), 'rows', `${db}: ${answer.text}`);
	return String(answer.json.rows[0][0]);
}

// Passwords are asked for of f_pw and f_pct (see Cluster.start).
for (const [id, role, password] of [['F093', 'f_pw', 'p@ss/w:rd#%?&+ "x'], ['F094', 'f_pct', '100%r']])
	test(`${id}: a password of any characters, in a URL and in the key = value form`, async t => {
		const c = find(id);
		const shared = await cluster();
		const w = { cluster: shared, database: await shared.database(c.setup) };
		const url = w.cluster.url(w.database, role, password);
		assert.equal(await value(t, w, url, c.agent_sql), role);
		assert.equal(await value(t, w, `${w.cluster.conninfo(w.database, role)} password='${password}'`,
			c.agent_sql), role);

		const wrong = await world(t, { url: () => w.cluster.url(w.database, role, 'not it') });
		const answer = await wrong.agent.query(c.agent_sql);
		assert.ok(answer.error);
		assert.ok(!`${answer.text}${wrong.daemon.log.text()}`.includes('not it'));

		if (id === 'F094') {
			const home = scratch();
			const r = await within(20000, run(program('airlockd'),
				['--db', url.replace('%25', '%'), '--state-dir', `${home}/state`], { home }), 'airlockd to refuse');
			assert.notEqual(r.code, 0);
			assert.match(r.stderr, /percent-encod/);
			assert.ok(!r.stderr.includes('100%r'));
		}
	});

test('F095: a socket directory in each of libpq\'s ways', async t => {
	const { cluster: { dir, port }, database } = await world(t);
	const encoded = encodeURIComponent(dir);
	const w = { cluster: await cluster() };
	for (const db of [`postgresql:///${database}?host=${dir}&port=${port}&user=app`,
		`postgresql://app@${encoded}:${port}/${database}`,
		`host=${dir} port=${port} dbname=${database} user=app`])
		assert.equal(await value(t, w, db, find('F095').agent_sql), 't');
});

test('F096: a connection that must be encrypted never falls back to plain text', async t => {
	const port = 20000 + process.pid % 20000;
	const own = await Cluster.start({ tcp: port });
	t.after(() => own.stop());
	for (const [mode, says] of [['require', /SSL/], ['verify-full', /root certificate|SSL/]]) {
		const d = await Daemon.start({ db: `postgresql://app@127.0.0.1:${port}/postgres?sslmode=${mode}` });
		await d.log.until(says);
		assert.equal(await own.sql('postgres', 'SELECT count(*) FROM pg_stat_activity WHERE usename = \'app\''), '0');
		await d.stop();
	}
});
