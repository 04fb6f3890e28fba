// deferred: what COMMIT would do is done, or known, while a change is held
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { outcome, release, world } from './lib/world.mjs';

after(release);

const SETUP = `
	CREATE TABLE pa(id int PRIMARY KEY, x int, UNIQUE (x) DEFERRABLE INITIALLY DEFERRED,
		EXCLUDE USING btree (x WITH =) DEFERRABLE INITIALLY DEFERRED);
	CREATE TABLE ch(id int PRIMARY KEY, p int CONSTRAINT ch_p REFERENCES pa DEFERRABLE INITIALLY DEFERRED);
	CREATE TABLE im(id int PRIMARY KEY, p int CONSTRAINT im_p REFERENCES pa DEFERRABLE);
	CREATE TABLE lg(id int);
	CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.id = 13 THEN RAISE 'unlucky' USING ERRCODE = 'XX777'; END IF;
		INSERT INTO lg VALUES (NEW.id); RETURN NULL; END $$;
	CREATE CONSTRAINT TRIGGER late AFTER INSERT ON ch DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late();
	INSERT INTO pa VALUES (1, 1), (2, 2);`;
const failure = j => j.reasons.find(x => x.code === 'DEFERRED_FAILURE')?.text;

test('what would fail at COMMIT is held, high risk, with its SQLSTATE and constraint', async t => {
	const w = await world(t, { setup: SETUP });
	let n = 0;
	for (const [sql, what, mend] of [
		['INSERT INTO ch VALUES (1, 999)', /23503 ch_p: /, 'INSERT INTO pa VALUES (999, 999)'],
		['UPDATE pa SET x = 2 WHERE id = 1', /23505 pa_x_key: /, 'UPDATE pa SET x = 1 WHERE id = 2'],
		['INSERT INTO ch VALUES (13, 1)', /XX777: unlucky/, 'UPDATE ch SET p = 2'],
	]) {
		const { json, text } = await w.agent.execute(sql);
		assert.equal(json?.risk, 'high', text);
		assert.match(failure(json), what);
		n++;
		const other = await w.agent.execute(`INSERT INTO pa VALUES (${50 + n}, ${50 + n})`, { change_id: json.change_id });
		assert.match(failure(other.json), what, 'what is added elsewhere does not mend it');
		const mended = await w.agent.execute(mend, { change_id: json.change_id });
		if (mend.includes('ch')) { // the trigger of an inserted row fires whatever becomes of the row
			assert.match(failure(mended.json), what);
			const r = await w.operator.run('commit', (await w.operator.pending())[0].token);
			assert.deepEqual([r.code, (await w.agent.status(json.change_id)).json.status], [1, 'failed']);
			assert.match(r.stderr + r.stdout, what);
		} else {
			assert.equal(failure(mended.json), undefined, mended.text);
			await w.operator.commit(json.change_id);
		}
	}
	assert.equal(await w.sql('SELECT (SELECT string_agg(id || \':\' || x, \',\' ORDER BY id) FROM pa), (SELECT count(*) FROM ch)'),
		'1:2,2:1,51:51,52:52,999:999|1');
});

test('rows of deferred triggers are in the diff, once, and deferred again before more is added', async t => {
	const w = await world(t, { setup: SETUP });
	const rows = async id => (await w.operator.show(id)).rows.filter(x => x.table === 'public.lg').map(x => x.after.id).sort();
	const { json, text } = await w.agent.execute('INSERT INTO ch VALUES (1, 1), (2, 2)');
	assert.equal(json?.complete, true, text);
	const { change_id } = json;
	assert.deepEqual(await rows(change_id), ['1', '2']);
	const more = await w.agent.execute('INSERT INTO ch VALUES (3, 30)', { change_id });
	assert.match(failure(more.json) ?? more.text, /23503 ch_p/);
	const mended = await w.agent.execute('INSERT INTO pa VALUES (30, 30)', { change_id });
	assert.equal(failure(mended.json), undefined, mended.text);
	assert.equal(mended.json.complete, true);
	assert.deepEqual(await rows(change_id), ['1', '2', '3']);
	await w.operator.commit(change_id);
	assert.equal(await w.sql('SELECT string_agg(id::text, \',\' ORDER BY id) FROM lg'), '1,2,3');
});

test('a constraint that begins immediate fails its statement, first or added', async t => {
	const w = await world(t, { setup: SETUP });
	assert.equal(outcome(await w.agent.execute('INSERT INTO im VALUES (1, 77)')), '23503');
	const { json: { change_id } } = await w.agent.execute('INSERT INTO ch VALUES (1, 1)');
	assert.equal(outcome(await w.agent.execute('INSERT INTO im VALUES (1, 77)', { change_id })), '23503');
	assert.equal(outcome(await w.agent.execute('INSERT INTO im VALUES (1, 1)', { change_id })), 'pending');
	await w.operator.commit(change_id);
	assert.equal(await w.sql('SELECT id, p FROM im'), '1|1');
});

test('a statement that meets newer rows is told so, and nothing of the change is lost', async t => {
	const w = await world(t, { setup: SETUP });
	const { json } = await w.agent.execute('INSERT INTO ch VALUES (1, 1)');
	const { change_id } = json;
	const { head: before, rows } = await w.operator.show(change_id);
	await w.sql('UPDATE pa SET x = 22 WHERE id = 2');
	for (const sql of ['UPDATE pa SET x = 3 WHERE id = 2', 'DELETE FROM pa WHERE id = 2',
		'INSERT INTO pa VALUES (2, 5) ON CONFLICT (id) DO UPDATE SET x = 5']) {
		const late = await w.agent.execute(sql, { change_id });
		assert.equal(outcome(late), '40001', late.text);
		assert.match(late.text, /still held as it was/);
	}
	const after = await w.operator.show(change_id);
	assert.deepEqual([after.head.digest, after.head.status, after.head.statements.length, after.rows], [before.digest, 'pending', 1, rows]);
	const more = await w.agent.execute('INSERT INTO pa VALUES (3, 3)', { change_id });
	assert.equal(more.json?.complete, true, more.text);
	await w.operator.commit(change_id);
	assert.equal(await w.sql('SELECT (SELECT string_agg(id || \':\' || x, \',\' ORDER BY id) FROM pa), (SELECT count(*) FROM ch)'), '1:1,2:22,3:3|1');
});
