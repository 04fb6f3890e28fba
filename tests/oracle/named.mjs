// named: cases that random ones have found, or that must not be left to chance
//
// name: { setup, steps, ... } as Rig.run takes them; a step that is a string is
// a statement.  incomplete: the tables whose rows may be missing, and why;
// shows: what the rows are shown as; says: codes that the reasons must have.
const T = 'CREATE SCHEMA app; CREATE TABLE app.t (id int PRIMARY KEY, a int, b text); INSERT INTO app.t SELECT g, g, \'b\' || g FROM generate_series(1, 6) g;';
const trigger = (when, body, { on = 'app.t', each = 'ROW', how = '' } = {}) => `CREATE FUNCTION app.f() RETURNS trigger LANGUAGE plpgsql ${how} AS $$ BEGIN ${body} END $$;
	CREATE TRIGGER tr ${when} ON ${on} FOR EACH ${each} EXECUTE FUNCTION app.f();`;
const LOG = 'CREATE TABLE app.log (x text);';
const KID = 'CREATE TABLE app.kid (id int PRIMARY KEY, p int REFERENCES app.t ON DELETE CASCADE ON UPDATE CASCADE, c text); INSERT INTO app.kid SELECT g, 1 + g % 6, \'c\' FROM generate_series(1, 12) g;';

export const named = {
	'rows that others have locked for keys and that a cascade changes have a multixact': {
		setup: T + KID + trigger('AFTER UPDATE', 'UPDATE app.kid SET c = c || \'!\' WHERE p = NEW.id; RETURN NULL;'),
		steps: [{ lock: 'SELECT 1 FROM app.kid FOR KEY SHARE' }, 'UPDATE app.t SET a = 0 WHERE id < 4'],
	},
	'rows that are locked while they are held, and changed again': {
		setup: T + KID + trigger('AFTER UPDATE', 'UPDATE app.kid SET c = c || \'!\' WHERE p = NEW.id; RETURN NULL;'),
		steps: ['UPDATE app.t SET a = 0 WHERE id < 4', { lock: 'SELECT 1 FROM app.kid FOR KEY SHARE SKIP LOCKED' },
			'UPDATE app.t SET a = 1 WHERE id < 6'],
	},
	'a row only locked by a foreign key is no row of the diff': {
		setup: T + KID + LOG + trigger('AFTER INSERT', 'UPDATE app.t SET b = \'touched\' WHERE id = NEW.p; INSERT INTO app.kid VALUES (NEW.id + 100, 6, \'k\') ON CONFLICT DO NOTHING; RETURN NULL;', { on: 'app.kid' }),
		steps: ['INSERT INTO app.kid VALUES (50, 2, \'new\')'],
	},
	'rows written in a block that catches its errors, and those taken back there': {
		setup: T + LOG + trigger('AFTER UPDATE', `BEGIN INSERT INTO app.log VALUES (NEW.b); EXCEPTION WHEN others THEN NULL; END;
			BEGIN INSERT INTO app.log VALUES ('never'); UPDATE app.t SET b = 'never' WHERE id = 6; PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END; RETURN NULL;`),
		steps: ['UPDATE app.t SET a = 0 WHERE id < 3', 'UPDATE app.t SET a = 7 WHERE id = 1'],
	},
	'a row that a trigger writes once more is shown as it ends': {
		setup: T + trigger('AFTER UPDATE', 'IF pg_trigger_depth() < 2 THEN UPDATE app.t SET b = b || \'+\' WHERE id = NEW.id; END IF; RETURN NULL;'),
		steps: ['UPDATE app.t SET a = a + 1', 'DELETE FROM app.t WHERE id = 2'],
	},
	'a row that one statement leaves as it was goes on with the next': {
		setup: T,
		steps: ['UPDATE app.t SET a = 0 WHERE id < 4', 'UPDATE app.t SET a = 0 WHERE id < 5', 'UPDATE app.t SET a = 7 WHERE id < 3',
			'UPDATE app.t SET a = id WHERE id = 3', 'DELETE FROM app.t WHERE id = 1'],
	},
	'a row without a key that one statement leaves as it was goes on with the next': {
		setup: 'CREATE SCHEMA app; CREATE TABLE app.t (a int, b text); INSERT INTO app.t SELECT g / 2, \'b\' FROM generate_series(1, 9) g;',
		steps: ['UPDATE app.t SET a = 0 WHERE a < 3', 'UPDATE app.t SET a = 0 WHERE a < 1', 'UPDATE app.t SET a = 7 WHERE a < 1 AND ctid IN (SELECT ctid FROM app.t WHERE a < 1 LIMIT 2)',
			'DELETE FROM app.t WHERE a = 7'],
	},
	'a row that row security hides and a foreign key locks is not taken for a deleted one': {
		setup: `${T} CREATE TABLE app.kid (id int PRIMARY KEY, p int REFERENCES app.t); ALTER TABLE app.t ENABLE ROW LEVEL SECURITY;
			CREATE POLICY sees ON app.t FOR SELECT USING (a < 6); CREATE POLICY takes ON app.t FOR DELETE USING (true);`,
		steps: ['INSERT INTO app.kid VALUES (50, 6)', 'DELETE FROM app.t AS x USING app.t AS y WHERE x.id = y.id + 0 AND y.a = 2'],
		incomplete: { 'app.t': 'row security' },
	},
	'a row inserted and deleted again leaves nothing': {
		setup: T + trigger('AFTER INSERT', 'DELETE FROM app.t WHERE id = NEW.id; RETURN NULL;'),
		steps: ['INSERT INTO app.t VALUES (20, 1, \'x\')'],
	},
	'a row deleted and put back as it was is unchanged': {
		setup: T + trigger('AFTER DELETE', 'INSERT INTO app.t VALUES (OLD.*); RETURN NULL;'),
		steps: ['DELETE FROM app.t WHERE id < 4'],
	},
	'a row that somebody else has deleted meanwhile is inserted, not updated': {
		setup: T, rollback: false,
		steps: ['INSERT INTO app.t VALUES (1, 9, \'x\') ON CONFLICT DO NOTHING', { other: 'DELETE FROM app.t WHERE id = 1' },
			'INSERT INTO app.t VALUES (1, 1, \'new\'), (2, 1, \'two\') ON CONFLICT (id) DO UPDATE SET b = excluded.b'],
	},
	'a row that somebody else has deleted before it is first written': {
		setup: T + KID, rollback: false,
		steps: ['UPDATE app.kid SET c = \'k\' WHERE id = 1', { other: 'DELETE FROM app.t WHERE id = 6' },
			'INSERT INTO app.t VALUES (6, 1, \'new\'), (5, 1, \'five\'), (8, 1, \'eight\') ON CONFLICT (id) DO UPDATE SET b = excluded.b'],
	},
	'a key that somebody else has given up meanwhile': {
		setup: T, rollback: false,
		steps: ['INSERT INTO app.t VALUES (1, 9, \'x\') ON CONFLICT DO NOTHING', { other: 'UPDATE app.t SET id = id + 60 WHERE id < 3' },
			'INSERT INTO app.t VALUES (1, 1, \'new\')', 'INSERT INTO app.t VALUES (2, 1, \'two\') ON CONFLICT (id) DO UPDATE SET b = excluded.b', 'DELETE FROM app.t WHERE id = 3'],
	},
	'a trigger puts a row in the place of one that somebody else has deleted': {
		setup: `${T + KID} DELETE FROM app.kid WHERE p = 4; ${trigger('AFTER UPDATE', 'INSERT INTO app.t VALUES (4, 0, \'again\'), (3, 0, \'mine\') ON CONFLICT (id) DO UPDATE SET b = excluded.b; RETURN NULL;', { on: 'app.kid', each: 'STATEMENT' })}`,
		rollback: false,
		steps: ['INSERT INTO app.t VALUES (1, 9, \'x\') ON CONFLICT DO NOTHING', { other: 'DELETE FROM app.t WHERE id = 4' }, 'UPDATE app.kid SET c = \'k\' WHERE id = 1'],
	},
	'a trigger writes a table that somebody else has made meanwhile': {
		setup: T + KID + trigger('AFTER UPDATE', 'RETURN NULL;', { each: 'STATEMENT' }), rollback: false,
		steps: ['UPDATE app.kid SET c = \'k\' WHERE id = 1', { other: `CREATE TABLE app.late (n int); GRANT ALL ON app.late TO app;
			CREATE OR REPLACE FUNCTION app.f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO app.late VALUES (1); RETURN NULL; END $$` }, 'UPDATE app.t SET a = 0 WHERE id = 1'],
		shows: [['app.kid', 'update', 1], ['app.t', 'update', 1], ['app.late', 'insert', 1]],
	},
	'a partition that somebody else has attached meanwhile': {
		setup: `CREATE SCHEMA app; CREATE TABLE app.p (id int PRIMARY KEY, b text) PARTITION BY RANGE (id); CREATE TABLE app.p1 PARTITION OF app.p FOR VALUES FROM (0) TO (10);
			CREATE TABLE app.q (id int PRIMARY KEY, b text); INSERT INTO app.p VALUES (1, 'x'), (2, 'x'); INSERT INTO app.q VALUES (11, 'x'), (12, 'x');`, rollback: false,
		steps: ['UPDATE app.p SET b = \'y\' WHERE id = 1', { other: 'ALTER TABLE app.p ATTACH PARTITION app.q FOR VALUES FROM (10) TO (20)' }, 'UPDATE app.p SET b = \'z\' WHERE id > 1'],
		shows: [['app.p', 'update', 4]],
	},
	'rows without a key that somebody else has deleted meanwhile': {
		setup: `CREATE SCHEMA app; CREATE TABLE app.t (id int, b text); INSERT INTO app.t VALUES (1, 'x'), (1, 'x'), (2, 'y'); ${trigger('AFTER INSERT', 'UPDATE app.t SET b = b || \'!\' WHERE id = 2; RETURN NULL;', { each: 'STATEMENT' })}`,
		rollback: false,
		steps: ['INSERT INTO app.t VALUES (5, \'z\')', { other: 'DELETE FROM app.t WHERE id = 1' }, 'INSERT INTO app.t VALUES (1, \'x\')'],
	},
	'a row deleted and put back over two statements is one change': {
		setup: `${T} CREATE TABLE app.bag (a int, b text); INSERT INTO app.bag VALUES (1, 'x'), (1, 'x'), (2, 'y');`,
		steps: ['DELETE FROM app.t WHERE id IN (1, 2, 3)', 'INSERT INTO app.t VALUES (1, 1, \'b1\'), (2, 2, \'other\')',
			'DELETE FROM app.bag WHERE a = 1', 'INSERT INTO app.bag VALUES (1, \'x\'), (3, \'z\')', 'UPDATE app.t SET a = 9 WHERE id = 2', 'DELETE FROM app.t WHERE id = 1'],
		shows: [['app.t', 'delete', 2], ['app.t', 'update', 1], ['app.bag', 'delete', 1], ['app.bag', 'insert', 1]],
	},
	'rows without a key that a trigger updates are updated': {
		setup: `${T} CREATE TABLE app.n (what text, n int); INSERT INTO app.n VALUES ('t', 0), ('u', 0), ('t', 0);
			${trigger('AFTER UPDATE', 'UPDATE app.n SET n = n + 1 WHERE what = \'t\'; RETURN NULL;')}`,
		steps: ['UPDATE app.t SET a = 0 WHERE id < 3', 'UPDATE app.n SET what = \'v\' WHERE what = \'u\''],
		shows: [['app.t', 'update', 2], ['app.n', 'update', 3]],
	},
	'which rows are one is asked of the whole change': {
		setup: 'CREATE SCHEMA app; CREATE TABLE app.bag (a int, b text); INSERT INTO app.bag VALUES (1, \'x\'), (2, \'y\'); CREATE TABLE app.t (id int PRIMARY KEY); INSERT INTO app.t VALUES (1);',
		steps: ['DELETE FROM app.bag WHERE a = 1', 'INSERT INTO app.bag VALUES (1, \'x\')', 'UPDATE app.bag SET b = \'z\' WHERE a = 1',
			'DELETE FROM app.t', 'INSERT INTO app.t VALUES (1)', 'UPDATE app.t SET id = 2'],
		shows: [['app.bag', 'delete', 1], ['app.bag', 'insert', 1], ['app.t', 'delete', 1], ['app.t', 'insert', 1]],
	},
	'a key that changes is the same row by whatever path': {
		setup: T + KID, steps: ['UPDATE app.t SET id = id + 10', 'INSERT INTO app.t VALUES (1, 0, \'one\')'],
		shows: [['app.t', 'update', 6], ['app.t', 'insert', 1], ['app.kid', 'update', 12]],
	},
	'a row deleted in one statement and inserted in the next': {
		setup: T,
		steps: ['DELETE FROM app.t WHERE id = 1', 'INSERT INTO app.t VALUES (1, 1, \'b1\'), (2000, 1, \'x\')', 'UPDATE app.t SET id = 2 + id WHERE id = 2000'],
	},
	'keys that change places': {
		setup: 'CREATE SCHEMA app; CREATE TABLE app.t (id int PRIMARY KEY DEFERRABLE, b text); INSERT INTO app.t VALUES (1, \'x\'), (2, \'y\'), (3, \'x\');',
		steps: ['UPDATE app.t SET id = 4 - id', 'UPDATE app.t SET id = id + 1'],
	},
	'equal rows without a key, some of them': {
		setup: `CREATE SCHEMA app; CREATE TABLE app.t (id int, b text); INSERT INTO app.t SELECT 1, 'x' FROM generate_series(1, 5); INSERT INTO app.t VALUES (2, NULL), (2, NULL);
			${trigger('AFTER DELETE', 'UPDATE app.t SET b = \'z\' WHERE id = 2; RETURN NULL;', { each: 'STATEMENT' })}`,
		steps: ['DELETE FROM app.t WHERE ctid IN (SELECT ctid FROM app.t WHERE id = 1 LIMIT 2)', 'INSERT INTO app.t VALUES (1, \'x\')'],
	},
	'deferred triggers write before the diff is taken, once': {
		setup: `${T + LOG} CREATE FUNCTION app.f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO app.log VALUES (TG_OP || NEW.id); RETURN NULL; END $$;
			CREATE CONSTRAINT TRIGGER tr AFTER UPDATE ON app.t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION app.f();`,
		steps: ['UPDATE app.t SET a = 0 WHERE id < 3', 'UPDATE app.t SET a = 1 WHERE id = 1'],
	},
	'what would fail at COMMIT can be mended': {
		setup: `${T} CREATE TABLE app.d (id int PRIMARY KEY, p int REFERENCES app.t DEFERRABLE INITIALLY DEFERRED);`,
		steps: ['INSERT INTO app.d VALUES (1, 77)', 'INSERT INTO app.t VALUES (77, 0, \'late\')'],
	},
	'what would fail at COMMIT fails there': {
		setup: `${T} CREATE TABLE app.d (id int PRIMARY KEY, p int REFERENCES app.t DEFERRABLE INITIALLY DEFERRED);`,
		steps: ['INSERT INTO app.d VALUES (1, 77)'],
	},
	'leaves that have their columns in another order, and rows that move': {
		setup: `CREATE SCHEMA app; CREATE TABLE app.p (id int, s text, b text, PRIMARY KEY (id, s)) PARTITION BY LIST (s);
			CREATE TABLE app.p1 (b text, gone int, s text NOT NULL, id int NOT NULL); ALTER TABLE app.p1 DROP gone; ALTER TABLE app.p ATTACH PARTITION app.p1 FOR VALUES IN ('x');
			CREATE TABLE app.p2 PARTITION OF app.p DEFAULT PARTITION BY HASH (id); CREATE TABLE app.p21 PARTITION OF app.p2 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
			INSERT INTO app.p SELECT g, CASE WHEN g < 4 THEN 'x' ELSE 'y' END, 'b' || g FROM generate_series(1, 8) g;
			${trigger('AFTER UPDATE', 'UPDATE app.p SET b = b || \'?\' WHERE id = 8; RETURN NULL;', { on: 'app.p1', how: 'SECURITY DEFINER' })}`,
		steps: ['UPDATE app.p SET s = \'z\' WHERE id < 3', 'UPDATE app.p SET b = \'q\' WHERE id > 2', 'UPDATE app.p SET s = \'x\' WHERE id IN (2, 8)'],
	},
	'a definition that has changed since it was last looked up': {
		setup: `${T} CREATE TABLE app.pass (n int);`,
		steps: [{ other: `DO $$ BEGIN IF (SELECT count(*) FROM app.pass) = 1 THEN ALTER TABLE app.t DROP COLUMN b; END IF; INSERT INTO app.pass VALUES (1); END $$` },
			'UPDATE app.t SET a = 0 WHERE id = 1', 'DELETE FROM app.t WHERE id = 2', 'INSERT INTO app.t VALUES (9)'],
	},
	'a statement that fails after it has changed rows, before others that are swept': {
		setup: T + KID,
		steps: ['WITH u AS (UPDATE app.kid SET c = \'x\' WHERE false RETURNING 1) SELECT count(*) FROM u', 'INSERT INTO app.kid VALUES (50, 1, \'a\'), (1, 1, \'again\')',
			'DELETE FROM app.t WHERE id < 0', 'UPDATE app.t SET a = 0 WHERE id = 1'],
	},
	'a table that two statements of a change have emptied': {
		setup: `${T + LOG} ${trigger('AFTER UPDATE', 'TRUNCATE app.log; INSERT INTO app.log VALUES (\'n\'); RETURN NULL;', { each: 'STATEMENT', how: 'SECURITY DEFINER' })}`,
		steps: ['UPDATE app.t SET a = 0 WHERE id = 1', 'UPDATE app.t SET a = 0 WHERE id = 2'],
		incomplete: { 'app.log': 'emptied whole' },
	},
	'sizes of a table that the writer sees in part': {
		setup: `${T} ALTER TABLE app.t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON app.t USING (a < 4);`,
		steps: ['UPDATE app.t SET b = \'x\' WHERE id = 1'],
	},
	'sizes of a table that others inherit from': {
		setup: `${T} CREATE TABLE app.kid () INHERITS (app.t); INSERT INTO app.kid VALUES (1, 1, 'k'), (9, 9, 'k');`,
		steps: ['UPDATE app.t SET b = \'x\' WHERE id = 1', 'UPDATE ONLY app.t SET b = \'y\' WHERE id = 1'],
	},
	'a row whose old key stands in a table that inherits': {
		setup: `${T} CREATE TABLE app.kid () INHERITS (app.t); INSERT INTO app.kid VALUES (4, 1, 'k'), (101, 1, 'k');`,
		steps: ['UPDATE app.t SET id = id + 100 WHERE id < 6 AND b <> \'k\''],
	},
	'sizes of a table that a later statement reaches through a view': {
		setup: `${T} CREATE VIEW app.v AS SELECT * FROM app.t;`,
		steps: ['INSERT INTO app.t VALUES (7, 7, \'x\')', 'DELETE FROM app.v WHERE id < 3'],
	},
	'a table that was collateral and is named later has one flag and one count': {
		setup: T + KID, steps: ['DELETE FROM app.t WHERE id = 1', 'UPDATE app.kid SET c = \'n\' WHERE id < 4', 'UPDATE app.kid SET c = \'m\' WHERE id > 3'],
	},
	'rules, also and instead': {
		setup: `${T + LOG} CREATE RULE r AS ON UPDATE TO app.t DO ALSO INSERT INTO app.log VALUES (OLD.b);
			CREATE RULE r2 AS ON DELETE TO app.t DO INSTEAD UPDATE app.t SET a = -1 WHERE id = OLD.id;`,
		steps: ['UPDATE app.t SET a = 2 WHERE id = 1', 'DELETE FROM app.t WHERE id < 3'],
	},
	'a failed statement takes nothing with it': {
		setup: T + KID, steps: ['DELETE FROM app.t WHERE id = 1', 'UPDATE app.t SET a = 1 / 0', 'INSERT INTO app.t VALUES (2)', 'UPDATE app.t SET a = 0 WHERE id = 3'],
	},
	'what a function does to the catalogs is told, whatever its rows': {
		setup: `${T + LOG} GRANT ALL ON app.log TO app WITH GRANT OPTION;
			${trigger('AFTER UPDATE', 'GRANT SELECT ON app.log TO narrow; RETURN NULL;', { each: 'STATEMENT', how: 'SECURITY DEFINER' })}`,
		steps: ['UPDATE app.t SET a = 0 WHERE id = 1'], says: ['HIDDEN_DDL'],
	},
	'a row that row security hides once it is written': {
		setup: `${T} ALTER TABLE app.t ENABLE ROW LEVEL SECURITY; CREATE POLICY sees ON app.t FOR SELECT USING (a < 4);
			CREATE POLICY alters ON app.t FOR UPDATE USING (true) WITH CHECK (true);
			CREATE FUNCTION app.g(n int) RETURNS int LANGUAGE sql SECURITY DEFINER AS 'UPDATE app.t SET a = 50 WHERE id = n RETURNING id';
			CREATE TABLE app.log (n int);`,
		steps: ['INSERT INTO app.log SELECT app.g(2)'],
		incomplete: { 'app.t': 'row security' }, says: ['INCOMPLETE'],
	},
	'of a table that cannot be seen whole no row is shown': {
		setup: `CREATE SCHEMA app; CREATE TABLE app.p (id int PRIMARY KEY, b text) PARTITION BY RANGE (id);
			CREATE TABLE app.p1 PARTITION OF app.p FOR VALUES FROM (0) TO (10); CREATE TABLE app.p2 PARTITION OF app.p FOR VALUES FROM (10) TO (20);
			INSERT INTO app.p VALUES (1, 'x'), (11, 'x'); CREATE VIEW app.v AS SELECT * FROM app.p;
			GRANT USAGE ON SCHEMA app TO narrow; GRANT SELECT, INSERT ON app.p, app.v, app.p1 TO narrow;`,
		agent: 'narrow', steps: ['INSERT INTO app.v VALUES (2, \'y\'), (12, \'y\')'], incomplete: { 'app.p': 'a leaf that may not be read' }, shows: [],
	},
	'an emptied table is incomplete, the rest is not': {
		setup: `${T + LOG} INSERT INTO app.log VALUES ('a'); ${trigger('AFTER UPDATE', 'TRUNCATE app.log; RETURN NULL;', { each: 'STATEMENT', how: 'SECURITY DEFINER' })}`,
		steps: ['UPDATE app.t SET a = 0 WHERE id = 1'],
		incomplete: { 'app.log': 'emptied whole' },
	},
};

export const asCase = c => ({ ...c, rollback: c.rollback ?? true, may: ref => c.incomplete?.[ref] ?? null,
	steps: c.steps.map(s => (typeof s === 'string' ? { sql: s, named: null } : s)) });
