// oracle: what tables hold before and after says what a diff must show
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { asCase, named } from './named.mjs';
import { describe, makeCase } from './random.mjs';
import { Rig } from './rig.mjs';

const SEED = Number(process.env.ORACLE_SEED ?? 1);
const CASES = Number(process.env.ORACLE_CASES ?? 200);
const PIECE = 40;

let rig;
before(async () => { rig = await Rig.start(); });
after(() => rig.stop());

for (const [name, c] of Object.entries(named))
	test(name, async () => {
		const { faults } = await rig.run(asCase(c));
		assert.deepEqual(faults, []);
	});

// How often each thing has happened, so that none of it can quietly stop.
const tally = {};
for (let from = 0; from < CASES; from += PIECE)
	test(`random cases ${from} to ${Math.min(CASES, from + PIECE) - 1} of seed ${SEED}`, async () => {
		const wrong = [];
		for (let i = from; i < Math.min(CASES, from + PIECE); i++) {
			const c = makeCase(SEED, i, rig.version);
			const x = await rig.run(c);
			for (const [word, n] of Object.entries(x.tally))
				tally[word] = (tally[word] ?? 0) + n;
			if (x.faults.length > 0)
				wrong.push(`case ${i} (ORACLE_SEED=${SEED} ORACLE_ONLY=${i} node tests/oracle/run.mjs)\n${x.faults.join('\n')}\n${describe(c)}`);
		}
		assert.equal(wrong.length, 0, wrong.join('\n\n'));
	});

test('the cases were worth running', { skip: CASES < 100 }, async () => {
	const failed = Object.entries(tally).filter(([w]) => /^[0-9A-Z]{5}$/.test(w)).reduce((sum, [, n]) => sum + n, 0);
	assert.ok(tally.complete > CASES * 0.6, JSON.stringify(tally));
	assert.ok(tally.pending > 3 * failed, JSON.stringify(tally));
	assert.ok(tally['rolled back'] > CASES * 0.1, JSON.stringify(tally));
	assert.ok(!rig.maps || await rig.mapped() > 0, 'no map was asked for');
});
