// operator: `airlock` in a terminal of the operator's own, as the guard asks
//
// tests/guard/ptyrun.c makes that terminal: by root as sshd does, by anybody
// else in the tmux server of tests/stage.sh, which is older than any agent.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { environment, finished, isRoot, program, run, scratch, tests, user } from './place.mjs';
import { exited, within } from './wait.mjs';

const drop = isRoot ? ['-u', user.ids.uid, '-g', user.ids.gid].map(String) : [];
const tmux = isRoot ? null : process.env.AIRLOCK_TMUX;
if (!isRoot && !tmux)
	throw new Error('start the tests through tests/stage.sh: the operator wants a terminal');
const viaTmux = tmux && { AIRLOCK_TMUX: tmux, AIRLOCK_TMUXRUN: join(tests, 'guard/tmuxrun.sh') };

function ptyrun(words, { home, env }) {
	return spawn(program('guard/ptyrun'), [...drop, ...words], {
		cwd: home,
		env: environment(home, { TERM: 'xterm', ...viaTmux, ...env }),
		stdio: ['pipe', 'pipe', 'pipe'],
	});
}

// In a terminal, the output going to files: { code, stdout, stderr }.
async function quietly(words, { home, env }) {
	const [out, err] = ['out', 'err'].map(f => join(home, f));
	const child = ptyrun(['sh', '-c', 'exec "$@" >out 2>err', 'sh', ...words], { home, env });
	const { code, stderr } = await within(60000, finished(child), `${words} to end`);
	assert.equal(stderr, '');
	return { code, stdout: readFileSync(out, 'utf8'), stderr: readFileSync(err, 'utf8') };
}

// On the terminal itself: says is a list of [what it must show, keys to type],
// or a function that gives the keys when it is time.
async function talk(words, says, { home, env }) {
	const child = ptyrun(words, { home, env });
	let screen = '', from = 0, heard = () => {};
	child.stdout.setEncoding('utf8');
	child.stdout.on('data', text => {
		screen += text;
		heard();
	});
	try {
		for (const [expected, keys] of says) {
			await within(20000, (async () => {
				while (!expected.test(screen.slice(from)))
					await new Promise(done => { heard = done; });
			})(), () => `${expected} on the terminal, which shows:\n${screen}`);
			from = screen.length;
			child.stdin.write(typeof keys === 'function' ? await keys() : keys);
		}
		const { code } = await within(20000, exited(child), () => `an end of:\n${screen}`);
		return { code, screen: screen.replaceAll('\r\n', '\n') };
	} finally {
		child.kill();
	}
}

export const terminal = { run: quietly, talk };

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

	// Asks, and is killed before it can hear the answer.
	async abandon(...args) {
		const child = ptyrun(['sh', '-c', '"$@" & kill -9 $!; wait', 'sh',
			...this.#words(args)], this.#place());
		await within(20000, finished(child), 'the asker to be gone');
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
