// limits-server: how many reads run at once, under, at and over reads_max
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { outcome, release, world } from './lib/world.mjs';
import { Pipe } from '../siege/pipe.mjs';

after(release);

// Links are for held changes and reads together: with one of either, two.
test('reads_max', async t => {
	const w = await world(t, { setup: 'CREATE TABLE t(id int PRIMARY KEY)', config: '[airlock]\nreads_max = 1\nchanges_max = 1\nread_timeout = 3s\n' });
	const pipe = Pipe.open(w.daemon);
	t.after(() => pipe.close());
	const read = () => pipe.call('db_query', { sql: 'SELECT count(*) FROM generate_series(1, 1000000000)' });
	for (const n of [1, 2, 3]) {
		const answers = (await Promise.all(Array.from({ length: n }, read))).map(a => a.outcome);
		const ran = answers.filter(o => o === '57014').length;
		assert.deepEqual([ran, answers.length - ran], [Math.min(n, 2), Math.max(n - 2, 0)], `${n}: ${answers}`);
		assert.equal(outcome(await w.agent.query('SELECT 1')), 'rows', 'the next call works');
	}
});
