// siege: variants of the red cases made by machine, through both tools; none
// gets in, and none leaves a trace
//   SIEGE_VARIANTS, SIEGE_SEED: how many, and which
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ground, traces } from '../siege/ground.mjs';
import { variants } from '../siege/mutate.mjs';
import { Pipe } from '../siege/pipe.mjs';
import { amount, seed } from '../siege/random.mjs';

const N = amount('SIEGE_VARIANTS', 600);
const SECONDS = /^(57014|25P03|08\w{3})$/; // a timeout is no refusal

const refused = o => /^[A-Z][A-Z_]+$/.test(o);
const failed = o => /^[0-9A-Z]{5}$/.test(o) && !SECONDS.test(o);
const line = (v, o, text) => `${o} for ${v.how.join('+')} of ${v.from}:\n  ${JSON.stringify(v.sql)}\n  ${text.slice(0, 200)}`;

// What an answer shows of a variant that got in, or nothing.
function fault(v, tool, a) {
	const exact = { db_query: v.read, db_execute: v.write }[tool];
	const may = { db_query: v.query, db_execute: v.execute }[tool];

	if (exact ? a.outcome === exact : refused(a.outcome) || failed(a.outcome) || a.outcome === may)
		return null;
	return line(v, `${tool} ${a.outcome}`, a.text);
}

function tally(counts) {
	return Object.entries(counts).sort(([, a], [, b]) => b - a).map(([o, n]) => `${o} ${n}`).join(', ');
}

test(`${N} variants, seed ${seed}`, async t => {
	const w = await ground(t);
	const was = await w.state();
	const all = [...variants(seed, N, { victim: w.victim.pid, dblink: w.cluster.conninfo(w.database, 'postgres') })];
	const faults = [], counts = {};
	const see = (v, tool, a) => {
		counts[a.outcome] = (counts[a.outcome] ?? 0) + 1;
		const f = fault(v, tool, a);
		if (f)
			faults.push(f);
	};

	await t.test('through db_query', async () => {
		await Pipe.all(all, 12, async v => {
			see(v, 'db_query', await w.pipe.call('db_query', { sql: v.sql, params: v.params }));
		});
		t.diagnostic(`db_query: ${tally(counts)}`);
		assert.deepEqual(faults, []);
		assert.deepEqual(await traces(w, was), []);
	});

	// one after the other: a held write keeps its rows from the next
	await t.test('through db_execute', async () => {
		for (const o of Object.keys(counts))
			delete counts[o];
		faults.length = 0;
		await Pipe.all(all, 1, async v => {
			const a = await w.pipe.call('db_execute', { sql: v.sql, params: v.params });
			see(v, 'db_execute', a);
			if (a.json?.change_id) {
				const back = await w.pipe.call('db_withdraw', { change_id: a.json.change_id });
				assert.equal(back.outcome, 'rolled_back', back.text);
			}
		});
		t.diagnostic(`db_execute: ${tally(counts)}`);
		assert.deepEqual(faults, []);
		assert.deepEqual(await traces(w, was, { sequences: false }), []);
		assert.deepEqual(await w.operator.pending(), []);
	});
});
