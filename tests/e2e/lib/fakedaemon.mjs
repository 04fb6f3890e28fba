// fakedaemon: the other end of control.sock, saying whatever a test wants said
import { chownSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { isRoot, program, run, scratch, user } from './place.mjs';

export const NONCE = '0123456789abcdef0123456789abcdef';

// A change as airlockd would tell it; more overrides.
export const header = (more = {}) => ({
	id: 'chg_0123456789', database: 'shop', agent: 'agent', status: 'pending',
	intent: 'fix balances', risk: 'low', reasons: [],
	statements: [{ sql: 'UPDATE accounts SET balance = $1 WHERE id = 1', params: ['2'] }],
	tables: [{
		table: 'public.accounts', inserted: 0, updated: 1, deleted: 0, unchanged: 0,
		collateral: false, complete: true, rows_before: 3, rows_after: 3,
	}],
	complete: true, effects: [], digest: '0'.repeat(64),
	created_at: '2026-01-02T03:04:05.678Z', expires_at: '2099-01-02T03:14:05.678Z',
	...more,
});

export const row = (more = {}) => ({
	table: 'public.accounts', op: 'update', collateral: false, key: { id: '1' },
	before: { id: '1', owner: 'ann', balance: '100.00' },
	after: { id: '1', owner: 'ann', balance: '2' }, ...more,
});

export class FakeDaemon {
	// answer(verb, args, say): say(value) sends a line, say.raw(bytes) those.
	static async start(answer, { greeting } = {}) {
		const d = new FakeDaemon();
		d.requests = [];
		d.answer = answer;
		d.greeting = greeting ?? JSON.stringify({ airlock: 1, version: '0.1.0', nonce: NONCE }) + '\n';
		d.state = scratch('alkf-');
		mkdirSync(join(d.state, 'run'));
		if (isRoot)
			chownSync(join(d.state, 'run'), user.ids.uid, user.ids.gid);
		d.socket = join(d.state, 'run/control.sock');
		d.server = createServer(s => d.#serve(s));
		await new Promise(done => d.server.listen(d.socket, done));
		d.server.unref(); // a test that fails does not stop it
		if (isRoot)
			chownSync(d.socket, user.ids.uid, user.ids.gid);
		return d;
	}

	#serve(socket) {
		let text = '';
		socket.unref();
		socket.setEncoding('utf8');
		socket.on('error', () => {});
		socket.write(this.greeting);
		socket.on('data', data => {
			text += data;
			for (let at; (at = text.indexOf('\n')) !== -1; text = text.slice(at + 1)) {
				const request = JSON.parse(text.slice(0, at));
				this.requests.push(request);
				const say = value => socket.write(JSON.stringify(value) + '\n');
				say.raw = bytes => socket.write(bytes);
				say.end = () => socket.end();
				this.answer(request.verb, request.args, say);
			}
		});
	}

	// verbs asked for, in order.
	get verbs() {
		return this.requests.map(r => r.verb);
	}

	words(...args) {
		return [program('airlock'), '--state-dir', this.state, ...args];
	}

	run(...args) {
		const [file, ...rest] = this.words(...args);
		return run(file, rest, { home: scratch('alkf-') });
	}

	async stop() {
		this.server.close();
	}
}

// A daemon that holds these changes: [{ header, rows }], with right digests.
export async function holding(changes, { decide } = {}) {
	const find = id => changes.find(c => c.header.id === id);
	const d = await FakeDaemon.start((verb, args, say) => {
		const refuse = (code, error) => say({ ok: false, exit: 1, code, error });
		const c = find(args.change);
		if (verb === 'pending') {
			for (const one of changes)
				say({ data: one.header });
			return say({ ok: true });
		}
		if (verb === 'ping' || verb === 'version')
			return say({ ok: true });
		if (!c)
			return refuse('NOT_FOUND', `there is no change ${args.change}`);
		if (verb === 'show') {
			const rows = c.rows.slice(args.offset ?? 0).slice(0, args.limit ?? Infinity);
			const next = (args.offset ?? 0) + rows.length;
			say({ data: c.header });
			for (const r of rows)
				say({ data: r });
			return say({ ok: true, rows: rows.length, total: c.rows.length,
				next: next < c.rows.length ? next : null });
		}
		if (decide?.(verb, args, say, c))
			return undefined;
		if (verb === 'commit' && args.digest !== c.header.digest)
			return refuse('DIGEST_MOVED', 'the digest is not that of the change');
		const status = { commit: 'committed', rollback: 'rolled_back' }[verb];
		return say({ ok: true, change: { ...c.header, status, reason: args.reason } });
	});
	for (const c of changes)
		await sealed(d, c);
	return d;
}

// Gives a change the digest that airlock computes for it.
export async function sealed(daemon, change) {
	change.header.digest = '0'.repeat(64);
	const { stderr } = await daemon.run('show', change.header.id);
	change.header.digest = /has the digest ([0-9a-f]{64})/.exec(stderr)?.[1];
	change.header.token = `${change.header.id}@${change.header.digest}`;
	daemon.requests.length = 0;
}
