// operator: `airlock` in a terminal of the operator's own, as the guard asks
//
// By root a terminal is opened as sshd does: a root process makes a
// pseudo-terminal, and the user's program leads its session.  An ordinary user
// has a tmux server that was there before any agent.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { environment, finished, isRoot, program, run, scratch, user } from './place.mjs';
import { ask, exited, within } from './wait.mjs';

const quote = word => `'${String(word).replaceAll("'", "'\\''")}'`;
const command = words => words.map(quote).join(' ');

// --- by root: script(1) is the terminal ---------------------------------

const drop = isRoot ? ['setpriv', `--reuid=${user.ids.uid}`,
	`--regid=${user.ids.gid}`, '--clear-groups', '--'] : [];

function script(line, { env, home }) {
	return spawn('script', ['-qec', line, '/dev/null'], {
		cwd: home,
		env: { ...environment(home, env), SHELL: '/bin/sh', TERM: 'xterm' },
		stdio: ['pipe', 'pipe', 'pipe'],
	});
}

async function rootRun(words, { home, env }) {
	const [out, err] = ['out', 'err'].map(f => join(home, f));
	const child = script(
		`exec ${command([...drop, ...words])} >${quote(out)} 2>${quote(err)}`, { home, env });
	const { code } = await finished(child);
	return { code, stdout: readFileSync(out, 'utf8'), stderr: readFileSync(err, 'utf8') };
}

async function rootTalk(words, says, { home, env }) {
	const child = script(`exec ${command([...drop, ...words])}`, { home, env });
	let seen = '', heard;
	child.stdout.setEncoding('utf8');
	child.stdout.on('data', text => {
		seen += text;
		heard?.();
	});
	let from = 0;
	for (const [expected, keys] of says) {
		await within(20000, (async () => {
			while (!expected.test(seen.slice(from)))
				await new Promise(done => { heard = done; });
		})(), () => `${expected} on the terminal, which shows:\n${seen}`);
		from = seen.length;
		child.stdin.write(keys);
	}
	const { code } = await within(20000, exited(child), () => `an end:\n${seen}`);
	return { code, screen: seen.replaceAll('\r\n', '\n') };
}

// --- by anybody else: windows of a tmux server ----------------------------

const server = `airlock-tests-${process.pid}`;
const tmux = (...args) => run('tmux', ['-L', server, '-f', '/dev/null', ...args]);
let windows = 0;

if (!isRoot) {
	const r = await tmux('new-session', '-d', '-x', '200', '-y', '50', 'exec cat');
	assert.equal(r.code, 0, r.stderr);
	process.on('exit', () => execFileSync('tmux', ['-L', server, 'kill-server']));
}

// A window that waits to be told to go on; end() gives the exit code.
async function tmuxWindow(line, { home, env }) {
	const id = `w${++windows}`;
	const [file, rc] = ['line.sh', 'rc'].map(f => join(home, f));
	const set = Object.entries(env ?? {}).map(([k, v]) => `${k}=${quote(v)}`).join(' ');
	const say = signal => `tmux -L ${server} wait-for ${signal}`;
	writeFileSync(file, `${say(`go-${id}`)}\n${set} ${line}\n` +
		`echo $? >${quote(rc)}\nprintf '\\036'\n${say(`-S done-${id}`)}\n`);
	const r = await tmux('new-window', '-d', '-n', id, '-c', home, `sh ${quote(file)}`);
	assert.equal(r.code, 0, r.stderr);
	return {
		id,
		go: () => tmux('wait-for', '-S', `go-${id}`),
		end: async () => {
			await within(20000, tmux('wait-for', `done-${id}`), `${line} to end`);
			return Number(readFileSync(rc, 'utf8'));
		},
	};
}

async function tmuxRun(words, { home, env }) {
	const [out, err] = ['out', 'err'].map(f => join(home, f));
	const w = await tmuxWindow(`${command(words)} >${quote(out)} 2>${quote(err)}`, { home, env });
	await w.go();
	const code = await w.end();
	return { code, stdout: readFileSync(out, 'utf8'), stderr: readFileSync(err, 'utf8') };
}

async function tmuxTalk(words, says, { home, env }) {
	const w = await tmuxWindow(command(words), { home, env });
	const record = join(home, 'screen');
	const seen = () => readFileSync(record, 'utf8');
	writeFileSync(record, '');
	await tmux('pipe-pane', '-t', w.id, `exec cat >>${quote(record)}`);
	await w.go();
	let from = 0;
	for (const [expected, keys] of says) {
		await ask(async () => (await tmux('has-session')).code === 0 &&
			expected.test(seen().slice(from)), () => `${expected} on the terminal`);
		from = seen().length;
		await tmux('send-keys', '-t', w.id, '-l', keys.replaceAll('\n', '\r'));
	}
	const code = await w.end();
	await ask(async () => seen().endsWith('\x1e') || (await tmux('has-session')).code !== 0,
		'the last of the terminal');
	return { code, screen: seen().replaceAll('\r\n', '\n').replace('\x1e', '') };
}

// -------------------------------------------------------------------------

// run(words, place): output to files; talk(words, says, place): on the screen.
export const terminal = isRoot ? { run: rootRun, talk: rootTalk }
	: { run: tmuxRun, talk: tmuxTalk };

export class Operator {
	constructor(daemon, { env } = {}) {
		this.daemon = daemon;
		this.env = env;
	}

	#words(args) {
		return [program('airlock'), '--state-dir', this.daemon.state, ...args];
	}

	#place() {
		return { home: scratch('alko-'), env: this.env };
	}

	// In a terminal, its output going to files: { code, stdout, stderr }.
	run(...args) {
		return terminal.run(this.#words(args), this.#place());
	}

	// On the terminal itself: says is a list of [what it must show, keys].
	talk(args, says) {
		return terminal.talk(this.#words(args), says, this.#place());
	}

	// What --json prints, one value a line where there are several.
	async json(...args) {
		const r = await this.run(...args, '--json');
		assert.equal(r.code, 0, `airlock ${args.join(' ')}: ${r.stderr}`);
		const lines = r.stdout.split('\n').filter(Boolean);
		try {
			return JSON.parse(r.stdout);
		} catch {
			return lines.map(line => JSON.parse(line));
		}
	}

	pending() {
		return this.json('pending');
	}

	// { head, rows } of a change.
	async show(id) {
		const lines = [await this.json('show', id)].flat();
		return { head: lines[0], rows: lines.slice(1) };
	}

	async #decide(verb, ...args) {
		const r = await this.run(verb, ...args);
		assert.equal(r.code, 0, `airlock ${verb}: ${r.stderr}${r.stdout}`);
		return r;
	}

	// Commits what is pending under this id, as it is now.
	async commit(id) {
		const mine = (await this.pending()).find(c => c.id === id);
		assert.ok(mine, `${id} is pending`);
		return this.#decide('commit', mine.token);
	}

	rollback(id, reason = 'no') {
		return this.#decide('rollback', id, '--reason', reason);
	}
}

// The same command as an agent's shell would run it: no terminal at all.
export const withoutTerminal = (daemon, ...args) => run(program('airlock'),
	['--state-dir', daemon.state, ...args], { home: scratch('alko-') });
