// hunt: looks for one case that shows a fault of the build, and stops there
//   sh tests/stage.sh node tests/oracle/hunt.mjs
// Exits 0 with a fault found, 1 without.  ORACLE_SEED and ORACLE_CASES as for
// the oracle.
import { asCase, named } from './named.mjs';
import { makeCase } from './random.mjs';
import { Rig } from './rig.mjs';

const seed = Number(process.env.ORACLE_SEED ?? 1), cases = Number(process.env.ORACLE_CASES ?? 400);
const rig = await Rig.start();

async function fault(name, c) {
	let faults;
	try {
		({ faults } = await rig.run(c));
	} catch (e) {
		faults = [e.stack];
	}
	if (faults.length > 0)
		console.log(`${name}: ${faults[0].slice(0, 300)}`);
	return faults.length > 0;
}

async function hunt() {
	for (const [name, c] of Object.entries(named))
		if (await fault(`named case '${name}'`, asCase(c)))
			return true;
	for (let i = 0; i < cases; i++)
		if (await fault(`case ${i} of seed ${seed}`, makeCase(seed, i, rig.version)))
			return true;
	return false;
}

const found = await hunt();
await rig.stop().catch(() => {}); // the daemon may have died of it
process.exit(found ? 0 : 1);
