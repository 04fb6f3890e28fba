// truth: what tables hold, what that says a change did, and whether a diff says
// the same
import { digest, replayDigest, rowHash } from '../digest/recompute.mjs';

// The settings that values are written with (see docs and src/pg/session.c).
export const PINS = ['DateStyle=ISO,MDY', 'IntervalStyle=postgres', 'TimeZone=UTC', 'extra_float_digits=1',
	'bytea_output=hex', 'xmloption=content', 'lc_monetary=C', 'search_path=pg_catalog']
	.map(s => `-c ${s}`).join(' ');

const image = columns => JSON.stringify(Object.entries(columns).sort(([a], [b]) => (a < b ? -1 : 1)));

// The tables of some schemas as airlock names them, each with its columns and
// the keys that a row of it may be told by.
export async function tablesOf(pg, schemas = ['app']) {
	const list = schemas.map(s => `'${s}'`).join(', ');
	const rows = await pg.rows(`SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relkind,
		(SELECT json_agg(quote_ident(a.attname) ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
		(SELECT json_agg((SELECT json_agg(a.attname) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey::int2[]))
			ORDER BY i.indisprimary DESC) FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
			AND NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey::int2[]) AND NOT a.attnotnull))
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN (${list}) AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1`);
	return rows.map(([ref, kind, columns, keys]) => ({ ref, kind, columns: JSON.parse(columns) ?? [], keys: JSON.parse(keys) ?? [] }));
}

// Every row of every table: a Map of ref to a list of images.
export async function contents(pg, tables) {
	if (tables.length === 0)
		return new Map();
	const results = await pg.query(tables.map(t =>
		`SELECT ${t.columns.join(', ')} FROM ${t.kind === 'p' ? '' : 'ONLY'} ${t.ref};`).join('\n'));
	return new Map(tables.map((t, i) => [t.ref, results[i].rows.map(row =>
		image(Object.fromEntries(row.map((v, k) => [results[i].names[k], v]))))]));
}

// a without what is in b, each row as often as it occurs.
export function minus(a, b) {
	const n = new Map();
	for (const x of b)
		n.set(x, (n.get(x) ?? 0) + 1);
	return a.filter(x => {
		const left = n.get(x) ?? 0;
		if (left > 0)
			n.set(x, left - 1);
		return left === 0;
	});
}

const brief = list => list.slice(0, 3).map(s => s.slice(0, 300)).join(' ; ') + (list.length > 3 ? ` ... ${list.length}` : '');

function sameRows(faults, what, shown, truth) {
	const extra = minus(shown, truth), missing = minus(truth, shown);
	if (extra.length > 0)
		faults.push(`${what} shown and not so: ${brief(extra)}`);
	if (missing.length > 0)
		faults.push(`${what} not shown: ${brief(missing)}`);
}

// A key that is shown must be one, and its values those of the row.
function keyFaults(faults, t, rows) {
	for (const row of rows) {
		const of = row.before ?? row.after;
		if (row.key === null) {
			if (t.keys.length > 0)
				faults.push(`${t.ref}: no key is shown`);
			continue;
		}
		const names = Object.keys(row.key).sort().join();
		if (!t.keys.some(k => [...k].sort().join() === names))
			faults.push(`${t.ref}: ${names} is no key of it`);
		for (const [name, value] of Object.entries(row.key))
			if (value !== of[name])
				faults.push(`${t.ref}: the key says ${name} ${value}, the row ${of[name]}`);
	}
}

function twice(faults, t, what, images, rows) {
	if (t.keys.length === 0)
		return;
	const keys = images.map((_, i) => JSON.stringify(t.keys[0].map(k => (rows[i])[k])));
	for (const k of minus(keys, new Set(keys)))
		faults.push(`${t.ref}: ${what} of key ${k} is shown twice`);
}

// A key that is deleted and inserted is one row that was updated.
function apart(faults, t, gone, come) {
	const keys = new Set(gone.map(r => r.key && JSON.stringify(Object.entries(r.key).sort())));
	for (const r of come)
		if (r.key && keys.has(JSON.stringify(Object.entries(r.key).sort())))
			faults.push(`${t.ref}: ${JSON.stringify(r.key)} is deleted and inserted`);
}

function tableFaults(faults, t, said, rows, before, after) {
	const olds = rows.filter(r => r.before), news = rows.filter(r => r.after);
	const was = olds.map(r => image(r.before)), now = news.map(r => image(r.after));
	// what stands on both sides is no difference
	sameRows(faults, `${t.ref}: rows taken away`, minus(was, now), minus(before, after));
	sameRows(faults, `${t.ref}: rows brought in`, minus(now, was), minus(after, before));
	for (const r of rows)
		if (r.op === 'update' && image(r.before) === image(r.after))
			faults.push(`${t.ref}: an update that changes nothing: ${image(r.before)}`);
	const of = op => rows.filter(r => r.op === op);
	const gone = of('delete').map(r => image(r.before)), come = of('insert').map(r => image(r.after));
	const both = minus(gone, minus(gone, come));
	if (both.length > 0)
		faults.push(`${t.ref}: deleted and inserted as it was: ${brief(both)}`);
	apart(faults, t, of('delete'), of('insert'));
	twice(faults, t, 'the old row', was, olds.map(r => r.before));
	twice(faults, t, 'the new row', now, news.map(r => r.after));
	keyFaults(faults, t, rows);
	for (const [op, n] of [['insert', 'inserted'], ['update', 'updated'], ['delete', 'deleted']])
		if (of(op).length !== said[n])
			faults.push(`${t.ref}: ${said[n]} ${n} are counted, ${of(op).length} shown`);
	for (const r of rows)
		if (r.collateral !== said.collateral)
			faults.push(`${t.ref}: a row says collateral ${r.collateral}, the table ${said.collateral}`);
}

// What is wrong with a shown change; nothing, one hopes.
//   before, after   the contents without and with it
//   may(ref)        why the rows of a table may be incomplete, or null
//   alone           nobody else changed anything: sizes can be compared
//   named           the tables that the statements name, null: not to be asked
export function faultsOf({ head, rows }, tables, before, after, { may = () => null, alone = false, named = null } = {}) {
	const faults = [], shown = new Map(head.tables.map(t => [t.table, t]));
	for (const t of tables) {
		const said = shown.get(t.ref), mine = rows.filter(r => r.table === t.ref);
		const was = before.get(t.ref), now = after.get(t.ref);
		shown.delete(t.ref);
		if (!said) {
			if (mine.length > 0 || minus(was, now).length > 0 || minus(now, was).length > 0)
				faults.push(`${t.ref}: changed, and not listed: ${brief(minus(was, now))} -> ${brief(minus(now, was))}`);
			continue;
		}
		if (said.complete)
			tableFaults(faults, t, said, mine, was, now);
		else if (!may(t.ref))
			faults.push(`${t.ref}: incomplete`);
		if (named && said.collateral === named.includes(t.ref))
			faults.push(`${t.ref}: collateral is ${said.collateral}`);
		if (alone && said.complete && !said.rows_estimated)
			for (const [n, list] of [['rows_before', was], ['rows_after', now]])
				if (said[n] !== undefined && said[n] !== null && said[n] !== list.length)
					faults.push(`${t.ref}: ${n} is ${said[n]}, and there are ${list.length}`);
	}
	for (const ref of [...shown.keys()].filter(ref => !may(ref)))
		faults.push(`${ref}: listed, and unknown`);
	const complete = head.tables.every(t => t.complete) && !head.reasons.some(x => x.code === 'HIDDEN_DDL');
	if (head.complete !== complete)
		faults.push(`complete is ${head.complete}, by its tables ${complete}`);
	if (!head.complete && (head.risk !== 'high' || !head.reasons.some(x => x.code === 'INCOMPLETE' || x.code === 'HIDDEN_DDL')))
		faults.push(`incomplete, risk ${head.risk}, without saying why: ${JSON.stringify(head.reasons)}`);
	const again = digest(head, rows.map(r => rowHash(r)));
	if (again !== head.digest)
		faults.push(`the digest is ${head.digest}, and recomputed ${again}`);
	const replay = replayDigest(head, rows);
	if (replay !== head.replay_digest)
		faults.push(`the replay digest is ${head.replay_digest}, and recomputed ${replay}`);
	return faults;
}

// Where two changes that did the same differ in what they show.
export function pathFaults(a, b, tables) {
	const faults = [], of = x => x.rows.map(r => JSON.stringify([r.table, r.op, r.collateral, ...['key', 'before', 'after'].map(k => r[k] && image(r[k]))]));
	// a row that moves to another partition under another key, or without one,
	// is one row only to the path that was told so
	const moves = ref => tables.find(t => t.ref === ref)?.kind === 'p';
	const whole = ({ head, rows }) => ({ head: { ...head, tables: head.tables.filter(t => !moves(t.table)) }, rows: rows.filter(r => !moves(r.table)) });
	const side = (x, k) => x.rows.filter(r => moves(r.table) && r[k]).map(r => r.table + image(r[k]));
	const moved = a.rows.some(r => moves(r.table));
	for (const k of ['before', 'after'])
		sameRows(faults, `${k} by one path and not by the other`, minus(side(a, k), side(a, k === 'after' ? 'before' : 'after')), minus(side(b, k), side(b, k === 'after' ? 'before' : 'after')));
	sameRows(faults, 'by one path and not by the other', of(whole(a)), of(whole(b)));
	for (const t of whole(a).head.tables) {
		const u = b.head.tables.find(y => y.table === t.table), say = y => y && JSON.stringify([y.inserted, y.updated, y.deleted, y.unchanged, y.collateral, y.complete]);
		if (say(t) !== say(u))
			faults.push(`${t.table}: by one path ${say(t)}, by the other ${say(u)}`);
	}
	if (faults.length === 0 && !moved && (a.head.digest !== b.head.digest || a.head.replay_digest !== b.head.replay_digest))
		faults.push(`two digests of one change: ${JSON.stringify([a.head, b.head])}`);
	return faults;
}

// Where two contents differ; for what must not have changed at all.
export function differences(tables, before, after) {
	return tables.flatMap(t => {
		const gone = minus(before.get(t.ref), after.get(t.ref)), come = minus(after.get(t.ref), before.get(t.ref));
		return gone.length + come.length > 0 ? [`${t.ref}: ${brief(gone)} -> ${brief(come)}`] : [];
	});
}
