// client: an agent and an operator without a program of their own, for speed
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { start, tests } from '../e2e/lib/place.mjs';
import { exited, within } from '../e2e/lib/wait.mjs';

// Lines as they come, split at \n and nothing else; each goes to take.
function lines(stream, take) {
	let rest = '';
	stream.setEncoding('utf8');
	stream.on('data', text => {
		const parts = (rest + text).split('\n');
		rest = parts.pop();
		parts.forEach(take);
	});
}

// What passes bytes on to a socket, as the user and not as root.
function relay(path) {
	const child = start(process.execPath, [join(tests, 'e2e/lib/relay.mjs'), path], { stdio: ['pipe', 'pipe', 'pipe'] });
	child.stdin.on('error', () => {});
	return child;
}

// Calls of tools over the agent's socket, many at once if need be.
export class FastAgent {
	#waiting = new Map();
	#id = 0;

	constructor(daemon, name) {
		this.child = relay(daemon.socket(name));
		lines(this.child.stdout, line => {
			const answer = JSON.parse(line);
			this.#waiting.get(answer.id)?.done(answer);
			this.#waiting.delete(answer.id);
		});
		this.child.stdout.on('close', () => {
			for (const w of this.#waiting.values())
				w.fail(new Error('the agent\'s socket was closed'));
		});
	}

	async call(tool, args) {
		const id = ++this.#id;
		const coming = new Promise((done, fail) => this.#waiting.set(id, { done, fail }));
		this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call',
			params: { name: tool, arguments: args } })}\n`);
		const { result, error } = await within(60000, coming, () => `an answer to ${JSON.stringify(args)}`);
		assert.equal(error, undefined, JSON.stringify(error));
		const { text } = result.content[0];
		return { error: Boolean(result.isError), text, json: text.startsWith('{') ? JSON.parse(text) : null };
	}

	close() {
		this.child.stdin.end();
		return exited(this.child);
	}
}

// The control socket, one verb after another; a connection that the daemon
// has closed for idleness is made anew.
export class FastOperator {
	constructor(daemon) {
		this.path = join(daemon.state, 'run', 'control.sock');
	}

	#open() {
		return new Promise((done, fail) => {
			const c = { child: relay(this.path), take: null, alive: true };
			c.child.stdout.on('close', () => {
				c.alive = false;
				c.take?.(null);
				fail(new Error('the control socket was closed'));
			});
			lines(c.child.stdout, line => {
				const m = JSON.parse(line);
				if (m.nonce) {
					c.nonce = m.nonce;
					done(c);
				} else {
					c.take?.(m);
				}
			});
		});
	}

	// { data: [...], end }: end is the line that says ok or why not.
	async ask(verb, args) {
		if (!this.conn?.alive)
			this.conn = await this.#open();
		const c = this.conn, data = [];
		const coming = new Promise((done, fail) => {
			c.take = m => {
				if (m === null)
					fail(new Error(`the control socket was closed during ${verb}`));
				else if ('data' in m)
					data.push(m.data);
				else
					done(m);
			};
		});
		c.child.stdin.write(`${JSON.stringify({ airlock: 1, nonce: c.nonce, verb, args })}\n`);
		return { data, end: await within(60000, coming, `an answer to ${verb}`) };
	}

	async show(change) {
		const { data, end } = await this.ask('show', { change });
		assert.equal(end.ok, true, JSON.stringify(end));
		return { head: data[0], rows: data.slice(1) };
	}

	commit({ id, digest }) {
		return this.ask('commit', { change: id, digest });
	}

	rollback(change) {
		return this.ask('rollback', { change, reason: 'oracle' });
	}

	close() {
		this.conn?.child.stdin.end();
	}
}
