// mutate: variants of the red cases, each with what it may be answered
import { constants, disguise } from './lexis.mjs';
import { Random } from './random.mjs';
import { casts, liars, reds, rows, scalars, volatile } from './seeds.mjs';

// A variant: { sql, params, from, how, query, execute, read, write }.  query
// and execute name what each tool may answer beside a refusal or an error:
// '' nothing, 'rows', 'pending'; read and write, where they are known, the
// very outcome.
const bare = sql => sql.replace(/--[^\n]*$/, '').replace(/[;\s]+$/, '').replace(/^\s*\/\*[^*]*\*\/\s*/, '');

const EXPLAINS = ['EXPLAIN ANALYZE', 'EXPLAIN ANALYSE', 'explain analyze verbose', 'EXPLAIN (ANALYZE)', 'EXPLAIN (ANALYZE true)',
	'EXPLAIN (ANALYZE ON)', 'EXPLAIN (ANALYZE 1)', 'EXPLAIN (ANALYZE \'true\')', 'EXPLAIN (ANALYZE "on")', 'EXPLAIN (ANALYZE yes)',
	'EXPLAIN (COSTS OFF, ANALYZE, BUFFERS)', 'EXPLAIN ("analyze")', 'EXPLAIN (ANALYZE false, ANALYZE)', 'EXPLAIN (ANALYZE tRuE, VERBOSE)',
	'EXPLAIN (ANALYZE, FORMAT json)', 'EXPLAIN (WAL, ANALYZE)', 'EXPLAIN (ANALYZE, TIMING off, SUMMARY off)', 'EXPLAIN (FORMAT xml, ANALYZE 1)',
	'EXPLAIN (SETTINGS, ANALYZE t)', 'EXPLAIN (ANALYZE 0, "analyze" \'1\')', 'EXPLAIN (ANALYZE +1)'];
const PLANS = ['EXPLAIN', 'EXPLAIN VERBOSE', 'EXPLAIN (ANALYZE false)', 'EXPLAIN (COSTS off)', 'EXPLAIN (FORMAT yaml)', 'EXPLAIN (ANALYZE, ANALYZE 0)'];

const q = s => s.replaceAll('\'', '\'\'');
const isCte = s => /^\s*with\b/i.test(s);
const returning = s => (/\breturning\b/i.test(s) || /^\s*(merge|with)\b/i.test(s) ? s : `${s} RETURNING 1`);

// What runs another statement, or sends it beside one.
const carriers = [
	s => `SELECT 42; ${s}`, s => `${s}; SELECT 42`, s => `BEGIN; ${s}; COMMIT`, s => `COMMIT; ${s}`, s => `; ; ${s} ; ROLLBACK`,
	s => `${s};\n-- \n${s}`, s => `DO $do$ BEGIN ${s}; END $do$`, s => `DO '${q(`BEGIN ${s}; END`)}'`, s => `PREPARE siege_p AS ${s}`,
	s => `EXPLAIN ANALYZE EXECUTE siege_p /* ${s.replaceAll('*/', '')} */`, s => `DECLARE siege_c CURSOR FOR ${s}`,
	s => `EXPLAIN (ANALYZE) DECLARE siege_c CURSOR FOR ${s}`, s => `COPY (${returning(s)}) TO STDOUT`,
	s => `COPY (${returning(s)}) TO PROGRAM 'cat > /tmp/airlock_case_siege'`, s => `CREATE TABLE siege_t AS ${s}`,
	s => `CREATE FUNCTION siege_f() RETURNS void LANGUAGE sql AS $fn$ ${s} $fn$`, s => `CREATE SCHEMA siege_s ${s}`,
	s => `CREATE RULE siege_r AS ON INSERT TO audit DO ALSO ${s}`, s => `CREATE VIEW siege_v AS ${s}`,
	s => `SELECT query_to_xml('${q(s)}', true, true, '')`, s => `SELECT * FROM ts_stat('${q(s)}')`, s => `SELECT dblink_exec(DBLINK, '${q(s)}')`,
	s => `EXPLAIN ANALYZE CREATE TABLE siege_t AS ${s}`, s => `SELECT $a$ $b$ $a$; ${s}; --$b$`, s => `SELECT 'a\\'; ${s}; --'`,
	s => `SELECT E'\\'' ; ${s}`, s => `SELECT 1 /* /* */ */; ${s}`, s => `START TRANSACTION; ${s}; PREPARE TRANSACTION 'siege'`,
	s => `SAVEPOINT a; ${s}; RELEASE a`, s => `EXECUTE siege_p; ${s}`, s => `SET transaction_read_only = off; ${s}`,
	s => `\\;${s}`, s => `SELECT 1 \\gexec\n${s}`, s => `ANALYZE (${s})`, s => `(${s})`, s => `((${s}))`, s => `SELECT (${s})`,
	s => `SELECT * FROM (${returning(s)}) x`, s => `SELECT EXISTS (${returning(s)})`, s => `VALUES ((${returning(s)}))`,
	s => `SELECT ARRAY(${returning(s)})`, s => `CALL siege(${q(s)})`, s => `SELECT 1 UNION ${returning(s)}`,
];

// A write inside a read: one that db_execute may hold.
const ctes = [
	s => `WITH x AS (${s}) SELECT 42`, s => `WITH x AS (${returning(s)}) SELECT * FROM x`, s => `WITH x(a) AS (${returning(s)}) SELECT count(*) FROM x`,
	s => `WITH y AS (SELECT 1), x AS (${returning(s)}), z AS (TABLE x) SELECT * FROM y`, s => `WITH x AS MATERIALIZED (${returning(s)}) SELECT 1 FROM x`,
	s => `WITH x AS NOT MATERIALIZED (${returning(s)}) TABLE x`, s => `WITH RECURSIVE x AS (${returning(s)}) VALUES (1)`,
	s => `WITH x AS (${returning(s)}) (SELECT 1 FROM x)`, s => `WITH x AS (${returning(s)}) SELECT 1 UNION ALL SELECT 2 FROM x`,
	s => `WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3), x AS (${returning(s)}) SELECT * FROM r`,
	s => `WITH x AS (${s}) INSERT INTO audit SELECT 1`, s => `SELECT * FROM (WITH x AS (${returning(s)}) SELECT * FROM x) s`,
	s => `SELECT 1 WHERE EXISTS (WITH x AS (${returning(s)}) SELECT * FROM x)`, s => `WITH a AS (WITH x AS (${returning(s)}) SELECT * FROM x) SELECT * FROM a`,
	s => `WITH x AS (${s}), parcel AS (SELECT 1) SELECT * FROM parcel`,
];

// Places of a call in a read; $E is any expression, whatever its type.
const places = `
SELECT $E | SELECT $E AS x FROM depot WHERE depot_id = 1 | VALUES ($E) | SELECT 1 WHERE $E IS NOT NULL | SELECT * FROM (VALUES (1, $E)) v
SELECT (SELECT $E) | SELECT * FROM depot, LATERAL (SELECT $E) l | SELECT * FROM ROWS FROM ($E) r | SELECT * FROM $E f | SELECT * FROM $E WITH ORDINALITY
SELECT * FROM ROWS FROM (generate_series(1, 2), $E) WITH ORDINALITY | SELECT * FROM depot CROSS JOIN LATERAL $E l | SELECT ARRAY[$E] | SELECT ROW(1, $E)
SELECT count(*) FILTER (WHERE $E IS NULL) FROM depot | SELECT sum(1) OVER (PARTITION BY $E) FROM depot | SELECT sum(1) OVER w FROM depot WINDOW w AS (ORDER BY $E)
SELECT sum(1) OVER (ORDER BY depot_id ROWS BETWEEN length(($E)::text) PRECEDING AND CURRENT ROW) FROM depot | SELECT 1 ORDER BY $E | SELECT 1 LIMIT length(($E)::text)
SELECT 1 OFFSET length(($E)::text) | SELECT 1 FETCH FIRST (length(($E)::text)) ROWS ONLY | SELECT depot_id FROM depot GROUP BY depot_id, ($E)::text
SELECT 1 GROUP BY GROUPING SETS ((($E)::text), ()) | SELECT DISTINCT ON (($E)::text) 1 | SELECT 1 FROM depot GROUP BY region HAVING ($E) IS NULL
SELECT CASE WHEN $E IS NULL THEN 1 ELSE 2 END | SELECT CASE 1 WHEN 1 THEN ($E)::text END | SELECT COALESCE(NULL, ($E)::text) | SELECT NULLIF(($E)::text, '') | SELECT GREATEST(($E)::text, 'a')
SELECT 1 = ANY (ARRAY[length(($E)::text)]) | SELECT ($E) IS DISTINCT FROM NULL | SELECT ($E)::text | SELECT CAST($E AS text) | SELECT ($E)::text COLLATE "C" | SELECT ($E)::text LIKE 'a%'
SELECT 'x' BETWEEN ($E)::text AND 'z' | SELECT ($E)::text IN ('a', 'b') | SELECT to_json($E) | SELECT json_build_object('a', $E) | SELECT xmlelement(name a, $E) | SELECT xmlforest($E AS b)
SELECT * FROM XMLTABLE('/a' PASSING xmlparse(CONTENT ($E)::text) COLUMNS b text) x | SELECT * FROM XMLTABLE('/a' PASSING '<a/>' COLUMNS b text PATH 'b' DEFAULT ($E)::text) x
SELECT * FROM depot TABLESAMPLE bernoulli (length(($E)::text)) | SELECT * FROM depot TABLESAMPLE system (50) REPEATABLE (length(($E)::text)) | SELECT array_agg($E ORDER BY 1) | SELECT count($E)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY length(($E)::text)) FROM depot | WITH x AS (SELECT $E) SELECT 1 FROM x | WITH x AS MATERIALIZED (SELECT $E) TABLE x | SELECT 1 UNION SELECT length(($E)::text)
(SELECT $E) | ((SELECT 1 EXCEPT SELECT length(($E)::text))) | SELECT EXISTS (SELECT $E) | SELECT ARRAY(SELECT $E) | WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 2 AND ($E) IS NULL) TABLE r
SELECT d.* FROM depot d JOIN courier c ON ($E) IS NULL | SELECT (ARRAY['a'])[length(($E)::text)] | SELECT (CASE WHEN false THEN 1 ELSE length(($E)::text) END) | SELECT ($E) AT TIME ZONE 'UTC' | SELECT overlay('abc' PLACING ($E)::text FROM 1)
SELECT DISTINCT ($E)::text FROM depot | SELECT extract(year FROM ($E)::text::date) | SELECT trim(($E)::text) | SELECT position('a' IN ($E)::text) | SELECT NOT (($E) IS NULL) | SELECT lag($E) OVER (ORDER BY 1) FROM depot
SELECT row_number() OVER (ORDER BY ($E)::text DESC NULLS LAST) FROM depot | SELECT * FROM generate_series(1, length(($E)::text)) | SELECT f FROM unnest(ARRAY[($E)::text]) f | SELECT concat(VARIADIC ARRAY[($E)::text])`
	.trim().split(/ \| |\n/);
const fromPlaces = ['SELECT * FROM $E', 'SELECT x.* FROM $E x', 'SELECT count(*) FROM depot d, LATERAL $E l', 'SELECT * FROM ROWS FROM ($E, generate_series(1,2)) r',
	'SELECT 1 WHERE EXISTS (SELECT * FROM $E)', 'WITH x AS (SELECT * FROM $E) SELECT 1 FROM x', 'SELECT $E'];

// The same in writes: never held.
const writing = `
UPDATE tariff SET cents = length(($E)::text) WHERE tariff_id = 1 | UPDATE tariff SET code = 'x' WHERE ($E) IS NOT NULL | DELETE FROM invoice WHERE invoice_id = 1 AND ($E) IS NULL
INSERT INTO audit VALUES (length(($E)::text)) | INSERT INTO audit SELECT length(($E)::text) | INSERT INTO audit VALUES (1) RETURNING $E | UPDATE tariff SET cents = 1 WHERE tariff_id = 1 RETURNING ($E)::text
INSERT INTO depot VALUES (1, 'a', 'b') ON CONFLICT (depot_id) DO UPDATE SET label = ($E)::text | INSERT INTO depot VALUES (1) ON CONFLICT (depot_id) DO UPDATE SET label = 'b' WHERE ($E) IS NULL
DELETE FROM invoice USING $E f WHERE invoice_id = 1 | UPDATE tariff SET cents = 2 FROM (SELECT $E) s WHERE tariff_id = 1 | WITH x AS (SELECT $E) DELETE FROM invoice WHERE invoice_id = 2
MERGE INTO tariff t USING (SELECT 1 AS k) s ON t.tariff_id = s.k WHEN MATCHED THEN UPDATE SET code = ($E)::text | MERGE INTO tariff t USING (SELECT $E AS k) s ON false WHEN NOT MATCHED THEN DO NOTHING
MERGE INTO tariff t USING (SELECT 1 AS k) s ON t.tariff_id = s.k WHEN MATCHED AND ($E) IS NULL THEN DELETE | UPDATE tariff SET (cents, code) = (SELECT 1, ($E)::text) WHERE tariff_id = 3
WITH x AS (INSERT INTO audit VALUES (1) RETURNING $E) SELECT * FROM x | WITH x AS (UPDATE tariff SET cents = 3 WHERE tariff_id = 1 RETURNING 1) SELECT ($E)::text FROM x`
	.trim().split(/ \| |\n/);

// Locks in a read.
const LOCKS = ['FOR UPDATE', 'FOR NO KEY UPDATE', 'FOR SHARE', 'FOR KEY SHARE', 'FOR UPDATE NOWAIT', 'FOR SHARE SKIP LOCKED', 'FOR UPDATE OF d', 'FOR KEY SHARE OF d FOR UPDATE OF d'];
const lockPlaces = ['SELECT * FROM depot d $L', '(SELECT * FROM depot d $L)', 'SELECT * FROM (SELECT * FROM depot d $L) x', 'WITH x AS (SELECT * FROM depot d $L) SELECT 1 FROM x',
	'SELECT 1 WHERE EXISTS (SELECT 1 FROM depot d $L)', 'SELECT * FROM courier c, LATERAL (SELECT * FROM depot d WHERE d.depot_id = c.depot_id $L) l', 'SELECT ARRAY(SELECT depot_id FROM depot d $L)',
	'SELECT * FROM depot d LIMIT 1 $L', 'SELECT * FROM depot d $L LIMIT 1', 'SELECT (SELECT depot_id FROM depot d LIMIT 1 $L)', 'EXPLAIN ANALYZE SELECT * FROM depot d $L',
	'WITH x AS MATERIALIZED (SELECT * FROM depot d $L) TABLE x', 'SELECT * FROM ((SELECT * FROM depot d $L)) x'];

// Places of a lying function in a read, which may be answered.
const liarPlaces = ['SELECT $E', 'SELECT * FROM $E f', 'SELECT 1 WHERE $E IS NOT NULL', 'EXPLAIN SELECT $E', 'EXPLAIN ANALYZE SELECT $E', 'EXPLAIN SELECT * FROM parcel WHERE weight_g::text = ($E)::text',
	'SELECT count(*) FROM depot WHERE ($E) IS NOT NULL', 'VALUES ($E)', 'WITH x AS MATERIALIZED (SELECT $E) TABLE x', 'SELECT 1 LIMIT length(($E)::text)', 'SELECT d.depot_id FROM depot d, LATERAL (SELECT $E) l LIMIT 2'];
const liarWrites = ['INSERT INTO audit SELECT length(($E)::text)', 'UPDATE tariff SET cents = 1 WHERE tariff_id = 1 AND ($E) IS NOT NULL'];

const TABLE_READS = ['TABLE vault_key', 'VALUES (1)', '(TABLE hr.payee)'];

const put = (place, e) => place.replaceAll('$E', () => e).replaceAll('$L', () => e);

// How each kind of variant is made.
const kinds = {
	// the same statement in other words: the very same outcome
	words(r) {
		const c = r.pick(reds);
		const [read, write] = c.outcome;
		return { sql: c.sql, from: c.id, query: read === 'rows' ? 'rows' : '', execute: write === 'pending' ? 'pending' : '', read, write };
	},
	constants(r) {
		const c = r.pick(reds.filter(c => /WRITE_IN|OUTSIDE|LOCKING/.test(c.outcome[0])));
		return { ...constants(r, bare(c.sql)), from: c.id, query: '', execute: c.outcome[1] === 'pending' ? 'pending' : '' };
	},
	explain(r) {
		const c = r.pick(reds.filter(c => c.outcome[0] !== 'rows'));
		return { sql: `${r.pick(EXPLAINS)} ${bare(c.sql)}`, from: c.id, query: '', execute: '' };
	},
	plan(r) {
		const c = r.pick(reds);
		const planned = /^(WRITE_IN_QUERY|rows)$/.test(c.outcome[0]);
		return { sql: `${r.pick(PLANS)} ${bare(c.sql)}`, from: c.id, query: planned ? 'rows' : '', execute: '' };
	},
	carrier(r) {
		const c = r.pick(reds.filter(c => !/rows|42601/.test(c.outcome[0])));
		const text = bare(c.sql);
		return { sql: r.pick(carriers)(r.chance(0.2) ? `${r.pick(EXPLAINS)} ${text}` : text), from: c.id, query: '', execute: isCte(text) ? 'pending' : '' };
	},
	cte(r) {
		const c = r.pick(reds.filter(c => c.outcome[1] === 'pending' && !isCte(c.sql)));
		const sql = r.pick(ctes)(bare(c.sql));
		return r.chance(0.3) ? { sql: `${r.pick(EXPLAINS)} ${sql}`, from: c.id, query: '', execute: '' }
			: { sql, from: c.id, query: '', execute: 'pending' };
	},
	call(r) {
		const e = r.pick(scalars);
		const sql = put(r.pick(places), r.chance(0.2) ? `(${e})` : e);
		return { sql: r.chance(0.2) ? `${r.pick([...EXPLAINS, ...PLANS])} ${sql}` : sql, from: e, query: '', execute: '' };
	},
	rows(r) {
		const e = r.pick(rows);
		return { sql: put(r.pick(fromPlaces), e), from: e, query: '', execute: '' };
	},
	callInWrite(r) {
		const e = r.pick(scalars);
		const sql = put(r.pick(writing), e);
		return { sql, from: e, query: '', execute: '' };
	},
	volatile(r) {
		const sql = r.pick(r.chance(0.9) ? volatile : casts);
		const inner = s => s.replace(/^EXPLAIN (ANALYZE )?/, '');
		const wrapped = r.pick([s => s, s => s, s => `EXPLAIN ANALYZE ${inner(s)}`, s => `WITH x AS MATERIALIZED (${inner(s)}) SELECT count(*) FROM x`,
			s => `(${inner(s)})`, s => `SELECT EXISTS (${inner(s)})`])(sql);
		return { sql: wrapped, from: sql, query: '', execute: '' };
	},
	liar(r) {
		const e = r.pick(liars);
		return r.chance(0.2) ? { sql: put(r.pick(liarWrites), e), from: e, query: '', execute: 'pending' }
			: { sql: put(r.pick(liarPlaces), e), from: e, query: 'rows', execute: '' };
	},
	lock(r) {
		const l = r.pick(LOCKS);
		return { sql: put(r.pick(lockPlaces), l), from: l, query: '', execute: '' };
	},
	table(r) {
		const sql = r.pick(TABLE_READS);
		const d = r.pick(['SELECT * FROM (%) x', '(%)', '% UNION ALL %', 'WITH y AS (%) TABLE y', '% LIMIT 1']).replaceAll('%', () => sql);
		return { sql: d, from: sql, query: 'rows', execute: '' };
	},
};
const SHARES = { words: 34, constants: 6, explain: 9, plan: 4, carrier: 10, cte: 7, call: 14, rows: 2, callInWrite: 6, volatile: 3, liar: 3, lock: 2, table: 1 };
const wheel = Object.entries(SHARES).flatMap(([kind, n]) => Array.from({ length: n }, () => kind));

const BYTES_MAX = 65536; // statement_bytes_max

// No two alike; victim: the pid that calls aim at; dblink: a conninfo string.
export function* variants(seed, n, { victim, dblink }) {
	const seen = new Set();
	for (let i = 0, k = 0; i < n; k++) {
		const r = new Random(seed + k * 7919); // what one holds moves no other
		const kind = wheel[(k * 37 + r.below(3)) % wheel.length];
		const v = kinds[kind](r);
		v.sql = v.sql.replaceAll('VICTIM', () => victim).replaceAll('DBLINK', () => `'${dblink.replaceAll('\'', '\'\'')}'`);
		v.params ??= [];
		v.how = [kind];
		if (kind === 'words' || r.chance(0.6)) {
			const d = disguise(r, v.sql);
			v.sql = d.sql;
			v.how.push(...d.how);
		}
		if (seen.has(v.sql) || Buffer.byteLength(v.sql) > BYTES_MAX)
			continue;
		seen.add(v.sql);
		i++;
		yield v;
	}
}
