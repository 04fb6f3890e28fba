// inside: what functions and triggers do beside writing rows
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const trigger = (body, name = 'g') => `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$;`;
const T = 'CREATE TABLE t(id int PRIMARY KEY, a int); INSERT INTO t SELECT g, 0 FROM generate_series(1, 3) g;';

test('a trigger may say much', async t => {
	const w = await world(t, { setup: `${T} ${trigger(`FOR i IN 1..600 LOOP RAISE NOTICE '%', repeat('x', 200000);
		RAISE WARNING '%', repeat('y', 2000); END LOOP; RETURN NULL;`)}
		CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION g();` });
	const { json, text } = await w.agent.execute('UPDATE t SET a = 1 WHERE id = 1');
	assert.equal(json?.complete, true, text);
	const more = await w.agent.execute('UPDATE t SET a = 2 WHERE id = 2', { change_id: json.change_id });
	assert.equal(more.json?.complete, true, more.text);
	await w.operator.commit(json.change_id);
	assert.equal(await w.sql('SELECT string_agg(a::text, \',\' ORDER BY id) FROM t'), '1,2,0');
});
