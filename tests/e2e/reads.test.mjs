// reads: nothing harmless is kept out, and what is read is what psql reads
//   READS, SIEGE_SEED: how many statements, and which
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { APP, bindir } from './lib/cluster.mjs';
import { run } from './lib/place.mjs';
import { outcome, release, world } from './lib/world.mjs';
import { Pipe } from '../siege/pipe.mjs';
import { amount, Random, seed } from '../siege/random.mjs';
import { reads, setup } from '../siege/reads.mjs';

after(release);

const N = amount('READS', 250);
const PINS = `SET DateStyle = 'ISO, MDY'; SET IntervalStyle = postgres; SET TimeZone = 'UTC'; SET extra_float_digits = 1;
SET bytea_output = hex; SET xmloption = content; SET lc_monetary = 'C'; SET search_path = "$user", public, pg_temp;
SET default_transaction_read_only = on; SET statement_timeout = '10s';
\\pset format csv
\\pset null '<NULL>'
`;

// Rows of comma-separated values as psql writes them; a quoted field is never
// NULL.
function csv(text) {
	const rows = [];
	let row = [], at = 0;
	while (at < text.length) {
		const m = /"((?:[^"]|"")*)"|([^,\n]*)/y;
		m.lastIndex = at;
		const [all, quoted, bare] = m.exec(text);
		row.push(quoted !== undefined ? quoted.replaceAll('""', '"') : bare === '<NULL>' ? null : bare);
		at += all.length;
		if (text[at] === '\n' || at >= text.length) {
			rows.push(row);
			row = [];
		}
		at++;
	}
	return rows;
}

// What psql answers to each, all in one session: { state, columns, rows }.
async function psql(w, statements) {
	const mark = '--8<--';
	const script = statements.map(s => `${s}\n;\n\\echo ${mark} :SQLSTATE\n`).join('');
	const { stdout, code } = await run(join(bindir, 'psql'), ['-X', '-q', '-d', w.cluster.conninfo(w.database, APP), '-f', '-'],
		{ home: w.cluster.dir, input: PINS + script });
	assert.equal(code, 0);
	const answers = [];
	let from = 0;
	for (const m of stdout.matchAll(new RegExp(`^${mark} (.*)\\n`, 'gm'))) {
		const [columns, ...rows] = csv(stdout.slice(from, m.index));
		answers.push({ state: m[1], columns, rows });
		from = m.index + m[0].length;
	}
	assert.equal(answers.length, statements.length);
	return answers;
}

const sorted = rows => rows.map(r => JSON.stringify(r)).sort();

// How an answer differs from psql's, in words, or nothing.
function difference(v, got, want) {
	if (want.state !== '00000')
		return got.error ? null : `${got.outcome}, psql ${want.state}`;
	if (got.outcome !== 'rows')
		return `${got.outcome}: ${got.text.slice(0, 300)}`;
	if (!v.compare)
		return null;
	const { columns, rows, truncated, cut } = got.json;
	const names = columns.map(c => c.name);
	const whole = truncated ? want.rows.slice(0, rows.length) : want.rows;
	const expected = cut ? whole.map((r, y) => r.map((x, c) => (cut.some(q => q.row === y && q.column === c) ? rows[y][c] : x))) : whole;
	if (JSON.stringify(names) !== JSON.stringify(want.columns))
		return `columns ${JSON.stringify(names)}, psql ${JSON.stringify(want.columns)}`;
	if (JSON.stringify(rows) === JSON.stringify(expected))
		return null;
	if (!truncated && JSON.stringify(sorted(rows)) === JSON.stringify(sorted(expected)))
		return null; // the order is nobody's promise
	return `${JSON.stringify(rows).slice(0, 300)}\n  psql ${JSON.stringify(expected).slice(0, 300)}`;
}

test(`${N} reads, seed ${seed}`, async t => {
	const w = await world(t, { setup });
	const pipe = Pipe.open(w.daemon);
	t.after(() => pipe.close());
	const all = [...reads(new Random(seed), N)];
	const wanted = await psql(w, all.map(v => v.plain));
	const faults = [];
	let sound = 0;
	await Pipe.all(all.map((v, i) => [v, wanted[i]]), 8, async ([v, want]) => {
		const got = await pipe.call('db_query', { sql: v.sql, params: v.params, max_rows: 500 });
		const d = difference(v, got, want);
		sound += want.state === '00000';
		if (d)
			faults.push(`${v.kind}: ${d}\n  ${JSON.stringify(v.sql)} ${JSON.stringify(v.params)}`);
	});
	t.diagnostic(`${sound} of ${N} are answered with rows by psql`);
	assert.equal(faults.length, 0, `${faults.length}:\n${faults.slice(0, 10).join('\n')}`);
	assert.ok(sound > 0.9 * N, `${sound} of ${N} run at all`);
});

// An INSERT of so many bytes: the last value fills it up.
function insert(bytes) {
	let sql = 'INSERT INTO invoice (invoice_id, parcel_id, cents, paid) VALUES (100000, 1, 5, false)';
	let n = 100001;
	for (let more; sql.length + (more = `, (${n}, ${n % 5000}, 5, true)`).length + 8 <= bytes; n++)
		sql += more;
	return { sql: `${sql} /*${'x'.repeat(bytes - sql.length - 5)}*/`, rows: n - 100000 };
}

test('harmless writes are let in, up to the size limit', async t => {
	const w = await world(t, { setup });
	const held = async (sql, params) => {
		const { json, text } = await w.agent.execute(sql, params && { params });
		assert.equal(json?.status, 'pending', `${sql.slice(0, 200)}: ${text}`);
		assert.equal((await w.agent.call('db_withdraw', { change_id: json.change_id })).json.status, 'rolled_back');
		return { ...json, codes: json.reasons.map(r => r.code) };
	};

	for (const bytes of [30000, 65535, 65536]) {
		const { sql, rows } = insert(bytes);
		assert.equal(Buffer.byteLength(sql), bytes);
		const { tables } = await held(sql);
		assert.deepEqual([tables[0].table, tables[0].inserted], ['public.invoice', rows]);
	}
	assert.equal(outcome(await w.agent.execute(insert(65537).sql)), 'STATEMENT_TOO_LARGE');

	const moved = await held('INSERT INTO invoice (invoice_id, cents) VALUES (nextval(\'ticket_no\') + 70000, 1)');
	assert.ok(moved.codes.includes('SEQUENCE') || /ticket_no/.test(JSON.stringify(moved.effects)), JSON.stringify(moved));
	const ids = Array.from({ length: 5000 }, (_, i) => 5001 + i);
	for (const [sql, params] of [
		['INSERT INTO touched (id, v, updated_at) VALUES (500, 1, now())'],
		['INSERT INTO touched (id, v, updated_at) VALUES (501, 1, current_timestamp), (502, 2, clock_timestamp());'],
		['INSERT INTO tariff (code, cents) VALUES (gen_random_uuid()::text, (random() * 100)::int) -- twice'],
		['UPDATE touched SET v = (random() * 10)::int WHERE id = 1'],
		['UPDATE tariff SET code = md5(random()::text) WHERE tariff_id = $1', ['2']],
		['UPDATE parcel SET sent_at = statement_timestamp(), state = label_of(3) WHERE parcel_id = 7'],
		['INSERT INTO tariff (code) SELECT twice(code) FROM tariff WHERE cents < 3 RETURNING tariff_id, code'],
		['/* tidy */ DELETE FROM "invoice" WHERE "invoice_id" IN (1, 2, 3) ;; -- done'],
		[`DELETE FROM invoice WHERE invoice_id IN (1, ${ids.join(', ')})`],
		['INSERT INTO depot (depot_id, label) VALUES (U&\'\\0031\'::int, $$x$$) ON CONFLICT (depot_id) DO UPDATE SET label = EXCLUDED.label'],
		['WITH s AS (SELECT depot_id FROM depot ORDER BY random() LIMIT 1) UPDATE courier SET badge_pin = \'x\' WHERE courier_id = 1 AND EXISTS (TABLE s)'],
		['MERGE INTO tariff t USING (VALUES (1, 5), (99, 6)) v(id, c) ON t.tariff_id = v.id WHEN MATCHED THEN UPDATE SET cents = v.c WHEN NOT MATCHED THEN INSERT (code, cents) VALUES (\'n\', v.c)'],
		['INSERT INTO "Manifest" TABLE "Manifest" ON CONFLICT DO NOTHING'],
	])
		await held(sql, params);
	assert.deepEqual(await w.operator.pending(), []);
});
