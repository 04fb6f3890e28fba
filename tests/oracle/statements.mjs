// statements: random writes over a random schema, some of which must fail
//
// A statement: { sql, params?, named: the tables it names, or null where it goes
// through a view or the like and that is no simple question }.
import { ident, kOf, tuple, value, writable } from './schema.mjs';

const names = cols => cols.map(c => ident(c.name)).join(', ');
const settable = t => writable(t).filter(c => c.value && !['id', 'k', 's', 'p'].includes(c.name));

function where(r) {
	return r.pick([
		() => `a > ${r.int(-20, 20)}`,
		() => `a BETWEEN ${r.int(-20, 0)} AND ${r.int(0, 20)}`,
		() => `id = ${r.int(1, 8)}`,
		() => `id IN (${r.int(1, 5)}, ${r.int(1, 9)})`,
		() => 'b <> \'\' OR a IS NULL',
		() => 'id % 2 = 0',
		() => 'true',
		() => `id < ${r.int(1, 6)}`,
		() => 'false',
		() => `a = (SELECT max(n) FROM app.counters) OR id > ${r.int(1, 8)}`,
	])();
}

function sets(r, t) {
	const list = r.some(settable(t), r.int(1, 2)).map(c => `${ident(c.name)} = ${r.weighted([
		[6, value(r, c)], [1, ident(c.name)], [1, 'DEFAULT']])}`);
	if (r.chance(0.5) && !list.some(s => s.startsWith('a =')))
		list.push(r.pick(['a = a + 1', 'a = a', 'a = -a', 'a = id', `a = ${r.int(-5, 15)}`]));
	return list.join(', ');
}

// What an inserted row begins with: ids that are new, or that are there.
function fixedOf(r, t, i, fresh) {
	const id = fresh ? 20 + i : r.int(1, 12), fixed = { id: String(id), k: kOf(t, id) };
	if (t.cols.some(c => c.name === 's'))
		fixed.s = `'${r.pick(['x', 'y', 'z'])}'`;
	return fixed;
}

function insert(r, t, { fresh = r.chance(0.8), rows = r.int(1, 4) } = {}) {
	let cols = writable(t), over = '';
	if (t.keyed.filled) {
		if (r.chance(0.5))
			cols = cols.filter(c => c.name !== 'id');
		else if (t.keyed.always)
			over = ` OVERRIDING ${r.pick(['SYSTEM', 'SYSTEM', 'USER'])} VALUE`;
	}
	const list = Array.from({ length: rows }, (_, i) => tuple(r, cols, fixedOf(r, t, i, fresh)));
	return { sql: `INSERT INTO ${t.ref} (${names(cols)})${over} VALUES ${list.join(', ')}`, named: [t.ref] };
}

// What follows ON CONFLICT: a target that fits, or one that does not.
function conflict(r, t) {
	const key = t.key ?? ['id'], self = ident(t.ref.split('.').pop().replaceAll('"', ''));
	const where = r.chance(0.2) ? ` WHERE ${r.pick(['excluded.a > 0', `${self}.a > 0`, 'false'])}` : '';
	return ` ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${r.weighted([
		[6, 'b = excluded.b || \'+\''], [2, `a = ${self}.a + 1`], [2, 'id = excluded.id + 100'], [2, 'b = excluded.b, a = excluded.a'],
		[1, `(a, b) = (SELECT excluded.a + 1, ${self}.b)`], [1, `b = ${self}.b`]])}${where}${r.chance(0.1) ? ' RETURNING *' : ''}`;
}

const FORMS = {
	insert: (r, m, t) => {
		const s = insert(r, t);
		return { ...s, sql: s.sql + (r.chance(0.2) ? r.pick([' RETURNING *', ' RETURNING id, a', ' RETURNING b AS x']) : '') };
	},
	copy: (r, m, t) => {
		const cols = writable(t);
		const from = cols.map(c => (c.name === 'id' ? `id + ${r.pick([20, 50, 0])}` : c.name === 'k' ? kOf(t, '(id + 50)') : ident(c.name)));
		return { sql: `INSERT INTO ${t.ref} (${names(cols)})${t.keyed.always ? ' OVERRIDING SYSTEM VALUE' : ''}
			SELECT ${from.join(', ')} FROM ${t.ref} WHERE ${where(r)}`, named: [t.ref] };
	},
	empty: (r, m, t) => ({ sql: `INSERT INTO ${t.ref} DEFAULT VALUES`, named: [t.ref] }),
	nothing: (r, m, t) => ({ ...insert(r, t, { fresh: false }), more: ' ON CONFLICT DO NOTHING' }),
	upsert: (r, m, t) => ({
		...insert(r, t, { fresh: false, rows: r.int(1, 3) }),
		more: conflict(r, t),
	}),
	update: (r, m, t) => ({ sql: `UPDATE ${t.ref} SET ${sets(r, t)} WHERE ${where(r)}${r.chance(0.15) ? ' RETURNING id, b' : ''}`, named: [t.ref] }),
	only: (r, m, t) => ({ sql: `UPDATE ONLY ${t.ref} AS x SET a = x.a + 1 WHERE x.id < 5`, named: [t.ref] }),
	rekey: (r, m, t) => ({ sql: `UPDATE ${t.ref} SET ${r.pick([`id = id + ${r.pick([100, 1000])}`, 'id = -id', 'id = id + 1', 'id = id * 3'])} WHERE ${where(r)}`, named: [t.ref] }),
	move: (r, m, t) => ({ sql: `UPDATE ${t.ref} SET ${t.list ? `s = '${r.pick(['x', 'y', 'z'])}'` : `id = id + ${r.int(3, 30)}`}, b = 'moved' WHERE ${where(r)}`, named: [t.ref] }),
	from: (r, m, t) => ({ sql: `UPDATE ${t.ref} AS x SET b = v.b, a = v.i FROM (VALUES (1, 'one'), (2, 'two'), (2, 'two'), (5, '')) v(i, b) WHERE x.id = v.i`, named: [t.ref] }),
	self: (r, m, t) => ({ sql: `UPDATE ${t.ref} AS x SET b = y.b FROM ${t.ref} AS y WHERE y.id = x.id + 1 AND x.${where(r).startsWith('id') ? 'id' : 'a'} < ${r.int(0, 10)}`, named: [t.ref] }),
	cte: (r, m, t) => ({ sql: `WITH q AS (SELECT id AS i FROM ${t.ref} WHERE ${where(r)}) UPDATE ${t.ref} SET b = 'cte' FROM q WHERE id = q.i`, named: [t.ref] }),
	remove: (r, m, t) => ({ sql: `DELETE FROM ${t.ref} WHERE ${where(r)}${r.chance(0.15) ? ' RETURNING *' : ''}`, named: [t.ref] }),
	using: (r, m, t) => ({ sql: `DELETE FROM ${t.ref} AS x USING ${t.ref} AS y WHERE x.id = y.id + ${r.int(0, 2)} AND y.a > ${r.int(-15, 15)}`, named: [t.ref] }),
	merge: (r, m, t) => {
		const cols = writable(t);
		return m.version < 15 ? FORMS.update(r, m, t) : { sql: `MERGE INTO ${t.ref} AS x
			USING (SELECT id AS i, a AS n FROM ${t.ref} UNION ALL VALUES (31, 1), (32, 2)) s ON x.id = s.i
			WHEN MATCHED AND s.n > ${r.int(0, 15)} THEN DELETE
			WHEN MATCHED AND s.n > ${r.int(-20, 0)} THEN UPDATE SET ${sets(r, t)}
			WHEN MATCHED THEN DO NOTHING
			WHEN NOT MATCHED THEN INSERT (${names(cols)}) ${t.keyed.always ? 'OVERRIDING SYSTEM VALUE' : ''} VALUES ${tuple(r, cols, { ...fixedOf(r, t, 0, true), id: 's.i', k: kOf(t, 's.i') })}`, named: [t.ref] };
	},
	several: (r, m, t) => {
		const u = r.pick(m.tables);
		return { sql: `WITH d AS (DELETE FROM ${t.ref} WHERE ${where(r)} RETURNING id, b),
			u AS (UPDATE ${u.ref} SET ${sets(r, u)} WHERE ${where(r)} RETURNING 1)
			INSERT INTO app.audit (tab, op, was) SELECT 'cte', d.id::text, d.b FROM d`, named: [t.ref, u.ref, 'app.audit'] };
	},
	twice: (r, m, t) => ({ sql: `WITH u AS (UPDATE ${t.ref} SET b = 'u' WHERE ${where(r)} RETURNING id)
		SELECT count(*) FROM u`, named: [t.ref] }),
	calling: (r, m, t) => (m.functions.length === 0 ? FORMS.remove(r, m, t) : { sql: `UPDATE ${t.ref} SET a = ${r.pick(m.functions)}(id) WHERE ${where(r)}`, named: [t.ref] }),
	counters: (r) => ({ sql: `UPDATE app.counters SET n = n + ${r.int(0, 2)} WHERE name <> $1`, params: [r.pick(['UPDATE', 'DELETE', 'x'])], named: ['app.counters'] }),
	wrong: (r, m, t) => ({ sql: r.pick([`UPDATE ${t.ref} SET a = 1 / (id - id)`, `INSERT INTO ${t.ref} (id, a) VALUES (1, 'x')`, `DELETE FROM ${t.ref} WHERE nowhere = 1`,
		`UPDATE ${t.ref} SET a = 2147483647 + id`]), named: [t.ref] }),
};
const WEIGHTS = [[6, 'insert'], [3, 'copy'], [1, 'empty'], [1, 'nothing'], [4, 'upsert'], [10, 'update'], [1, 'only'], [3, 'rekey'], [2, 'move'],
	[2, 'from'], [1, 'self'], [2, 'cte'], [7, 'remove'], [2, 'using'], [4, 'merge'], [3, 'several'], [1, 'twice'], [2, 'calling'], [1, 'counters'], [1.5, 'wrong']];

// Rows taken away and put back under the same key, keys that change places and
// are given to others: several statements on the same few rows.
export function again(r, m) {
	const t = r.pick(m.tables), cols = writable(t), low = r.int(1, 4), high = low + r.int(0, 3);
	const always = t.keyed.always ? ' OVERRIDING SYSTEM VALUE' : '';
	const rows = Array.from({ length: high - low + 1 }, (_, i) => tuple(r, cols, { ...fixedOf(r, t, 0, true), id: String(low + i), k: kOf(t, low + i) }));
	const put = { form: 'put back', sql: `INSERT INTO ${t.ref} (${names(cols)})${always} VALUES ${rows.join(', ')}` };
	const range = `id BETWEEN ${low} AND ${high}`;
	const take = { form: 'take away', sql: `DELETE FROM ${t.ref} WHERE ${range}` };
	const same = { form: 'put back as it was', sql: `WITH d AS (DELETE FROM ${t.ref} WHERE ${range} RETURNING *)
		INSERT INTO ${t.ref} (${names(cols)})${always} SELECT ${names(cols)} FROM d` };
	const off = { form: 'rekey', sql: `UPDATE ${t.ref} SET id = id + 300${t.keyed.k ? `, k = ${kOf(t, '(id + 300)')}` : ''} WHERE ${range}` };
	const back = { form: 'rekey', sql: `UPDATE ${t.ref} SET id = id - 300${t.keyed.k ? `, k = ${kOf(t, '(id - 300)')}` : ''} WHERE id > 300` };
	const write = { form: 'write', sql: `UPDATE ${t.ref} SET ${sets(r, t)} WHERE ${range}` };
	const upsert = { form: 'upsert', sql: put.sql + conflict(r, t) };
	return r.pick([[take, put], [take, put, write], [take, put, take], [off, put], [off, back], [off, put, take, back], [same], [same, write],
		[write, take, upsert], [upsert, take], [off, upsert], [put, off, upsert]]).map(s => ({ ...s, named: [t.ref] }));
}

// Between two statements somebody else takes rows away, or their keys, that the
// second writes, or that a trigger of it does.
export function overtaken(r, m) {
	const t = r.pick(m.tables), u = r.pick(m.tables), n = r.int(1, 8);
	const theirs = r.pick([`DELETE FROM ${t.ref} WHERE id = ${n}`, `DELETE FROM ${t.ref} WHERE id BETWEEN ${n} AND ${n + 2}`,
		`UPDATE ${t.ref} SET id = id + 700 WHERE id = ${n}`]);
	const cols = writable(t), always = t.keyed.always ? ' OVERRIDING SYSTEM VALUE' : '';
	const rows = [n, n + 1].map(i => tuple(r, cols, { ...fixedOf(r, t, 0, true), id: String(i), k: kOf(t, i) }));
	const put = `INSERT INTO ${t.ref} (${names(cols)})${always} VALUES ${rows.join(', ')}`;
	return [r.pick([{ ...insert(r, t), form: 'insert' }, { form: 'update', sql: `UPDATE ${u.ref} SET ${sets(r, u)} WHERE ${where(r)}`, named: [u.ref] },
		{ form: 'nothing', sql: `${put} ON CONFLICT DO NOTHING`, named: [t.ref] }]),
	{ other: theirs },
	{ form: 'overtaken', sql: put + (r.chance(0.7) ? conflict(r, t) : ''), named: [t.ref] }];
}

export function statement(r, m) {
	const form = r.weighted(WEIGHTS), t = r.pick(r.chance(0.3) && m.views.length > 0 ? m.views : m.tables);
	const s = FORMS[form](r, m, t);
	const out = { form, sql: s.sql + (s.more ?? ''), params: s.params, named: t.view ? null : s.named };
	if (r.chance(0.1))
		out.sql += r.pick([';', ' -- done', ' /* done */ ;']);
	return out;
}
