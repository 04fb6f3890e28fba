// docs: what README and examples tell people to type does what they say
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { bindir, Cluster, release } from './lib/cluster.mjs';
import { Daemon } from './lib/daemon.mjs';
import { terminal } from './lib/operator.mjs';
import { build, environment, isRoot, program, run, scratch, start, tests, user, writeFor } from './lib/place.mjs';
import { ask, exited, within } from './lib/wait.mjs';
import { world } from './lib/world.mjs';

const top = join(tests, '..');
const read = path => readFileSync(join(top, path), 'utf8');
const readme = read('README.md');
const clients = readdirSync(join(top, 'examples/clients'));

const TABLE = 'CREATE TABLE t(id int PRIMARY KEY)';

after(release);

// The indented blocks below a heading, or below a line that ends a paragraph.
function blocks(text, from) {
	const at = text.indexOf(`${from}\n`);
	assert.notEqual(at, -1, from);
	const [section] = text.slice(at + from.length).split(/\n## /);
	return section.split(/\n(?! {4}|\n)/).flatMap(p => p.match(/(?:\n {4}.*)+/g) ?? [])
		.map(b => b.replaceAll(/\n {4}/g, '\n').trim());
}

const path = `${build}:${bindir}:/usr/bin:/bin`;
const shell = (line, home, more) => run('sh', ['-c', line],
	{ home, env: { PATH: path, ...more } });

// What the agent's client would start is started, and must offer the tools.
let made = 0;
async function offers(command, args, home, env = {}) {
	const as = isRoot ? ['setpriv', `--reuid=${user.ids.uid}`, `--regid=${user.ids.gid}`, '--clear-groups', '--'] : [];
	const words = [...as, 'setsid', command, ...args];
	const transport = new StdioClientTransport({ command: words[0], args: words.slice(1), cwd: home, stderr: 'ignore',
		env: { ...environment(home), PATH: path, ...env } });
	const client = new Client({ name: 'docs', version: '1' });
	await within(20000, client.connect(transport), `${words} to connect`);
	const { tools } = await client.listTools();
	assert.deepEqual(tools.map(t => t.name).sort(), ['db_execute', 'db_query', 'db_schema', 'db_status', 'db_withdraw']);
	const { content } = await client.callTool({ name: 'db_execute',
		arguments: { sql: `INSERT INTO t VALUES (${++made})`, intent: 'as the README says' } });
	await client.close();
	return JSON.parse(content[0].text);
}

// A client of Claude Code's that says what it was asked for, word by word.
async function asked(line, home) {
	const bin = scratch();
	writeFor(bin, 'claude', '#!/bin/sh\nprintf "%s\\n" "$@"\n');
	const r = await shell(`chmod 700 ${bin}/claude; ${line}`, home, { PATH: `${bin}:${path}` });
	assert.equal(r.code, 0, r.stderr);
	return r.stdout.trimEnd().split('\n');
}

const freePort = () => new Promise(done => {
	const s = createServer().listen(0, '127.0.0.1', () => {
		const { port } = s.address();
		s.close(() => done(port));
	});
});

test('the README\'s three commands, and its clients without an option', async t => {
	const c = await Cluster.start({ tcp: await freePort() });
	t.after(() => c.stop());
	await c.sql('postgres', 'CREATE DATABASE shop');
	await c.sql('shop', TABLE);
	const home = scratch();
	const [three] = blocks(readme, '## With your own database');
	const [role, daemon, look, ...more] = three.split('\n');
	assert.deepEqual(more, []);
	const grant = await shell(role, home, { PGHOST: c.dir, PGPORT: String(c.port), PGUSER: 'postgres' });
	assert.equal(grant.code, 0, grant.stderr);
	assert.match(daemon, /@localhost\/shop/);
	const d = start('sh', ['-c', `exec ${daemon.replace('@localhost/', `@localhost:${c.port}/`)}`],
		{ home, env: { PATH: path }, stdio: ['ignore', 'ignore', 'inherit'] });
	t.after(async () => {
		d.kill('SIGTERM');
		assert.equal((await exited(d)).code, 0);
	});
	await ask(async () => (await shell('airlock ping', home)).code === 0, 'airlockd to answer');
	await ask(async () => /database: up/.test((await shell('airlock status', home)).stdout), 'the database');

	const told = [];
	const [claude, codex, cursor] = blocks(readme, '## Connecting an agent');
	const words = await asked(claude, home);
	assert.deepEqual(words.slice(0, 6), ['mcp', 'add', '--scope', 'user', 'airlock', '--']);
	told.push(await offers(words[6], words.slice(7), home));
	const [, command] = /^\[mcp_servers\.airlock\]\ncommand = "([^"]+)"$/.exec(codex);
	told.push(await offers(command, [], home));
	const entry = JSON.parse(cursor).mcpServers.airlock;
	told.push(await offers(entry.command, entry.args ?? [], home));
	assert.equal(told[0].status, 'pending');

	const seen = await terminal.run(['sh', '-c', look], { home, env: { PATH: path } });
	assert.equal(seen.code, 0, seen.stderr);
	assert.ok(seen.stdout.startsWith(`${told[0].change_id} pending, agent agent`), seen.stdout);
	assert.match(seen.stdout, /agent says: as the README says/);
});

test('examples/clients: at user level, without a secret, and they work', async t => {
	for (const f of clients)
		assert.doesNotMatch(read(`examples/clients/${f}`), /postgres(ql)?:|dbname|password=|PGPASS/i, f);
	const w = await world(t, { setup: TABLE });
	const home = scratch();
	const here = a => a === '/run/airlock/agent-support.sock' ? w.daemon.socket() : a.replace(/^support$/, 'agent');
	const state = { AIRLOCK_STATE_DIR: w.daemon.state };
	for (const f of clients.filter(f => f.endsWith('.json'))) {
		const { command, args } = JSON.parse(read(`examples/clients/${f}`)).mcpServers.airlock;
		const file = command.replace('/usr/local/bin/', `${build}/`);
		const { status } = await offers(file, args.map(here), home, state);
		assert.equal(status, 'pending', f);
	}
	const words = await asked(`sh ${join(top, 'examples/clients/claude-code.sh')}`, home);
	assert.deepEqual(words.slice(0, 6), ['mcp', 'add', '--scope', 'user', 'airlock', '--']);
	assert.equal((await offers(words[6], words.slice(7), home, state)).status, 'pending');
	for (const line of blocks(read('examples/clients/README.md'), '# Setting an agent\'s client up')) {
		const [command, ...args] = line.split(' ');
		assert.equal((await offers(command, args.map(here), home, state)).status, 'pending', line);
	}
});

test('examples/airlockd.conf is a configuration', async () => {
	const r = await run(program('airlockd'), ['-n', '-v', '--config', join(top, 'examples/airlockd.conf')]);
	assert.equal(r.code, 0, r.stderr);
	for (const part of ['[agent support]', '[agent reports]', '[operator dana]', 'writer_dsn'])
		assert.ok(r.stdout.includes(part), part);
});

test('what the README shows of a decision is in the demo\'s transcript', () => {
	const [shown] = blocks(readme, 'An agent forgot the WHERE. This is what waits for you:');
	const mask = text => text.replace(/chg_\w+/g, 'ID').replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
		.replace(/\d+ s (?=ago|left)/g, 'N s ').replace(/^operator\$/gm, '$').split('\n');
	const lines = mask(read('docs/demo.txt'));
	let at = 0;
	for (const line of mask(shown).filter(l => l.trim() !== '...')) {
		const next = lines.indexOf(line, at);
		assert.ok(next >= at, `not in docs/demo.txt, or not in this order: ${line}`);
		at = next + 1;
	}
});
