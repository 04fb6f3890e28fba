// behaviour: triggers, rules, views, policies and functions over random tables
import { ident } from './schema.mjs';

const has = (t, name) => t.cols.some(c => c.name === name);
const fresh = m => `app.f${++m.made}`;

// A trigger function; security: perhaps as its owner.
function routine(r, m, body, { declare = '' } = {}) {
	const name = fresh(m);
	m.sql.push(`CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql
		${r.chance(0.3) ? 'SECURITY DEFINER' : ''} AS $body$ ${declare} BEGIN ${body} END $body$;`);
	return name;
}

const trigger = (m, t, when, fn, each = 'ROW', more = '') =>
	m.sql.push(`CREATE TRIGGER "tr ${++m.made}" ${when} ON ${t.ref} ${more} FOR EACH ${each} EXECUTE FUNCTION ${fn}();`);

const AUDIT = `INSERT INTO app.audit (tab, op, was, now)
	VALUES (TG_TABLE_NAME, TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN OLD::text END, CASE WHEN TG_OP <> 'DELETE' THEN NEW::text END);`;
const events = r => r.pick(['INSERT', 'UPDATE', 'DELETE', 'INSERT OR UPDATE', 'INSERT OR UPDATE OR DELETE']);
const same = 'RETURN CASE WHEN TG_OP = \'DELETE\' THEN OLD ELSE NEW END;';

const TRIGGERS = {
	change: (r, m, t) => trigger(m, t, 'BEFORE INSERT OR UPDATE', routine(r, m,
		'NEW.b := left(coalesce(NEW.b, \'\'), 50) || \'!\'; RETURN NEW;')),
	suppress: (r, m, t) => trigger(m, t, 'BEFORE INSERT OR UPDATE', routine(r, m,
		'IF NEW.a % 3 = 0 THEN RETURN NULL; END IF; RETURN NEW;')),
	unchanged: (r, m, t) => trigger(m, t, 'BEFORE UPDATE', routine(r, m,
		'IF NEW.a % 2 = 0 THEN RETURN OLD; END IF; RETURN NEW;')),
	keep: (r, m, t) => trigger(m, t, 'BEFORE DELETE', routine(r, m,
		'IF OLD.a % 4 = 0 THEN RETURN NULL; END IF; RETURN OLD;')),
	rekey: (r, m, t) => !t.keyed.always && trigger(m, t, 'BEFORE UPDATE', routine(r, m,
		'IF NEW.a > 10 THEN NEW.id := NEW.id + 500; END IF; RETURN NEW;')),
	audit: (r, m, t) => trigger(m, t, `AFTER ${events(r)}`, routine(r, m, `${AUDIT} RETURN NULL;`)),
	early: (r, m, t) => trigger(m, t, `BEFORE ${events(r)}`, routine(r, m, `${AUDIT} ${same}`)),
	self: (r, m, t) => trigger(m, t, 'AFTER INSERT OR UPDATE', routine(r, m,
		`IF pg_trigger_depth() < 2 AND NEW.a < 5 THEN UPDATE ${t.ref} SET a = a + 1 WHERE id = NEW.id; END IF; RETURN NULL;`)),
	kill: (r, m, t) => trigger(m, t, 'AFTER INSERT OR UPDATE', routine(r, m,
		`IF NEW.a = 0 THEN DELETE FROM ${t.ref} WHERE id = NEW.id; END IF; RETURN NULL;`)),
	again: (r, m, t) => !t.keyed.always && trigger(m, t, 'AFTER DELETE', routine(r, m,
		`IF OLD.a < 3 AND pg_trigger_depth() < 3 THEN INSERT INTO ${t.ref} (id, ${has(t, 'k') ? 'k, ' : ''}${t.list ? 's, ' : ''}a, b)
			VALUES (OLD.id, ${has(t, 'k') ? 'OLD.k, ' : ''}${t.list ? 'OLD.s, ' : ''}OLD.a, OLD.b); END IF; RETURN NULL;`)),
	caught: (r, m, t) => trigger(m, t, `AFTER ${events(r)}`, routine(r, m,
		`BEGIN ${AUDIT} UPDATE app.counters SET n = n + 100; PERFORM 1 / (SELECT count(*) - count(*) FROM app.counters);
		EXCEPTION WHEN division_by_zero THEN UPDATE app.counters SET n = n + 1 WHERE name = 'caught'; END; RETURN NULL;`)),
	nested: (r, m, t) => trigger(m, t, `AFTER ${events(r)}`, routine(r, m,
		`BEGIN ${AUDIT} EXCEPTION WHEN unique_violation THEN NULL; END; RETURN NULL;`)),
	count: (r, m, t) => trigger(m, t, `AFTER ${events(r)}`, routine(r, m,
		'UPDATE app.counters SET n = n + 1 WHERE name = TG_OP; RETURN NULL;'), r.pick(['ROW', 'STATEMENT'])),
	whole: (r, m, t) => !t.parted && !t.inherits && trigger(m, t, 'AFTER DELETE', routine(r, m,
		'INSERT INTO app.audit (tab, op, was) SELECT TG_TABLE_NAME, \'gone\', o::text FROM gone o; RETURN NULL;'),
	'STATEMENT', 'REFERENCING OLD TABLE AS gone'),
	deferred: (r, m, t) => m.sql.push(`CREATE CONSTRAINT TRIGGER "tr ${++m.made}" AFTER ${events(r)} ON ${t.ref}
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ${routine(r, m, `${AUDIT} RETURN NULL;`)}();`),
	// work that waits for COMMIT, and writes the same rows or others
	late: (r, m, t) => m.sql.push(`CREATE CONSTRAINT TRIGGER "tr ${++m.made}" AFTER ${r.pick(['INSERT', 'UPDATE', 'INSERT OR UPDATE'])} ON ${t.ref}
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ${routine(r, m, r.pick([
		`UPDATE ${t.ref} SET a = 90 WHERE id = NEW.id AND a BETWEEN 1 AND 8; RETURN NULL;`, // comes to an end
		
		`DELETE FROM ${t.ref} WHERE id = NEW.id AND a = 1; RETURN NULL;`,
		'UPDATE app.counters SET n = n + 1 WHERE name = TG_OP; RETURN NULL;']))}();`),
	// what is printed must not depend on what a function sets
	settings: (r, m, t) => trigger(m, t, `${r.pick(['BEFORE', 'AFTER'])} ${r.pick(['INSERT', 'UPDATE', 'DELETE', 'INSERT OR UPDATE'])}`, routine(r, m,
		`${r.some([['extra_float_digits', '-13'], ['DateStyle', 'German'], ['IntervalStyle', 'iso_8601'], ['TimeZone', 'Asia/Tokyo'],
			['bytea_output', 'escape'], ['search_path', 'pg_catalog'], ['quote_all_identifiers', 'on']], r.int(1, 4))
			.map(([name, to]) => `PERFORM set_config('${name}', '${to}', ${r.pick(['true', 'true', 'false'])});`).join(' ')} ${same}`)),
	// a trigger that puts other rows of the table in their place
	replace: (r, m, t) => t.keyed.key?.join() === 'id' && !t.keyed.always && !t.list && !t.keyed.lax && trigger(m, t, 'AFTER UPDATE', routine(r, m,
		`IF pg_trigger_depth() < 2 THEN INSERT INTO ${t.ref} (id, a, b) VALUES (NEW.id + 1, 1, 'put'), (${r.int(1, 9)}, 2, 'put')
			ON CONFLICT (id) DO UPDATE SET b = excluded.b; END IF; RETURN NULL;`)),
	empty: (r, m, t) => {
		m.sql.push('INSERT INTO app.scratch VALUES (1), (2);');
		m.hides['app.scratch'] = 'emptied whole';
		trigger(m, t, 'AFTER UPDATE', routine(r, m, 'TRUNCATE app.scratch; INSERT INTO app.scratch VALUES (3); RETURN NULL;')
			, 'STATEMENT');
		m.sql.push(`ALTER FUNCTION app.f${m.made - 1}() SECURITY DEFINER;`);
	},
};
const TRIGGER_WEIGHTS = [[3, 'change'], [2, 'suppress'], [1, 'unchanged'], [1, 'keep'], [1, 'rekey'], [5, 'audit'], [1, 'early'],
	[3, 'self'], [1, 'kill'], [1, 'again'], [2, 'caught'], [1, 'nested'], [2, 'count'], [1, 'whole'], [2, 'deferred'], [1.5, 'late'], [1.5, 'settings'], [1, 'replace'], [0.4, 'empty']];

const RULES = [
	t => `ON UPDATE TO ${t.ref} DO ALSO INSERT INTO app.audit (tab, op, was) VALUES ('${t.name.replaceAll('\'', '')}', 'rule', OLD.b)`,
	t => `ON INSERT TO ${t.ref} DO ALSO INSERT INTO app.audit (tab, op, now) VALUES ('rule', 'ins', NEW.b)`,
	t => `ON DELETE TO ${t.ref} DO INSTEAD UPDATE ${t.ref} SET a = -100 WHERE id = OLD.id`,
	t => `ON DELETE TO ${t.ref} DO ALSO UPDATE app.counters SET n = n + 1 WHERE name = 'DELETE'`,
	t => `ON UPDATE TO ${t.ref} WHERE NEW.a = 13 DO INSTEAD NOTHING`,
];

function views(r, m, t) {
	const name = `app.v${++m.made}`, cols = t.cols.filter(c => !c.generated);
	const all = cols.map(c => ident(c.name)).join(', ');
	if (r.chance(0.6)) {
		m.sql.push(`CREATE VIEW ${name} AS SELECT ${all} FROM ${t.ref} WHERE a IS NULL OR a < 15
			${r.chance(0.3) ? 'WITH CHECK OPTION' : ''};`);
	} else {
		const fn = routine(r, m, `IF TG_OP = 'UPDATE' THEN UPDATE ${t.ref} SET a = NEW.a, b = NEW.b WHERE id = OLD.id; RETURN NEW;
			ELSIF TG_OP = 'DELETE' THEN DELETE FROM ${t.ref} WHERE id = OLD.id; RETURN OLD;
			ELSE INSERT INTO app.audit (tab, op, now) VALUES ('view', 'INSERT', NEW.b); RETURN NEW; END IF;`);
		m.sql.push(`CREATE VIEW ${name} AS SELECT ${all} FROM ${t.ref};
			CREATE TRIGGER tr INSTEAD OF INSERT OR UPDATE OR DELETE ON ${name} FOR EACH ROW EXECUTE FUNCTION ${fn}();`);
	}
	m.views.push({ ...t, ref: name, view: true, cols, keyed: { ...t.keyed }, base: t });
}

// Functions that write, to be called from a statement.
function writers(r, m, t) {
	const name = fresh(m);
	m.sql.push(`CREATE FUNCTION ${name}(n int) RETURNS int LANGUAGE plpgsql ${r.chance(0.5) ? 'SECURITY DEFINER' : ''} AS $body$ BEGIN
		UPDATE ${t.ref} SET b = 'by function' WHERE a = n; INSERT INTO app.audit (tab, op) VALUES ('f', n::text); RETURN n; END $body$;`);
	m.functions.push(name);
}

function policies(r, m, t) {
	m.sql.push(`ALTER TABLE ${t.ref} ENABLE ROW LEVEL SECURITY;
		CREATE POLICY sees ON ${t.ref} FOR SELECT USING (a IS NULL OR a < 12);
		CREATE POLICY adds ON ${t.ref} FOR INSERT WITH CHECK (true);
		CREATE POLICY alters ON ${t.ref} FOR UPDATE USING (a IS NULL OR a > -15) WITH CHECK (true);
		CREATE POLICY takes ON ${t.ref} FOR DELETE USING (true);`);
	m.hides[t.ref] = 'row security';
}

// The agent "narrow" may not do everything.
function privileges(r, m) {
	m.sql.push(`GRANT USAGE ON SCHEMA app TO narrow; GRANT USAGE ON ALL SEQUENCES IN SCHEMA app TO app, narrow;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA app TO narrow;`);
	m.narrow = {};
	for (const t of m.tables)
		if (r.chance(0.25)) {
			m.sql.push(`REVOKE SELECT, UPDATE ON ${t.ref} FROM narrow;
				GRANT SELECT (id, a, b), UPDATE (a, b) ON ${t.ref} TO narrow;`);
			m.narrow[t.ref] = 'no SELECT on the whole of it';
		}
	if (r.chance(0.3)) {
		m.sql.push('REVOKE SELECT ON app.audit FROM narrow;');
		m.narrow['app.audit'] = 'no SELECT';
	}
}

export function dress(r, m) {
	m.made = 0;
	m.hides = {};
	m.sql.push(`CREATE TABLE app.audit (${r.chance(0.5) ? 'n int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ' : ''}tab text, op text, was text, now text);
		CREATE TABLE app.counters (name text PRIMARY KEY, n int NOT NULL);
		INSERT INTO app.counters VALUES ('INSERT', 0), ('UPDATE', 0), ('DELETE', 0), ('caught', 0);
		CREATE TABLE app.scratch (n int);`);
	for (const t of m.tables) {
		for (let n = r.weighted([[5, 0], [4, 1], [2, 2], [1, 3]]); n > 0; n--)
			TRIGGERS[r.weighted(TRIGGER_WEIGHTS)](r, m, t);
		if (!t.parted && r.chance(0.1))
			m.sql.push(`CREATE RULE "r ${++m.made}" AS ${r.pick(RULES)(t)};`);
		if (r.chance(0.15))
			views(r, m, t);
		if (r.chance(0.08))
			policies(r, m, t);
	}
	if (r.chance(0.3))
		writers(r, m, r.pick(m.tables));
	privileges(r, m);
}
