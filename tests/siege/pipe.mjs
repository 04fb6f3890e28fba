// pipe: an agent that does not wait for one answer before it asks again
import { join } from 'node:path';
import { scratch, start, tests } from '../e2e/lib/place.mjs';
import { exited, within } from '../e2e/lib/wait.mjs';
import { outcome } from '../e2e/lib/world.mjs';

// Raw lines into the agent's socket; call() resolves with { error, text, json,
// outcome } whenever the answer comes.
export class Pipe {
	#waiting = new Map();
	#rest = '';
	#id = 0;

	static open(daemon, name) {
		const p = new Pipe();
		p.child = start(process.execPath, [join(tests, 'e2e/lib/relay.mjs'), daemon.socket(name)],
			{ home: scratch('alka-'), stdio: ['pipe', 'pipe', 'inherit'] });
		p.child.stdin.on('error', () => {});
		p.child.stdout.setEncoding('utf8');
		p.child.stdout.on('data', text => p.#take(text));
		p.child.stdout.on('close', () => p.#end());
		return p;
	}

	#take(text) {
		const lines = (this.#rest + text).split('\n');
		this.#rest = lines.pop();
		for (const line of lines) {
			const { id, result, error } = JSON.parse(line);
			const w = this.#waiting.get(id);
			this.#waiting.delete(id);
			if (error) {
				w.fail(new Error(`${error.message}: ${w.sql}`));
				continue;
			}
			const text = result.content[0].text;
			const a = { error: Boolean(result.isError), text, json: text.startsWith('{') ? JSON.parse(text) : null };
			w.done({ ...a, outcome: outcome(a) });
		}
	}

	#end() {
		for (const w of this.#waiting.values())
			w.fail(new Error(`the connection ended before an answer to: ${w.sql}`));
		this.#waiting.clear();
	}

	call(tool, args, ms = 60000) {
		const id = ++this.#id;
		const answer = new Promise((done, fail) => this.#waiting.set(id, { done, fail, sql: args.sql }));
		this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: tool, arguments: args } })}\n`);
		return within(ms, answer, () => `an answer to: ${args.sql}`);
	}

	// Does work(item) for all of them, `wide` at a time.
	static async all(items, wide, work) {
		const list = items[Symbol.iterator]();
		const lane = async () => {
			for (let next; !(next = list.next()).done;)
				await work(next.value);
		};
		await Promise.all(Array.from({ length: wide }, lane));
	}

	close() {
		this.child.stdin.end();
		return within(10000, exited(this.child), 'the relay to end after its input has');
	}
}
