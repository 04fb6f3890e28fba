// run: random cases without a test around them
//   ORACLE_CASES=2000 ORACLE_SEED=7 sh tests/stage.sh node tests/oracle/run.mjs
//   ORACLE_SEED=7 ORACLE_ONLY=1234 ... for one of them, in full
import { describe, makeCase } from './random.mjs';
import { Rig } from './rig.mjs';

const seed = Number(process.env.ORACLE_SEED ?? 1), only = process.env.ORACLE_ONLY;
const from = Number(process.env.ORACLE_FROM ?? 0), cases = Number(process.env.ORACLE_CASES ?? 200);
const rig = await Rig.start();
const tally = {}, began = Date.now();
let wrong = 0;

for (let i = only !== undefined ? Number(only) : from; i < (only !== undefined ? Number(only) + 1 : from + cases); i++) {
	const c = makeCase(seed, i, rig.version);
	let faults, x;
	try {
		x = await rig.run(c);
		faults = x.faults;
		for (const [k, n] of Object.entries(x.tally))
			tally[k] = (tally[k] ?? 0) + n;
	} catch (e) {
		faults = [e.stack];
	}
	if (only !== undefined)
		console.log(describe(c), JSON.stringify(x?.shown, null, 1), rig.daemon.log.text(), rig.cluster.log.text());
	if (faults.length > 0) {
		wrong++;
		console.log(`--- case ${i} of seed ${seed}\n${c.steps.map(s => s.sql ?? JSON.stringify(s)).join('\n')}\n  ${faults.join('\n  ')}`);
	}
	if (!rig.daemon.running) {
		console.log(rig.daemon.log.text().slice(-3000));
		break;
	}
}
console.log(JSON.stringify(tally), `${wrong} wrong`, `${Date.now() - began} ms`);
await rig.stop();
process.exitCode = wrong > 0 ? 1 : 0;
