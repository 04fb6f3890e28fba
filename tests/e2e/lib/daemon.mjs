// daemon: airlockd with a state directory of its own, whose end must be clean
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { program, run, scratch, start, writeFor } from './place.mjs';
import { ask, exited, Lines, within } from './wait.mjs';

const SANITIZER = /ERROR: \w*Sanitizer|runtime error:|SUMMARY: \w*Sanitizer/;

export class Daemon {
	// db: a URL, a conninfo string or "embedded"; args: further arguments;
	// config: the text of a configuration file; state: a directory to use again;
	// runtime: where that file has the sockets, if not in state.
	static async start({ db, args = [], config, env = {}, state, runtime } = {}) {
		const d = new Daemon();
		d.home = scratch('alkd-');
		d.state = state ?? join(d.home, 'state');
		d.runtime = runtime ?? join(d.state, 'run');
		d.args = [...(db === undefined ? [] : ['--db', db]), '--state-dir', d.state, ...args];
		d.env = env;
		if (config !== undefined)
			d.args.push('--config', writeFor(d.home, 'airlockd.conf', config));
		await d.launch();
		return d;
	}

	// Begins; ready when ping answers.
	async launch() {
		const reports = join(this.home, 'sanitizer');
		this.child = start(program('airlockd'), this.args, {
			home: this.home,
			env: {
				ASAN_OPTIONS: `detect_leaks=1:log_path=${reports}`,
				UBSAN_OPTIONS: `print_stacktrace=1:log_path=${reports}`,
				...this.env,
			},
		});
		this.out = new Lines(this.child.stdout);
		this.log = new Lines(this.child.stderr);
		await ask(async () => {
			if (!this.running)
				throw new Error(`airlockd ended before it was ready:\n${this.log.text()}`);
			return (await this.ping()).code === 0;
		}, 'airlockd to answer a ping');
	}

	get pid() {
		return this.child.pid;
	}

	get running() {
		return this.child.exitCode === null && this.child.signalCode === null;
	}

	ping() {
		return run(program('airlock'), ['--state-dir', this.state, '--socket', join(this.runtime, 'control.sock'), 'ping'],
			{ home: this.home });
	}

	socket(agent = 'agent') {
		return join(this.runtime, `agent-${agent}.sock`);
	}

	// The journal's records, oldest first, as the files hold them.
	journal() {
		const dir = join(this.state, 'journal');
		return readdirSync(dir).filter(f => f.endsWith('.jsonl')).sort()
			.flatMap(f => readFileSync(join(dir, f), 'utf8').split('\n').filter(Boolean))
			.map(line => JSON.parse(line));
	}

	signal(name) {
		process.kill(this.child.pid, name);
	}

	// Asks it to end, and demands that it ends well.
	async stop() {
		if (this.running)
			this.signal('SIGTERM');
		let end;
		try {
			end = await within(20000, exited(this.child), 'airlockd to end after SIGTERM');
		} catch (e) {
			await this.kill();
			throw new Error(`${e.message}\n${this.log.text()}`);
		}
		assert.deepEqual(end, { code: 0, signal: null }, `airlockd said:\n${this.log.text()}`);
		this.clean();
	}

	// As if the power had gone.
	async kill() {
		if (this.running)
			this.signal('SIGKILL');
		await exited(this.child);
	}

	async restart() {
		if (this.running)
			await this.stop();
		await this.launch();
	}

	clean() {
		const reports = readdirSync(this.home).filter(f => f.startsWith('sanitizer'))
			.map(f => readFileSync(join(this.home, f), 'utf8'));
		assert.deepEqual(reports, [], 'the sanitizers have something to say');
		assert.doesNotMatch(this.log.text(), SANITIZER);
	}
}
