// run: one private cluster, then the test files beside it under node --test
//   node tests/e2e/run.mjs [FILE ...]
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Cluster } from './lib/cluster.mjs';
import { tests } from './lib/place.mjs';

const e2e = join(tests, 'e2e');
const files = process.argv.length > 2 ? process.argv.slice(2)
	: readdirSync(e2e).filter(f => f.endsWith('.test.mjs')).map(f => join(e2e, f));

// Nobody may stop this one, so nothing need be on disk.
const cluster = await Cluster.start({ settings: { fsync: 'off' } });
const child = spawn(process.execPath,
	['--test', '--test-reporter=spec', '--test-concurrency=2', '--test-force-exit', ...files], {
		stdio: 'inherit',
		env: {
			...process.env,
			AIRLOCK_CLUSTER: JSON.stringify({ dir: cluster.dir, port: cluster.port }),
		},
	});
for (const signal of ['SIGINT', 'SIGTERM'])
	process.on(signal, () => child.kill(signal));
const code = await new Promise(done => child.on('exit', code => done(code ?? 1)));
await cluster.stop();
process.exitCode = code;
