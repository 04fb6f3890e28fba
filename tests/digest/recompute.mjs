// recompute: the digest of a change, made a second time from docs/digest.md
//
//   airlock show ID --json | node tests/digest/recompute.mjs [--replay]
//
// Reads the header object and one row a line from stdin, prints 64 hex digits:
// the digest, or the replay digest.
// Exits 1 where the input is not what the document says.  No dependencies, and
// no code shared with the C programs: that is the point of it.
import { createHash } from 'node:crypto';
import { pathToFileURL } from 'node:url';

const FORMAT = 'airlock digest 1';
const REPLAY_FORMAT = 'airlock replay digest 1';
const OPS = { insert: [false, true], update: [true, true], delete: [true, false] };

function must(ok, what) {
	if (!ok)
		throw new Error(what);
}

function isObject(v) {
	return typeof v === 'object' && v !== null && !Array.isArray(v);
}

/* One encoding being written: the three kinds of field of the document. */
class Encoder {
	constructor() {
		this.hash = createHash('sha256');
	}
	tagged(tag, n) {
		const b = Buffer.alloc(9);

		b.write(tag, 0, 'latin1');
		b.writeBigUInt64BE(BigInt(n), 1);
		this.hash.update(b);
	}
	text(v, what) {
		must(typeof v === 'string', `${what} is not a string`);
		const b = Buffer.from(v, 'utf8');

		this.tagged('s', b.length);
		this.hash.update(b);
	}
	none() {
		this.hash.update('n', 'latin1');
	}
	textOrNone(v, what) {
		if (v === null)
			this.none();
		else
			this.text(v, what);
	}
	number(v, what) {
		must(Number.isSafeInteger(v) && v >= 0, `${what} is not a count`);
		this.tagged('u', v);
	}
	flag(v, what) {
		must(typeof v === 'boolean', `${what} is not a boolean`);
		this.number(v ? 1 : 0, what);
	}
	raw(b) {
		this.hash.update(b);
	}
	end() {
		return this.hash.digest();
	}
}

/* Strings as the document orders them: by the bytes of their UTF-8.  (The
 * order of an object's keys here says nothing: "10" comes before "a" always.) */
function byBytes(a, b) {
	return Buffer.compare(Buffer.from(a, 'utf8'), Buffer.from(b, 'utf8'));
}

function putColumns(out, v, what, filled = []) {
	if (v === null) {
		out.none();
		return;
	}
	must(isObject(v), `${what} is not an object`);
	const names = Object.keys(v).filter(name => !filled.includes(name)).sort(byBytes);

	out.number(names.length, what);
	for (const name of names) {
		out.text(name, what);
		out.textOrNone(v[name], `${what}.${name}`);
	}
}

export function rowHash(row) {
	return hashWithout(row, []);
}

/* For the replay digest, which leaves out what the header's tables list as
 * `filled` where the change itself wrote it. */
function replayRowHash(row, header) {
	return hashWithout(row, header.tables.find(t => t.table === row.table &&
	    t.collateral === row.collateral)?.filled ?? []);
}

function hashWithout(row, filled) {
	must(isObject(row), 'a row is not an object');
	must(Object.keys(row).sort().join() ===
	    'after,before,collateral,key,op,table', 'a row has other members');
	must(Object.hasOwn(OPS, row.op), 'a row has no known op');
	must((row.before !== null) === OPS[row.op][0] &&
	    (row.after !== null) === OPS[row.op][1], 'a row does not fit its op');
	const out = new Encoder();

	out.text(row.table, 'table');
	out.text(row.op, 'op');
	out.flag(row.collateral, 'collateral');
	putColumns(out, row.key, 'key', row.op === 'insert' ? filled : []);
	putColumns(out, row.before, 'before');
	putColumns(out, row.after, 'after', filled);
	return out.end();
}

function putStatements(out, list) {
	must(Array.isArray(list), 'statements is not an array');
	out.number(list.length);
	for (const { sql, params } of list) {
		out.text(sql, 'sql');
		if (params === null || params === undefined) {
			out.none();
			continue;
		}
		must(Array.isArray(params), 'params is not an array');
		out.number(params.length);
		for (const p of params)
			out.textOrNone(p, 'a parameter');
	}
}

function putSize(out, table, name) {
	if (table[name] === undefined || table[name] === null ||
	    table.rows_estimated === true)
		out.none();
	else
		out.number(table[name], name);
}

function putTables(out, list, replay) {
	must(Array.isArray(list), 'tables is not an array');
	const sorted = [...list].sort((a, b) => byBytes(a.table, b.table) ||
	    Number(a.collateral) - Number(b.collateral));

	out.number(sorted.length);
	for (const t of sorted) {
		out.text(t.table, 'table');
		out.flag(t.collateral, 'collateral');
		for (const name of ['inserted', 'updated', 'deleted', 'unchanged'])
			out.number(t[name], name);
		putSize(out, t, 'rows_before');
		putSize(out, t, 'rows_after');
		out.flag(t.complete, 'complete');
		if (!replay)
			continue;
		const filled = [...t.filled ?? []].sort(byBytes);

		out.number(filled.length);
		for (const name of filled)
			out.text(name, 'filled');
	}
}

function putNotes(out, list, what) {
	must(Array.isArray(list), `${what} is not an array`);
	const sorted = [...list].sort((a, b) => byBytes(a.code, b.code) ||
	    byBytes(a.text, b.text));

	out.number(sorted.length);
	for (const { code, text } of sorted) {
		out.text(code, what);
		out.text(text, what);
	}
}

export function replayDigest(header, rows) {
	return digest(header, rows.map(row => replayRowHash(row, header)), true);
}

export function digest(header, hashes, replay = false) {
	const out = new Encoder();

	must(isObject(header), 'the header is not an object');
	out.text(replay ? REPLAY_FORMAT : FORMAT);
	out.text(header.database, 'database');
	out.text(header.agent, 'agent');
	putStatements(out, header.statements);
	putTables(out, header.tables, replay);
	out.flag(header.complete, 'complete');
	must(header.schema === undefined || header.schema === null,
	    'schema is not known to this version of the digest');
	out.none();
	putNotes(out, header.effects, 'effects');
	out.text(header.risk, 'risk');
	putNotes(out, header.reasons, 'reasons');
	out.number(hashes.length);
	for (const h of [...hashes].sort(Buffer.compare))
		out.raw(h);
	return out.end().toString('hex');
}

/* Lines end with \n and nothing else; node:readline would also split at
 * U+2028, which may stand in a value. */
async function *lines(stream) {
	let rest = [];

	for await (let chunk of stream) {
		for (let nl; (nl = chunk.indexOf(10)) !== -1;) {
			rest.push(chunk.subarray(0, nl));
			chunk = chunk.subarray(nl + 1);
			yield Buffer.concat(rest).toString('utf8');
			rest = [];
		}
		rest.push(chunk);
	}
	if (rest.some((b) => b.length > 0))
		yield Buffer.concat(rest).toString('utf8');
}

async function main() {
	const hashes = [], replay = process.argv[2] === '--replay';
	let header;

	for await (const line of lines(process.stdin)) {
		if (line === '')
			continue;
		if (header === undefined)
			header = JSON.parse(line);
		else
			hashes.push(replay ? replayRowHash(JSON.parse(line), header) : rowHash(JSON.parse(line)));
	}
	console.log(digest(header, hashes, replay));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
	main().catch((e) => {
		console.error(`recompute: ${e.message}`);
		process.exitCode = 1;
	});
}
