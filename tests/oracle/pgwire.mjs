// pgwire: PostgreSQL's protocol, just enough of it to be nobody's client library
//
// The oracle reads what tables hold through this and nothing else: a unix
// socket, no password, the simple query protocol, every value as its text.
import { connect } from 'node:net';

const int32 = n => {
	const b = Buffer.alloc(4);
	b.writeInt32BE(n);
	return b;
};

function message(tag, body) {
	return Buffer.concat([Buffer.from(tag), int32(body.length + 4), body]);
}

function fieldsOf(body) {
	const fields = {};
	for (const part of body.toString('utf8').split('\0'))
		if (part)
			fields[part[0]] = part.slice(1);
	return fields;
}

export class PgError extends Error {
	constructor(fields, sql) {
		super(`${fields.C}: ${fields.M}${fields.W ? ` (${fields.W})` : ''}\n${sql.slice(0, 2000)}`);
		this.code = fields.C;
	}
}

export class Pg {
	#left = Buffer.alloc(0);
	#queue = [];

	// encoding: how values become strings; latin1 keeps bytes as they are.
	static async open({ dir, port, database, user = 'postgres', options = '', encoding = 'utf8' }) {
		const c = new Pg();
		c.encoding = encoding;
		c.socket = connect(`${dir}/.s.PGSQL.${port}`);
		c.socket.on('data', d => c.#take(d));
		c.socket.on('error', e => c.#end(e));
		c.socket.on('close', () => c.#end(new Error('the server closed the connection')));
		const pairs = { user, database, options, client_encoding: encoding === 'utf8' ? 'UTF8' : 'SQL_ASCII' };
		const body = Buffer.from(`${Object.entries(pairs).map(([k, v]) => `${k}\0${v}\0`).join('')}\0`);
		await c.#ask(Buffer.concat([int32(body.length + 8), int32(196608), body]), 'startup');
		return c;
	}

	#ask(bytes, sql) {
		return new Promise((done, fail) => {
			this.#queue.push({ done, fail, sql, results: [], rows: [], names: [], error: null });
			this.socket.write(bytes);
		});
	}

	#end(error) {
		for (const q of this.#queue.splice(0))
			q.fail(error);
	}

	#take(data) {
		let b = this.#left.length > 0 ? Buffer.concat([this.#left, data]) : data;
		while (b.length >= 5) {
			const size = 1 + b.readInt32BE(1);
			if (b.length < size)
				break;
			this.#message(String.fromCharCode(b[0]), b.subarray(5, size));
			b = b.subarray(size);
		}
		this.#left = b;
	}

	#message(tag, body) {
		const q = this.#queue[0];
		if (tag === 'R' && body.readInt32BE(0) !== 0)
			this.#end(new Error('the server asks for a password'));
		if (!q)
			return;
		if (tag === 'T')
			q.names = this.#names(body);
		else if (tag === 'D')
			q.rows.push(this.#row(body));
		else if (tag === 'C') {
			q.results.push({ names: q.names, rows: q.rows, tag: body.toString('utf8', 0, body.length - 1) });
			q.rows = [];
			q.names = [];
		} else if (tag === 'E')
			q.error = new PgError(fieldsOf(body), q.sql);
		else if (tag === 'Z') {
			this.#queue.shift();
			if (q.error)
				q.fail(q.error);
			else
				q.done(q.results);
		}
	}

	#names(body) {
		const names = [];
		for (let i = 0, at = 2; i < body.readInt16BE(0); i++) {
			const end = body.indexOf(0, at);
			names.push(body.toString(this.encoding, at, end));
			at = end + 19;
		}
		return names;
	}

	#row(body) {
		const row = [];
		for (let i = 0, at = 2; i < body.readInt16BE(0); i++) {
			const len = body.readInt32BE(at);
			at += 4;
			row.push(len < 0 ? null : body.toString(this.encoding, at, at + len));
			at += Math.max(len, 0);
		}
		return row;
	}

	// One result { names, rows, tag } for each statement of the text.
	query(sql) {
		return this.#ask(message('Q', Buffer.concat([Buffer.from(sql, this.encoding), Buffer.alloc(1)])), sql);
	}

	// The rows of a text that is one statement.
	async rows(sql) {
		return (await this.query(sql)).at(-1).rows;
	}

	// The SQLSTATE where it fails, else null.
	async tries(sql) {
		try {
			await this.query(sql);
			return null;
		} catch (e) {
			if (!e.code)
				throw e;
			return e.code;
		}
	}

	close() {
		this.socket.end(message('X', Buffer.alloc(0)));
	}
}
