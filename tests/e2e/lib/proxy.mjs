// proxy: between airlockd and PostgreSQL, to lose, stall or change messages
import { chmodSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { scratch } from './place.mjs';
import { APP } from './cluster.mjs';

// Cuts a stream into messages; the client's first has no type byte.
class Messages {
	#rest = Buffer.alloc(0);

	constructor(bare) {
		this.bare = bare;
	}

	*take(data) {
		this.#rest = Buffer.concat([this.#rest, data]);
		for (;;) {
			const at = this.bare ? 0 : 1;
			if (this.#rest.length < at + 4)
				return;
			const size = at + this.#rest.readUInt32BE(at);
			if (this.#rest.length < size)
				return;
			const bytes = this.#rest.subarray(0, size);
			this.#rest = this.#rest.subarray(size);
			yield { type: at ? String.fromCharCode(bytes[0]) : '', body: bytes.subarray(at + 4), bytes };
			this.bare = false;
		}
	}
}

// One connection, both ways.  on(message) of the proxy says what becomes of
// each message: undefined passes it on, a Buffer goes in its place, and
//   'cut'    both ends are closed, the message and all behind it are lost
//   'drop'   it is lost
//   'stall'  it and all behind it wait, until release()
class Connection {
	#waiting = { client: null, server: null };
	sql = []; // texts that were parsed

	constructor(proxy, client) {
		this.proxy = proxy;
		this.client = client;
		this.server = connect(proxy.target);
		for (const [from, to, bare] of [['client', 'server', true], ['server', 'client', false]]) {
			const messages = new Messages(bare);
			this[from].on('data', data => {
				for (const m of messages.take(data))
					this.#pass(from, to, m);
			});
			this[from].on('error', () => {});
			this[from].on('close', () => this.#waiting[from] ?? this[to].end());
		}
	}

	#pass(from, to, m) {
		if (from === 'client' && m.type === 'P')
			this.sql.push(m.body.subarray(m.body.indexOf(0) + 1).toString().split('\0')[0]);
		if (this.#waiting[from]) {
			this.#waiting[from].push(m);
			return;
		}
		const what = this.proxy.on({ ...m, from, link: this });
		if (what === 'cut')
			this.cut();
		else if (what === 'stall')
			this.#waiting[from] = [m];
		else if (what !== 'drop' && this[to].writable)
			this[to].write(what ?? m.bytes);
	}

	// The writer of a change, from its BEGIN on.
	get isWriter() {
		return this.sql.some(s => s.startsWith('BEGIN ISOLATION LEVEL'))
			&& !this.sql.some(s => s.startsWith('SET TRANSACTION SNAPSHOT'));
	}

	get isOver() {
		return this.client.destroyed && this.server.destroyed;
	}

	cut() {
		this.client.destroy();
		this.server.destroy();
	}

	release() {
		for (const [from, to] of [['client', 'server'], ['server', 'client']]) {
			const list = this.#waiting[from] ?? [];
			this.#waiting[from] = null;
			for (const m of list)
				if (this[to].writable)
					this[to].write(m.bytes);
			if (this[from].destroyed)
				this[to].end();
		}
	}
}

export class Proxy {
	on = () => undefined;
	connections = new Set();

	static async start(cluster) {
		const p = new Proxy();
		p.dir = scratch('alkx-');
		p.port = 5432;
		p.aim(cluster);
		p.listener = createServer(socket => {
			const link = new Connection(p, socket);
			p.connections.add(link);
			for (const end of [link.client, link.server])
				end.on('close', () => link.isOver && p.connections.delete(link));
		});
		const path = join(p.dir, `.s.PGSQL.${p.port}`);
		await new Promise(done => p.listener.listen(path, done));
		chmodSync(path, 0o777);
		return p;
	}

	// The server that new connections go to.
	aim(cluster) {
		this.target = join(cluster.dir, `.s.PGSQL.${cluster.port}`);
	}

	url(database, role = APP) {
		return `postgresql://${role}@/${database}?host=${encodeURIComponent(this.dir)}&port=${this.port}`;
	}

	// Meets the first message for which fits holds with `what`, and gives its
	// connection; before and after it `on` has its way.
	meet(fits, what) {
		const before = this.on;
		return new Promise(done => {
			this.on = m => {
				if (!fits(m))
					return before(m);
				this.on = before;
				done(m.link);
				return what;
			};
		});
	}

	close() {
		for (const link of this.connections)
			link.cut();
		return new Promise(done => this.listener.close(done));
	}
}

// The writer's COMMIT on its way to the server, and the server's word for it.
export const isCommit = m => m.from === 'client' && m.type === 'P' && m.link.isWriter && m.link.sql.at(-1) === 'COMMIT';
export const isCommitted = m => m.from === 'server' && m.type === 'C' && m.link.isWriter && /^(COMMIT|ROLLBACK)\0/.test(m.body.toString())
	&& m.link.sql.at(-1) === 'COMMIT';
