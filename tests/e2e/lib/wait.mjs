// wait: for what happens, never for time to pass

// Rejects with what(), or its text, if the promise has not settled in time.
export async function within(ms, promise, what) {
	let timer;
	const late = new Promise((_, fail) => {
		timer = setTimeout(() => fail(new Error(
			`not within ${ms} ms: ${typeof what === 'function' ? what() : what}`)), ms);
	});
	try {
		return await Promise.race([promise, late]);
	} finally {
		clearTimeout(timer);
	}
}

// Lines of a stream as they come; until(test) resolves with the first line,
// seen already or to come, for which test (a RegExp or function) holds.
export class Lines {
	#partial = '';
	#waiting = new Set();
	all = [];
	ended = false;

	constructor(stream) {
		stream.setEncoding('utf8');
		stream.on('data', text => this.#take(text));
		stream.on('close', () => this.#end());
	}

	#take(text) {
		const lines = (this.#partial + text).split('\n');
		this.#partial = lines.pop();
		for (const line of lines) {
			this.all.push(line);
			for (const w of [...this.#waiting])
				w.see(line);
		}
	}

	#end() {
		if (this.#partial)
			this.#take('\n');
		this.ended = true;
		for (const w of [...this.#waiting])
			w.fail(new Error(`the stream ended; it said:\n${this.all.join('\n')}`));
	}

	// from: the index in all of the first line that counts.
	until(test, { ms = 20000, from = 0 } = {}) {
		const fits = line => (test instanceof RegExp ? test.test(line) : test(line));
		const seen = this.all.slice(from).find(fits);
		if (seen !== undefined)
			return Promise.resolve(seen);
		if (this.ended)
			return Promise.reject(new Error(`ended without ${test}:\n${this.all.join('\n')}`));
		let w;
		const coming = new Promise((done, fail) => {
			w = { see: line => fits(line) && done(line), fail };
			this.#waiting.add(w);
		});
		return within(ms, coming, () => `${test} in:\n${this.all.join('\n')}`)
			.finally(() => this.#waiting.delete(w));
	}

	text() {
		return this.all.join('\n') + (this.#partial ? `\n${this.#partial}` : '');
	}
}

// Asks again and again until the answer is truthy; for what can only be asked
// (a count in the database, a ping).  Each question takes time of its own.
export async function ask(question, what, ms = 20000) {
	const end = Date.now() + ms;
	for (let last; ;) {
		if ((last = await question()))
			return last;
		if (Date.now() > end)
			throw new Error(`not within ${ms} ms: ${typeof what === 'function' ? what() : what}`);
		await new Promise(setImmediate);
	}
}

export const exited = child => child.exitCode !== null || child.signalCode !== null
	? Promise.resolve({ code: child.exitCode, signal: child.signalCode })
	: new Promise(done => child.once('exit', (code, signal) => done({ code, signal })));
