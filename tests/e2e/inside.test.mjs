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

const EMPTIED = `${T} CREATE TABLE gone(n int); INSERT INTO gone VALUES (1), (2);
	CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
		TRUNCATE gone; INSERT INTO gone VALUES (NEW.a); INSERT INTO log VALUES (NEW.a); RETURN NULL; END $$;
	CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION g();
	CREATE TABLE log(n int);`;

test('a table that is emptied by several statements can be committed, and why it is incomplete stays', async t => {
	const w = await world(t, { setup: EMPTIED });
	const { json, text } = await w.agent.execute('UPDATE t SET a = 1 WHERE id = 1');
	assert.equal(json?.complete, false, text);
	const why = j => j.reasons.find(x => x.code === 'INCOMPLETE')?.text;
	assert.match(why(json), /emptied/);
	const { change_id } = json;
	assert.equal(outcome(await w.agent.execute('UPDATE t SET a = 1 / 0', { change_id })), '22012');
	for (const sql of ['UPDATE t SET a = 2 WHERE id = 2', 'INSERT INTO log VALUES (1)', 'UPDATE t SET a = 3 WHERE id = 3']) {
		const more = await w.agent.execute(sql, { change_id });
		assert.equal(more.json?.complete, false, more.text);
		assert.equal(outcome(await w.agent.query('SELECT count(*) FROM gone', { change_id })), 'rows');
		assert.equal(why(more.json), why(json), 'the reason is that of the table, whichever statement came last');
	}
	await w.operator.commit(change_id);
	assert.equal(await w.sql('SELECT (SELECT string_agg(a::text, \',\' ORDER BY id) FROM t), (SELECT string_agg(n::text, \',\') FROM gone)'), '1,2,3|3');
});

test('why a table is shown by its counts is told for as long as it is', async t => {
	const w = await world(t, {
		setup: `${T} CREATE TABLE log(n int); INSERT INTO log SELECT 1 FROM generate_series(1, 10000);
			${trigger('INSERT INTO log VALUES (1); RETURN NULL;')}
			CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION g(); CREATE TABLE other(n int);`,
		config: '[airlock]\nsweep_limit = 64K\n',
	});
	const { json } = await w.agent.execute('UPDATE t SET a = 1');
	const why = j => j.reasons.filter(x => x.code === 'INCOMPLETE').map(x => x.text);
	assert.match(why(json)[0], /sweep_limit/);
	const more = await w.agent.execute('INSERT INTO other VALUES (1)', { change_id: json.change_id });
	assert.deepEqual(why(more.json), why(json));
});

test('what functions do beside rows is listed, by their texts', async t => {
	const w = await world(t, { role: 'postgres', setup: `${T} CREATE TABLE u(id serial PRIMARY KEY, k int REFERENCES t ON DELETE CASCADE); CREATE TABLE s(n int, q text);
		CREATE TABLE plain(id int); CREATE TABLE au(id int);
		CREATE SEQUENCE moved;
		${trigger('PERFORM pg_notify(\'ch\', NEW.id::text); RETURN NULL;', 'direct')}
		CREATE FUNCTION tell(int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN NOTIFY ch; END $$;
		${trigger('PERFORM tell(1); PERFORM nextval(\'moved\'); RETURN NULL;', 'indirect')}
		${trigger('PERFORM pg_advisory_lock(1); PERFORM pg_advisory_unlock(1); RETURN NULL;', 'outer_')}
		${trigger('-- notifies nobody\n INSERT INTO s VALUES (1, current_query()); RETURN NULL;', 'texts')}
		CREATE FUNCTION parsed(int) RETURNS void BEGIN ATOMIC SELECT pg_notify('ch', 'x'); END;
		CREATE FUNCTION calls(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM tell($1); RETURN 1; END $$;
		CREATE FUNCTION atomic(int) RETURNS int BEGIN ATOMIC SELECT parsed($1); SELECT 1; END;
		CREATE TRIGGER a AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION direct();
		CREATE TRIGGER b AFTER INSERT ON t EXECUTE FUNCTION indirect();
		CREATE TRIGGER c AFTER DELETE ON u FOR EACH ROW EXECUTE FUNCTION outer_();
		CREATE TABLE by_au(id int); ${trigger('INSERT INTO au VALUES (NEW.id); RETURN NULL;', 'by_au')}
		CREATE TRIGGER e AFTER INSERT ON by_au FOR EACH ROW EXECUTE FUNCTION by_au();
		CREATE TABLE quiet(id int);
		${trigger('SET LOCAL session_replication_role = replica; INSERT INTO u VALUES (-1, -1); SET LOCAL session_replication_role = origin; RETURN NULL;', 'hush')}
		CREATE TRIGGER f AFTER INSERT ON quiet FOR EACH ROW EXECUTE FUNCTION hush();
		CREATE TRIGGER d AFTER INSERT ON au FOR EACH ROW EXECUTE FUNCTION texts();
		INSERT INTO u(k) VALUES (1);` });
	for (const [sql, expected] of [
		['UPDATE t SET a = 5 WHERE id = 2', [['NOTIFICATION', /^public\.direct\(\) \(trigger a of public\.t\) may send/]]],
		['UPDATE t SET a = 5 WHERE id = -2', [['NOTIFICATION', /direct/], ['NOTIFICATION', /tell/]]],
		['INSERT INTO t VALUES (10)', [['NOTIFICATION', /^public\.tell\(integer\) \(trigger b of public\.t\)/], ['SEQUENCE', /public\.moved/]]],
		['DELETE FROM t WHERE id = 1', [['OUTSIDE_EFFECT', /pg_advisory_lock.* \(trigger c of public\.u\) may act outside/]]],
		['INSERT INTO plain SELECT calls(1)', [['NOTIFICATION', /^public\.tell\(integer\) may/]]],
		['INSERT INTO plain SELECT atomic(1)', [['NOTIFICATION', /^public\.parsed\(integer\) may/]]],
		['INSERT INTO u(k) VALUES (2)', [['SEQUENCE', /u_id_seq/]]],
		['INSERT INTO plain VALUES (1)', []],
		['INSERT INTO quiet VALUES (1)', [['TRIGGERS_OFF', /^public\.hush\(\) \(trigger f of public\.quiet\) may turn/]]],
		['INSERT INTO by_au VALUES (1)', [['STATEMENT_TEXT', /^public\.texts\(\) \(trigger d of public\.au\) reads/]]],
	]) {
		const { json, text } = await w.agent.execute(sql);
		assert.ok(json, text);
		const { head } = await w.operator.show(json.change_id);
		const got = head.effects.filter((x, i, all) => i === all.findIndex(y => y.code === x.code && y.text === x.text))
			.sort((a, b) => a.code.localeCompare(b.code) || a.text.localeCompare(b.text));
		assert.deepEqual(got.map(x => x.code), expected.map(x => x[0]), `${sql}: ${JSON.stringify(got)}`);
		expected.forEach(([, what], i) => assert.match(got[i].text, what));
		assert.equal(json.risk === 'high', /^DELETE|quiet/.test(sql), `${sql}: ${text}`);
		await w.operator.rollback(json.change_id);
	}
});

test('what runs without being named is asked about too', async t => {
	const w = await world(t, { setup: `
		CREATE FUNCTION n(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('ch', ''); RETURN $1; END $$;
		CREATE FUNCTION im(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN n($1); END $$;
		CREATE FUNCTION yes(int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN NOTIFY ch; RETURN true; END $$;
		CREATE FUNCTION at(int, text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN NOTIFY ch; RETURN true; END $$;
		CREATE FUNCTION "Tell All"() RETURNS void LANGUAGE plpgsql AS $$ BEGIN NOTIFY ch; END $$;
		CREATE OPERATOR === (LEFTARG = int, RIGHTARG = text, FUNCTION = at);
		CREATE OPERATOR @@@ (RIGHTARG = int, FUNCTION = yes);
		CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
		CREATE FUNCTION quoted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM "Tell All"(); RETURN NULL; END $$;
		CREATE DOMAIN d AS int CHECK (yes(VALUE)); CREATE DOMAIN dd AS d; CREATE VIEW v AS SELECT n(1) AS i;
		CREATE TABLE plain(i int); CREATE TABLE log(i int);
		CREATE TABLE "default"(i int, j int DEFAULT n(1));
		CREATE TABLE generated(i int, j int GENERATED ALWAYS AS (im(i)) STORED);
		CREATE TABLE checked(i int CHECK (yes(i))); CREATE TABLE operated(i int CHECK (@@@ i));
		CREATE TABLE domain(i d); CREATE TABLE domains(i int, j d[]); CREATE TABLE lower(i dd);
		CREATE TABLE indexed(i int); CREATE INDEX ON indexed (im(i)); CREATE TABLE part(i int); CREATE INDEX ON part (i) WHERE im(i) > 0;
		CREATE TABLE ruled(i int); CREATE RULE r AS ON INSERT TO ruled DO ALSO INSERT INTO log VALUES (n(1));
		CREATE TABLE telling(i int); CREATE RULE r AS ON INSERT TO telling DO ALSO NOTIFY ch;
		CREATE TABLE sometimes(i int); CREATE TRIGGER c AFTER INSERT ON sometimes FOR EACH ROW WHEN (n(NEW.i) = 1) EXECUTE FUNCTION nothing();
		CREATE TABLE quotes(i int); CREATE TRIGGER c AFTER INSERT ON quotes FOR EACH ROW EXECUTE FUNCTION quoted();
		CREATE TABLE parted(i int) PARTITION BY LIST (i); CREATE TABLE one PARTITION OF parted DEFAULT; ALTER TABLE one ADD CHECK (yes(i));
		CREATE TABLE guarded(i int); ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON guarded USING (n(i) = 1);
		CREATE TABLE words(i int, b text, t tsvector);
		CREATE TRIGGER w BEFORE INSERT ON words FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger(t, 'pg_catalog.simple', b);` });
	for (const [sql, ...expected] of [
		['INSERT INTO plain VALUES (1)'],
		['INSERT INTO words VALUES (1, \'a b\')'],
		['INSERT INTO "default" VALUES (1)', /^public\.n\(integer\) \(default value for public\."?default"?\.j\) may send/],
		['INSERT INTO generated VALUES (1)', /n\(integer\) \(default value for public\.generated\.j\)/],
		['INSERT INTO checked VALUES (1)', /yes\(integer\) \(table constraint .* on public\.checked\)/],
		['INSERT INTO operated VALUES (1)', /yes\(integer\) \(table constraint .* on public\.operated\)/],
		['INSERT INTO domain VALUES (1)', /yes\(integer\) /], ['INSERT INTO domains VALUES (1, \'{1}\')', /yes\(integer\) /], ['INSERT INTO lower VALUES (1)', /yes\(integer\) /],
		['INSERT INTO indexed VALUES (1)', /n\(integer\) \(index public\.indexed_im_idx\)/],
		['INSERT INTO part VALUES (1)', /n\(integer\) \(index public\.part_i_idx\)/],
		['INSERT INTO ruled VALUES (1)', /n\(integer\) \(rule "?r"? on public\.ruled\)/],
		['INSERT INTO telling VALUES (1)', /^rule r of public\.telling may send/],
		['INSERT INTO sometimes VALUES (1)', /n\(integer\) \(trigger c on public\.sometimes\)/],
		['INSERT INTO quotes VALUES (1)', /^public\."Tell All"\(\) \(trigger c of public\.quotes\)/],
		['INSERT INTO parted VALUES (1)', /yes\(integer\) \(table constraint .* on public\.one\)/],
		['INSERT INTO guarded VALUES (1)', /n\(integer\) \(policy p on public\.guarded\)/],
		['INSERT INTO plain SELECT i FROM v', /^public\.n\(integer\) may send/],
		['INSERT INTO plain SELECT 1 WHERE 1 === \'x\'', /^public\.at\(integer, ?text\) may send/],
	]) {
		const { json, text } = await w.agent.execute(sql);
		assert.ok(json, `${sql}: ${text}`);
		const { head } = await w.operator.show(json.change_id);
		assert.ok(json.risk !== 'high' || sql.includes('guarded'), `${sql}: ${text}`);
		for (const what of expected)
			assert.ok(head.effects.some(x => x.code === 'NOTIFICATION' && what.test(x.text)), `${sql}: ${JSON.stringify(head.effects)}`);
		if (expected.length === 0)
			assert.deepEqual(head.effects, [], sql);
		await w.operator.rollback(json.change_id);
	}
});

test('what reads the statement reads the agent\'s', async t => {
	const w = await world(t, { setup: `${T} CREATE TABLE au(q text);
		${trigger('INSERT INTO au VALUES (current_query()); RETURN NULL;')}
		CREATE TABLE own(id int, q text);` });
	// a function that is replaced while it is remembered
	const before = await w.agent.execute('UPDATE t SET a = 4 WHERE id = 1');
	await w.operator.rollback(before.json.change_id);
	await w.sql('CREATE TRIGGER tr AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION g()');
	for (const [sql, q] of [
		['UPDATE t SET a = 5 WHERE id = 1', 'SELECT q FROM au'],
		['INSERT INTO own VALUES (1, current_query())', 'SELECT q FROM own'],
	]) {
		const { json, text } = await w.agent.execute(sql);
		assert.equal(json?.complete, true, text);
		assert.deepEqual((await w.operator.show(json.change_id)).head.effects, []);
		await w.operator.commit(json.change_id);
		assert.equal(await w.sql(q), sql);
	}
});

test('what a function prepares in place of what Airlock did is never committed', async t => {
	const w = await world(t, { setup: `${T} CREATE TABLE log(n int);
		CREATE FUNCTION forge() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO log VALUES (1); UPDATE t SET a = 666;
			DEALLOCATE airlock_counts;
			EXECUTE 'PREPARE airlock_counts(oid[]) AS SELECT c.oid, ''public.log'', ''r'', ''p'', ''RowExclusiveLock'', 1, 0, 0, false, NULL, false FROM pg_class c WHERE c.oid = ''public.log''::regclass';
			RETURN 1; END $$;` });
	const { json, text } = await w.agent.execute('INSERT INTO log SELECT forge()');
	assert.ok(json, text);
	const r = await w.operator.run('commit', (await w.operator.pending())[0].token);
	assert.equal(r.code, 1);
	assert.match(r.stderr + r.stdout, /replaced what Airlock had prepared/);
	assert.equal(await w.sql('SELECT sum(a) FROM t'), '0');
});
