// random: one case of a run, made from its seed and its number alone
import { Rand } from './rand.mjs';
import { schema } from './schema.mjs';
import { again, overtaken, statement } from './statements.mjs';

// What others do meanwhile: locks that turn a row's xmax into a multixact, and
// commits of their own on rows that are free.
function others(r, m) {
	const t = r.pick(m.tables);
	const free = `SELECT ctid FROM ONLY ${t.ref} ORDER BY a LIMIT 2 FOR UPDATE SKIP LOCKED`;
	return r.weighted([
		[3, { lock: `SELECT 1 FROM ${t.ref} WHERE id < ${r.int(1, 9)} FOR KEY SHARE SKIP LOCKED` }],
		[2, { other: t.parted ? `UPDATE ${t.ref} SET b = 'other' WHERE id = ${r.int(1, 9)}`
			: `UPDATE ONLY ${t.ref} SET a = 1, b = 'other' WHERE ctid = ANY (ARRAY(${free}))` }],
		[1, { other: `DELETE FROM ${t.ref} WHERE id = ${r.int(1, 9)}` }],
		[1, { other: 'INSERT INTO app.scratch SELECT generate_series(1, 3)' }],
	]);
}

export function makeCase(seed, index, version) {
	const r = new Rand(seed, index), m = schema(r);
	m.version = version;
	const steps = [];
	if (r.chance(0.25))
		steps.push(others(r, m));
	if (r.chance(0.15))
		steps.push(...again(r, m));
	else if (r.chance(0.15))
		steps.push(...overtaken(r, m));
	for (let n = r.weighted([[steps.length > 2 ? 5 : 0, 0], [5, 1], [3, 2], [2, 3], [1, 4]]); n > 0; n--) {
		steps.push(statement(r, m));
		if (r.chance(0.15))
			steps.push(others(r, m));
	}
	const agent = r.chance(0.15) ? 'narrow' : 'wide';
	const hides = { ...m.hides, ...agent === 'narrow' && m.narrow };
	const alone = !steps.some(s => s.other !== undefined);
	const c = { setup: m.sql, steps, agent, rollback: r.chance(0.25), twice: alone && r.chance(0.2), may: ref => hides[ref] ?? null };
	// some are searched for by the map: more, where they are searched for at all
	c.spread = r.chance(c.twice ? 0.5 : 0.1);
	return c;
}

export const describe = c => [...c.setup, ...c.steps.map(s =>
	(s.sql !== undefined ? `-- ${c.agent}, ${s.form}: ${JSON.stringify(s.params ?? [])}\n${s.sql}` : `-- ${JSON.stringify(s)}`))].join('\n');
