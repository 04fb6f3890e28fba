// guard: the operator guard's scenarios, one test a round of them
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { build, finished, tests } from './lib/place.mjs';

test('operator guard: scenarios on real processes', async t => {
	const child = spawn('sh', [join(tests, 'guard/run.sh')], {
		env: { ...process.env, AIRLOCK_BUILD: build },
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	const { code, stdout, stderr } = await finished(child);
	const skipped = stdout.match(/^SKIPPED.*|.*SKIPPED, .*$/gm) ?? [];
	for (const line of skipped)
		t.diagnostic(line);
	if (/all skipped$/.test(stdout.trim()))
		return t.skip(skipped[0]);
	assert.equal(code, 0, stdout.replace(/^ok .*\n/gm, '') + stderr);
	assert.match(stdout.trim(), / passed, 0 failed, \d+ skipped$/);
});
