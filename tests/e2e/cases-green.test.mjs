// cases-green: what honest agents send is answered, or held with the right diff
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fixture, here, load } from './lib/cases.mjs';
import { cluster, release } from './lib/cluster.mjs';
import { outcome, world } from './lib/world.mjs';

let base;
before(async () => {
	base = await (await cluster()).database(fixture);
});
after(release);

// Reads: the rows, or a function of the answer that holds.
const count = n => a => assert.equal(a.row_count, n);
const reads = {
	'green-06': count(47),
	'green-11': [['1', 'name 1'], ['21', 'name 21'], ['41', 'name 41']],
	'green-12': count(20),
	'green-13': [['depot 1'], ['depot 5'], ['depot 9'], ['depot 13'], ['depot 17']],
	'green-14': [['depot 5']],
	'green-17': count(1),
	'green-18': [['depot 6']],
	'green-24': [],
	'green-27': [['100', 'lost']],
	'green-28': [['50']],
	'green-29': [['1'], ['2']],
	'gap-g10': [],
	'gap-g13': a => {
		assert.deepEqual(a.columns.map(c => c.name), ['depot_id', 'depot_id']);
		assert.deepEqual(text(a.rows), [['1', '1']]);
	},
};
const text = rows => rows.map(row => row.map(v => (v === null ? null : String(v))));

// Writes: table, counts, and what the first row of the diff was and became;
// a column that the server makes anew each time is null here.
const writes = {
	'green-08': ['public.tariff', { updated: 1 },
		{ tariff_id: '2', code: 't2', cents: '2' }, { tariff_id: '2', code: 't2', cents: '499' }],
	'green-09': ['public.invoice', { deleted: 1 },
		{ invoice_id: '12', parcel_id: '12', cents: '100', paid: 't' }, null],
	'green-10': ['public.tariff', { inserted: 1 },
		null, { tariff_id: '31', code: 'promo', cents: '250' }],
	'green-16': ['public.invoice', { updated: 1 },
		{ invoice_id: '33', parcel_id: '33', cents: '100', paid: 'f' },
		{ invoice_id: '33', parcel_id: '33', cents: '100', paid: 't' }],
	'green-25': ['public.parcel', { updated: 60 },
		{ parcel_id: '1', depot_id: '2', weight_g: '1', state: 'lost' },
		{ parcel_id: '1', depot_id: '2', weight_g: '1', state: 'found' }],
	'green-26': ['public.invoice', { inserted: 3 },
		null, { invoice_id: '9001', parcel_id: '1', cents: '5', paid: 'f' }],
	'gap-g02': ['public.tariff', { inserted: 1 },
		null, { tariff_id: '31', code: 'ret', cents: '1' }, [['31']]],
	'gap-g03': ['public.tariff', { updated: 1 },
		{ tariff_id: '1', code: 't1', cents: '1' }, { tariff_id: '1', code: 't1', cents: '7' }],
	'gap-g04': ['public.tariff', { inserted: 1 },
		null, { tariff_id: '31', code: null, cents: '0' }],
	'gap-g05': ['public.tariff', { inserted: 1 },
		null, { tariff_id: '31', code: 'one', cents: '1' }],
	'gap-g06': ['public.touched', { updated: 1 },
		{ id: '1', v: '0' }, { id: '1', v: '1' }],
	'gap-g07': ['public.shipper', { updated: 1 },
		{ shipper_id: '1', name: 'x' }, { shipper_id: '1', name: 'y' }],
	'gap-g09': ['public.invoice', { inserted: 60 },
		null, { invoice_id: '20000', parcel_id: '0', cents: '1', paid: 'f' }],
	'gap-g11': ['public.parcel', { updated: 1 },
		{ parcel_id: '40', state: 'lost' }, { parcel_id: '40', state: 'r' }, [['r']]],
};

const nothing = ['green-22', 'green-23'];

const part = (whole, of) => of && Object.fromEntries(Object.keys(of).map(k => [k, whole?.[k]]));

async function checkWrite(w, sql, [table, counts, before, after, returned]) {
	const answer = await w.agent.execute(sql);
	assert.equal(outcome(answer), 'pending', answer.text);
	const { change_id, tables, complete } = answer.json;
	assert.equal(complete, true, 'the diff shows everything');
	assert.equal(tables.length, 1);
	const { inserted, updated, deleted, collateral } = tables[0];
	assert.deepEqual({ table: tables[0].table, inserted, updated, deleted, collateral },
		{ table, inserted: 0, updated: 0, deleted: 0, collateral: false, ...counts });
	if (returned)
		assert.deepEqual(text(answer.json.returned.rows), returned);

	const { head, rows } = await w.operator.show(change_id);
	assert.equal(head.complete, true);
	assert.equal(rows.length, Object.values(counts)[0]);
	const [row] = rows;
	assert.equal(row.op, { inserted: 'insert', updated: 'update', deleted: 'delete' }[Object.keys(counts)[0]]);
	assert.deepEqual(before && part(row.before, before), before);
	assert.deepEqual(after && part(row.after, after), after);
	await w.operator.rollback(change_id, 'only a test');
	assert.equal((await w.agent.status(change_id)).json.status, 'rolled_back');
}

test('green', async t => {
	const known = [...Object.keys(reads), ...Object.keys(writes), ...nothing];
	assert.deepEqual(known.sort(), here('green', 'cases-green.test.mjs').sort());
	for (const c of load('green'))
		await t.test(`${c.id}: ${c.why}`, async t => {
			const w = await world(t, { from: base });
			if (c.id in writes)
				return checkWrite(w, c.sql, writes[c.id]);
			const answer = await w.agent.call(c.tool, { sql: c.sql });
			if (nothing.includes(c.id))
				return assert.equal(outcome(answer), 'NOTHING_TO_RUN', answer.text);
			assert.equal(outcome(answer), 'rows', answer.text);
			const expected = reads[c.id];
			if (typeof expected === 'function')
				expected(answer.json);
			else
				assert.deepEqual(text(answer.json.rows), expected);
		});
});
