// judge: a private server and judge.c's figures, with the goals beside them
import assert from 'node:assert/strict';
import { cpus } from 'node:os';
import { fixture } from '../e2e/lib/cases.mjs';
import { Cluster } from '../e2e/lib/cluster.mjs';
import { program, run } from '../e2e/lib/place.mjs';

const cluster = await Cluster.start();
const database = await cluster.database(fixture);
const r = await run(program('bench/judge'), [program('airlockd'), cluster.conninfo(database)], { home: cluster.dir });
await cluster.stop();
assert.equal(r.code, 0, `${r.stderr}\n${r.stdout}`);

const got = Object.fromEntries(r.stdout.trim().split('\n').map(l => {
	const [name, ...numbers] = l.split(' ');
	return [name, numbers.map(Number)];
}));
const WAYS = [['raw', 'libpg_query: raw parse'], ['tree', 'libpg_query: parse to protobuf'], ['known', 'judged, known'], ['warm', 'judged through the child, warm'],
	['cold', 'judged, the catalog asked'], ['new', 'judged, by a child just started']];
const STATEMENTS = [['update', 'a point UPDATE', 60], ['select', 'a 40-line SELECT', 350], ['insert', 'an INSERT of 1,000 rows', 6000]];

console.log(`# ${cpus()[0].model.trim()}, ${cpus().length} cores`);
console.log(`${'microseconds'.padEnd(60)}${'median'.padStart(10)}${'p99'.padStart(10)}${'goal'.padStart(8)}`);
for (const [name, what, goal] of STATEMENTS)
	for (const [way, how] of WAYS) {
		const [, median, p99] = got[`${name}.${way}`];
		const aim = way === 'warm' ? `${String(goal).padStart(8)}${median <= goal ? '  met' : '  NOT MET'}` : '';
		console.log(`${`${what}: ${how}`.padEnd(60)}${median.toFixed(1).padStart(10)}${p99.toFixed(1).padStart(10)}${aim}`);
	}
