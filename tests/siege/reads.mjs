// reads: harmless statements made by machine, over the fixture of the red cases
import { fixture } from '../e2e/lib/cases.mjs';
import { constants, disguise } from './lexis.mjs';

export const setup = `${fixture}
CREATE FUNCTION kilos(g int) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT round(g / 1000.0, 3) $$;
CREATE FUNCTION label_of(int) RETURNS text LANGUAGE sql STABLE AS $$ SELECT label FROM depot WHERE depot_id = $1 $$;
CREATE FUNCTION twice(x text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN x || x; END $$;
CREATE FUNCTION lost_in(int) RETURNS SETOF parcel LANGUAGE sql STABLE AS $$ SELECT * FROM parcel WHERE state = 'lost' AND depot_id = $1 $$;
CREATE FUNCTION pairs(n int, OUT a int, OUT b text) RETURNS SETOF record LANGUAGE sql IMMUTABLE AS $$ SELECT g, 'p' || g FROM generate_series(1, n) g $$;
CREATE AGGREGATE longest(text) (SFUNC = text_larger, STYPE = text);
CREATE OPERATOR <+> (LEFTARG = text, RIGHTARG = text, FUNCTION = textcat);
CREATE VIEW lost AS SELECT p.parcel_id, d.label FROM parcel p JOIN depot d USING (depot_id) WHERE p.state = 'lost';
CREATE MATERIALIZED VIEW weights AS SELECT depot_id, sum(weight_g) AS grams FROM parcel GROUP BY 1;
CREATE DOMAIN short AS text CHECK (length(VALUE) < 100); CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad');
COMMENT ON TABLE depot IS 'where parcels wait';
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET max_parallel_workers_per_gather = 0', current_database()); END $$;
ANALYZE;`;

// Tables small enough to be joined; their columns by type.
const TABLES = {
	depot: { depot_id: 'int', label: 'text', region: 'text' },
	courier: { courier_id: 'int', full_name: 'text', depot_id: 'int', badge_pin: 'text' },
	tariff: { tariff_id: 'int', code: 'text', cents: 'int' },
	invoice: { invoice_id: 'int', parcel_id: 'int', cents: 'int', paid: 'bool' },
	touched: { id: 'int', v: 'int', updated_at: 'time' },
	lost: { parcel_id: 'int', label: 'text' },
	weights: { depot_id: 'int', grams: 'int' },
	courier_card: { courier_id: 'int', full_name: 'text', depot_id: 'int', badge_pin: 'text' },
};
const QUALIFIED = { 'hr.payee': { payee_id: 'int', full_name: 'text', iban: 'text' }, '"Manifest"': { id: 'int', body: 'text' } };
const SOURCES = { ...TABLES, ...QUALIFIED };
const WORDS = ['\'lost\'', '\'r1\'', '\'\'', '\'it\'\'s; -- fine /* too */\'', '\'Zürich 中 é\'', 'E\'a\\tb\\n\'', '$$DROP TABLE x$$', '$q$ a $$ b $q$',
	'U&\'\\0061\\+00006d\'', 'U&\'!0061\' UESCAPE \'!\'', '\'a\'\n\'b\'', 'NULL', '\'depot 5\'', '\'DELETE FROM parcel\'', '\'{"a": [1, 2, {"b": null}]}\'', '\'\\x\''];

// An expression of a type over the columns in scope.
class Maker {
	constructor(r) {
		this.r = r;
	}

	name() {
		return `${this.r.pick(['a', 'b', 'x', 'y', 'q', 'z'])}${++this.names}`;
	}

	column(scope, type) {
		const fit = scope.filter(c => c.type === type);
		return fit.length ? this.r.pick(fit).ref : null;
	}

	expr(type, scope, depth = 2) {
		const column = this.r.chance(0.5) || depth <= 0 ? this.column(scope, type) : null;
		if (column)
			return column;
		if (depth <= 0)
			return this.constant(type);
		const e = (t, d = depth - 1) => this.expr(t, scope, d);
		return this.r.pick(this[type](e, scope, depth));
	}

	constant(type) {
		return {
			int: () => String(this.r.pick([0, 1, 2, 5, 20, 100, 999])),
			text: () => this.r.pick(WORDS.slice(0, -3)) + '::text',
			bool: () => this.r.pick(['true', 'false', 'NULL::bool']),
			time: () => this.r.pick(['timestamptz \'2026-01-02 03:04:05+00\'', '\'2025-12-31\'::timestamptz', 'CAST(\'infinity\' AS timestamptz)']),
		}[type]();
	}

	int(e, scope, depth) {
		return [
			this.constant('int'), `(${e('int')} + ${e('int')})`, `(${e('int')} % 7)`, `-${e('int', 0)}`.replace('--', '- -'), `coalesce(${e('int')}, 0)`, `length(${e('text')})`,
			`CASE WHEN ${e('bool')} THEN ${e('int')} ELSE ${e('int')} END`, `abs(${e('int')})`, `greatest(${e('int')}, ${e('int')}, 3)`, `nullif(${e('int')}, 1)`,
			`extract(year FROM ${e('time')})::int`.replace('infinity', '2020-01-01'), `CAST(${e('bool')} AS int)`, `(ARRAY[${e('int')}, 2, 3])[2]`, `cardinality(ARRAY[${e('int')}, NULL])`,
			`('{"a": 5}'::jsonb ->> 'a')::int`, `(SELECT count(*) FROM depot WHERE depot_id < 4)::int`, `(SELECT max(s.n) FROM (VALUES (1), (2)) s(n))`,
			`position('e' IN ${e('text')})`, `width_bucket(${e('int')}, 0, 100, 4)`, `${e('int', 0)} OPERATOR(pg_catalog.*) 2`, `pg_catalog.abs(${e('int', 0)})`, `strpos(${e('text')}, 'e')`,
			`round(kilos(${e('int', 0)}))::int`, `ascii(${e('text')})`, `(row_to_json(ROW(${e('int', 0)})) ->> 'f1')::int`, `array_length(string_to_array(${e('text')}, ' '), 1)`, `bit_count(B'101')::int`,
			...(depth > 1 ? [`(SELECT sum(i.cents) FROM invoice i WHERE i.parcel_id = ${e('int', 0)})::int`] : []),
		];
	}

	text(e) {
		return [
			this.constant('text'), `(${e('text')} || ${e('text')})`, `upper(${e('text')})`, `${e('int')}::text`, `coalesce(${e('text')}, 'none')`, `left(${e('text')}, 5)`, `substring(${e('text')} FROM 2 FOR 3)`,
			`trim(BOTH ' ' FROM ${e('text')})`, `replace(${e('text')}, 'e', 'E')`, `md5(${e('text')})`, `format('%s-%s', ${e('int')}, ${e('text')})`, `concat_ws(',', ${e('text')}, ${e('int')})`,
			`twice(${e('text')})`, `label_of(${e('int')})`, `(${e('text')} <+> ${e('text')})`, `to_char(${e('time')}, 'YYYY-MM')`.replace('infinity', '2020-01-01'), `jsonb_build_object('k', ${e('int')})::text`, `to_json(${e('text')})::text`,
			`array_to_string(ARRAY[${e('text')}, 'b'], '/')`, `(${e('text')} COLLATE "C")`, `${e('text')}::varchar(8)::text`, `quote_literal(${e('text')})`, `CAST(${e('bool')} AS text)`, `${e('text')}::short::text`, `'ok'::mood::text`,
			`overlay(${e('text')} PLACING 'xx' FROM 2 FOR 1)`, `reverse(${e('text')})`, `regexp_replace(${e('text')}, '[aeiou]', '_', 'g')`, `('{"a": "z"}'::json ->> 'a')`, `encode(sha256('abc'::bytea), 'hex')`, `(${e('text')} IS NULL)::text`,
			`(xmlelement(name a, ${e('int')}))::text`, `'\\xdeadbeef'::bytea::text`, `(interval '1 day' * ${e('int', 0)})::text`, `pg_typeof(${e('int')})::text`, `split_part(${e('text')}, ' ', 1)`, `host(inet '10.0.0.1')`,
			`int4range(1, 5)::text`, `(point '(1,2)')::text`, `to_tsvector('simple', ${e('text')})::text`, `chr(64 + ${this.r.between(1, 20)})`, `format('%L', ${e('text')})`,
		];
	}

	bool(e) {
		return [
			this.constant('bool'), `${e('int')} < ${e('int')}`, `${e('int')} BETWEEN 1 AND ${e('int')}`, `(${e('bool')} AND ${e('bool')})`, `(${e('bool')} OR ${e('bool')})`, `NOT (${e('bool')})`, `${e('text')} LIKE 'd%'`, `${e('text')} ILIKE '%E_'`,
			`${e('text')} ~ '^[a-z ]+\\d*$'`, `${e('int')} IN (1, 2, ${e('int')})`, `${e('int')} NOT IN (7, 8)`, `${e('text')} IS NOT NULL`, `${e('int')} IS DISTINCT FROM ${e('int')}`, `${e('int')} = ANY (ARRAY[1, 2, 3])`,
			`EXISTS (SELECT 1 FROM depot s WHERE s.depot_id = ${e('int', 0)})`, `${e('int')} IN (SELECT depot_id FROM courier)`, `${e('int')} > ALL (SELECT tariff_id FROM tariff WHERE cents < 3)`, `(${e('int')}, 1) = (1, ${e('int')})`,
			`'{"a": 1}'::jsonb @> '{"a": 1}'`, `ARRAY[1, 2] && ARRAY[${e('int')}]`, `'{"k": null}'::jsonb ? 'k'`, `int4range(1, 9) @> ${e('int')}`, `${e('time')} < timestamptz '2026-06-01'`, `(${e('bool')}) IS TRUE`, `(${e('bool')}) IS NOT UNKNOWN`,
			`${e('text')} SIMILAR TO '(a|d)%'`, `${e('text')} <> ''`, `starts_with(${e('text')}, 'd')`, `to_tsvector('simple', ${e('text')}) @@ to_tsquery('simple', 'depot')`, `ROW(1, ${e('int')}) IS NOT NULL`, `(DATE '2026-01-01', DATE '2026-02-01') OVERLAPS (DATE '2026-01-15', interval '1 month')`,
		];
	}

	time(e) {
		return [this.constant('time'), `date_trunc('day', ${e('time')})`, `${e('time')} + interval '${this.r.between(1, 9)} hours'`, `((${e('time')}) AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'`, `coalesce(${e('time')}, timestamptz 'epoch')`, `make_timestamptz(2026, 1, ${this.r.between(1, 28)}, 3, 4, 5)`, `to_timestamp(${e('int', 0)})`];
	}

	type() {
		return this.r.pick(['int', 'int', 'text', 'text', 'bool', 'time']);
	}

	// A FROM item and what it brings into scope; outer: what LATERAL may see.
	source(outer, depth) {
		const alias = this.name();
		const cols = Object.entries;
		const from = (text, columns) => ({ text, scope: cols(columns).map(([n, type]) => ({ ref: `${alias}.${n}`, type })) });
		const ways = [
			() => { const t = this.r.pick(Object.keys(SOURCES)); return from(`${t in TABLES && this.r.chance(0.3) ? 'public.' : ''}${this.r.chance(0.1) && t in TABLES && !/lost|card/.test(t) ? 'ONLY ' : ''}${t}${this.r.pick([' ', ' AS '])}${alias}`.replace('ONLY public.', 'ONLY public.'), SOURCES[t]); },
			() => { const t = this.r.pick(Object.keys(SOURCES)); return from(`${t} ${alias}`, SOURCES[t]); },
			() => from(`(SELECT parcel_id, depot_id, state, sent_at FROM parcel WHERE parcel_id <= ${this.r.between(1, 30)}) AS ${alias}`, { parcel_id: 'int', depot_id: 'int', state: 'text' }),
			() => from(`(VALUES (1, 'one'), (2, ${this.constant('text')}), (NULL, 'none')) ${alias}(n, w)`, { n: 'int', w: 'text' }),
			() => from(`generate_series(1, ${this.r.between(2, 5)}) ${alias}(n)`, { n: 'int' }),
			() => from(`unnest(ARRAY[3, 1, 2], ARRAY['c', 'a', 'b']) WITH ORDINALITY AS ${alias}(n, w, o)`, { n: 'int', w: 'text' }),
			() => from(`pairs(${this.r.between(1, 4)}) ${alias}`, { a: 'int', b: 'text' }),
			() => from(`lost_in(${this.r.between(1, 9)}) ${alias}`, { parcel_id: 'int', state: 'text' }),
			() => from(`ROWS FROM (generate_series(1, 3), pairs(2)) AS ${alias}(n, p, q)`, { n: 'int', p: 'int', q: 'text' }),
			() => from(`jsonb_to_recordset('[{"n": 1, "w": "x"}, {"n": 2}]') AS ${alias}(n int, w text)`, { n: 'int', w: 'text' }),
			() => from(`jsonb_each_text('{"a": 1, "b": null}') ${alias}(k, w)`, { k: 'text', w: 'text' }),
			() => from(`XMLTABLE('/r/i' PASSING ('<r><i a="1">x</i><i a="2"/></r>'::xml) COLUMNS n int PATH '@a', w text PATH '.' DEFAULT 'z') ${alias}`, { n: 'int', w: 'text' }),
			() => from(`regexp_split_to_table('a b c', ' ') ${alias}(w)`, { w: 'text' }),
		];
		if (depth > 0)
			ways.push(() => from(`(${this.query([{ type: 'int', name: 'n' }, { type: 'text', name: 'w' }], [], depth - 1)}) AS ${alias}`, { n: 'int', w: 'text' }));
		if (outer.length)
			ways.push(() => from(`LATERAL (SELECT ${this.expr('int', outer, 1)} AS n, ${this.expr('text', outer, 1)} AS w) ${alias}`, { n: 'int', w: 'text' }));
		return this.r.pick(ways)();
	}

	joined(depth) {
		const first = this.source([], depth);
		let { text, scope } = first;
		for (let i = this.r.pick([0, 0, 1, 1, 2]); i > 0; i--) {
			const next = this.source(scope, depth);
			const [a, b] = [this.column(scope, 'int'), this.column(next.scope, 'int')];
			const lateral = next.text.startsWith('LATERAL');
			const kind = this.r.pick(lateral ? ['JOIN', 'LEFT JOIN'] : ['JOIN', 'INNER JOIN', 'LEFT JOIN', 'LEFT OUTER JOIN', 'RIGHT JOIN', 'FULL JOIN']);
			text += ` ${kind} ${next.text} ON ${a && b ? `${a} = ${b}` : 'true'}`.replace(/^ (RIGHT|FULL) JOIN (.*) ON true$/s, ' JOIN $2 ON true');
			scope = [...scope, ...next.scope];
		}
		return { text, scope };
	}

	list(columns, scope, depth) {
		return columns.map(c => `${this.expr(c.type, scope, depth)}${c.type === 'int' ? '::int8::int4'.slice(0, this.r.pick([0, 0, 6])) : ''} AS ${c.name}`);
	}

	// A query with these columns, no ORDER BY of its own.
	query(columns, outer, depth) {
		const { text, scope } = this.joined(depth);
		const all = [...outer, ...scope];
		const where = this.r.chance(0.6) ? ` WHERE ${this.expr('bool', all, 2)}` : '';
		const distinct = this.r.chance(0.15) ? 'DISTINCT ' : '';
		const select = `SELECT ${distinct}${this.list(columns, all, 2).join(', ')} FROM ${text}${where}`;
		if (depth > 0 && this.r.chance(0.2))
			return `${select} ${this.r.pick(['UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT', 'EXCEPT ALL', 'UNION DISTINCT'])} ${this.query(columns, outer, 0)}`;
		return select;
	}

	grouped() {
		const { text, scope } = this.joined(1);
		const key = this.expr('text', scope, 1), other = this.expr('int', scope, 1);
		const n = this.expr('int', scope, 1);
		const group = this.r.pick(['GROUP BY 1, 2', 'GROUP BY ROLLUP (1, 2)', 'GROUP BY CUBE (1, 2)', 'GROUP BY GROUPING SETS ((1), (2), ())', 'GROUP BY DISTINCT ROLLUP (1), ROLLUP (2)']);
		const filter = this.r.pick(['', ` FILTER (WHERE ${this.expr('bool', scope, 1)})`]);
		const aggregates = this.r.some([`count(*)${filter}`, `sum(${n})`, `max(${n})`, `avg(${n})::numeric(20,4)`, `string_agg(${this.expr('text', scope, 1)}, ',' ORDER BY 1)`.replace('ORDER BY 1', `ORDER BY ${n}, 1`), `longest(${this.expr('text', scope, 0)})`, `bool_or(${this.expr('bool', scope, 1)})`,
			`array_agg(DISTINCT ${n})`, `percentile_disc(0.5) WITHIN GROUP (ORDER BY ${n})`, `count(DISTINCT ${n})`, `json_agg(${n} ORDER BY ${n})`, `jsonb_object_agg('k' || coalesce(${n}::text, ''), 1)`, `mode() WITHIN GROUP (ORDER BY ${n})`, `stddev_pop(${n})::numeric(20,3)`], 3);
		return `SELECT ${key} AS k1, ${other} AS k2, ${aggregates.join(', ')} FROM ${text} ${group}${this.r.chance(0.4) ? ' HAVING count(*) > 0' : ''}`;
	}

	windowed() {
		const { text, scope } = this.joined(0);
		const n = this.expr('int', scope, 1), part = this.expr('text', scope, 1);
		const frame = this.r.pick(['', 'ROWS BETWEEN 1 PRECEDING AND CURRENT ROW', 'RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW', 'GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES', 'ROWS UNBOUNDED PRECEDING']);
		const over = `(PARTITION BY ${part} ORDER BY ${n} ${frame})`;
		return this.r.chance(0.5)
			? `SELECT ${n} AS n, row_number() OVER ${over}, sum(${n}) OVER ${over}, lag(${n}, 1, 0) OVER ${over} FROM ${text}`
			: `SELECT ${n} AS n, rank() OVER w, dense_rank() OVER w, ntile(3) OVER w, first_value(${n}) OVER w, count(*) FILTER (WHERE true) OVER w FROM ${text} WINDOW w AS ${over}`;
	}

	top() {
		const columns = Array.from({ length: this.r.between(1, 4) }, (_, i) => ({ type: this.type(), name: `c${i + 1}` }));
		const body = this.query(columns, [], 2);
		const by = this.r.pick(['', ' ORDER BY 1', ' ORDER BY 1 DESC NULLS LAST', ` ORDER BY ${columns.length}, 1`, ' ORDER BY c1 ASC']);
		const limit = this.r.pick([' LIMIT 20', ' LIMIT 7 OFFSET 1', ' FETCH FIRST 5 ROWS ONLY', ' OFFSET 2 ROWS FETCH NEXT ROW ONLY', ' LIMIT 1 + 1', ' LIMIT ALL']);
		return `${body}${by}${limit}`;
	}

	cte() {
		const columns = [{ type: 'int', name: 'n' }, { type: 'text', name: 'w' }];
		const c = this.name(), hint = this.r.pick(['', 'MATERIALIZED ', 'NOT MATERIALIZED ']);
		return this.r.pick([
			() => `WITH ${c} AS ${hint}(${this.query(columns, [], 1)}) SELECT n, count(*) FROM ${c} GROUP BY n ORDER BY n LIMIT 20`,
			() => `WITH ${c}(i, j) AS ${hint}(${this.query(columns, [], 1)}), depot AS (SELECT i FROM ${c} LIMIT 3) SELECT * FROM depot JOIN ${c} USING (i) LIMIT 20`,
			() => `WITH RECURSIVE ${c}(n, path) AS (SELECT 1, ARRAY[1] UNION ALL SELECT n + 1, path || n FROM ${c} WHERE n < ${this.r.between(2, 9)}) ${this.r.pick(['', 'SEARCH DEPTH FIRST BY n SET o ', 'CYCLE n SET seen USING trail '])}SELECT * FROM ${c}`,
			() => `WITH RECURSIVE ${c} AS (SELECT 5 AS n UNION SELECT n - 1 FROM ${c} WHERE n > 0) TABLE ${c}`,
			() => `WITH ${c} AS (VALUES (1, 'a'), (2, 'b')) TABLE ${c}`,
			() => `SELECT * FROM (WITH ${c} AS (${this.query(columns, [], 0)}) SELECT * FROM ${c}) s LIMIT 9`,
		])();
	}

	plain() {
		const t = this.r.pick(Object.keys(TABLES));
		const ids = Array.from({ length: this.r.pick([3, 40, 900]) }, () => this.r.between(1, 6000));
		return this.r.pick([
			`TABLE ${t}`, `TABLE public.${t}`, `(TABLE ${t}) LIMIT 5`, `VALUES (1, 'a'), (${this.expr('int', [])}, 'b'), (NULL, NULL)`, `SELECT * FROM ${t}`, `SELECT t.* FROM ${t} AS t LIMIT 4`, `SELECT t FROM ${t} t LIMIT 3`,
			`SELECT to_jsonb(t), row_to_json(t) FROM ${t} t LIMIT 3`, `SELECT count(*), count(t) FROM ${t} t`, `SELECT parcel_id FROM parcel WHERE parcel_id IN (${ids.join(', ')})`, `SELECT kind, count(*) FROM scan_event WHERE scan_id < 5000 GROUP BY kind`,
			`SELECT ${this.expr('text', [])} AS a, ${this.expr('int', [])} AS b`, `SELECT ${'('.repeat(60)}1${')'.repeat(60)} AS one`, 'SELECT \'a\' AS "select", 2 AS "Two Words", 3 AS "é""q"', `SELECT DISTINCT ON (region) region, label FROM depot ORDER BY region, ${this.r.pick(['label', 'depot_id DESC'])}`,
			`(SELECT label FROM depot ORDER BY 1 LIMIT 2) UNION ALL (SELECT code FROM tariff ORDER BY 1 LIMIT 2)`, `SELECT a.depot_id FROM depot a NATURAL JOIN depot b`, `SELECT * FROM depot a CROSS JOIN (VALUES (1), (2)) v`, 'SELECT $1::int + $2::int AS s', 'SELECT ARRAY[[1, 2], [3, 4]], ARRAY(SELECT depot_id FROM depot ORDER BY 1)', 'SELECT (ARRAY[1, 2, 3])[2:3], \'{a,b}\'::text[]',
			'SELECT 1e300::float8, 0.1::float8, 1/3.0, \'NaN\'::numeric, 9223372036854775807, -0.0::float8', 'SELECT \'1 mon 2 days 03:04:05\'::interval, DATE \'0044-03-15 BC\', TIME \'24:00\'', 'SELECT currval(\'ticket_no\') WHERE false', 'SELECT money \'12.5\', bit \'101\', macaddr \'08:00:2b:01:02:03\'', 'SELECT JSON \'{"a" :  1}\', JSONB \'{"b":1,"a":2}\' - \'b\', jsonb_path_query(\'{"a":[1,2]}\', \'$.a[*]\')',
		]);
	}

	catalog() {
		const t = this.r.pick(Object.keys(TABLES));
		return this.r.pick([
			'SELECT relname, relkind FROM pg_class WHERE relnamespace = \'public\'::regnamespace ORDER BY 1', `SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = '${t}'::regclass AND attnum > 0 ORDER BY attnum`,
			`SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '${t}' ORDER BY ordinal_position`, 'SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = \'public\' ORDER BY 1', 'SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = \'public\'::regnamespace ORDER BY 1',
			'SELECT pg_get_viewdef(\'lost\'::regclass, true)', 'SELECT pg_get_functiondef(\'kilos\'::regproc)', 'SELECT setting, unit FROM pg_settings WHERE name IN (\'work_mem\', \'DateStyle\') ORDER BY name', 'SELECT obj_description(\'depot\'::regclass), current_database(), current_user, session_user, current_schema',
			`SELECT has_table_privilege('${t}', 'SELECT'), to_regclass('${t}'), '${t}'::regclass::oid > 0`, 'SELECT n.nspname, p.proname, pg_get_function_arguments(p.oid) FROM pg_catalog.pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = \'public\' ORDER BY 2', 'SELECT typname FROM "pg_catalog"."pg_type" WHERE typname IN (\'mood\', \'short\') ORDER BY 1',
			'SELECT enumlabel FROM pg_enum ORDER BY enumsortorder', 'SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal', 'SELECT rolname, rolsuper FROM pg_roles WHERE rolname = \'app\'', `SELECT pg_size_pretty(pg_relation_size('${t}'))`, 'SELECT version()', 'SELECT extname FROM pg_extension ORDER BY 1',
			'SELECT sequencename, data_type FROM pg_sequences', 'SELECT table_name FROM information_schema.tables WHERE table_schema = \'public\' ORDER BY 1', `SELECT * FROM pg_stats WHERE tablename = '${t}' AND attname = 'region'`, 'SELECT current_setting(\'server_version_num\')::int / 10000', 'SELECT col_description(\'depot\'::regclass, 1)', 'SELECT generate_subscripts(ARRAY[4,5], 1)',
		]);
	}

	show() {
		return this.r.pick(['SHOW server_version', 'SHOW work_mem', 'SHOW TimeZone', 'SHOW TIME ZONE', 'SHOW search_path', 'SHOW DateStyle', 'SHOW standard_conforming_strings', 'SHOW transaction_read_only', 'SHOW server_encoding', 'SHOW max_connections', 'show "lc_collate"', 'SHOW TRANSACTION ISOLATION LEVEL']);
	}

	explain() {
		const what = this.r.pick([() => this.top(), () => this.cte(), () => this.grouped(), () => `SELECT * FROM parcel WHERE parcel_id = ${this.r.between(1, 99)}`])();
		return `${this.r.pick(['EXPLAIN', 'EXPLAIN VERBOSE', 'EXPLAIN (COSTS off)', 'EXPLAIN (FORMAT json, COSTS false)', 'EXPLAIN (VERBOSE on, FORMAT yaml)', 'EXPLAIN (ANALYZE 0)'])} ${what}`;
	}

	// Runs what it explains, or differs each time: let in, not compared.
	moving() {
		const read = this.r.pick([() => this.top(), () => this.grouped(), () => `TABLE ${this.r.pick(Object.keys(TABLES))}`])();
		return this.r.pick([
			`EXPLAIN ANALYZE ${read}`, `EXPLAIN (ANALYZE, BUFFERS, FORMAT json) ${read}`, `EXPLAIN (ANALYZE, VERBOSE, TIMING off) ${read}`, 'SELECT now(), current_timestamp, clock_timestamp() > now()', `SELECT random() < 2, gen_random_uuid()`, 'SELECT * FROM depot ORDER BY random() LIMIT 3', 'SELECT CURRENT_DATE, LOCALTIME, statement_timestamp(), timeofday()',
			'SELECT pid, state FROM pg_stat_activity LIMIT 3', 'SELECT count(*) FROM pg_locks', 'SELECT pg_backend_pid(), txid_current_if_assigned()', 'SELECT * FROM pg_stat_user_tables LIMIT 2', 'SELECT age(now(), timestamptz \'2020-01-01\')', 'SELECT pg_postmaster_start_time(), pg_current_wal_lsn()', 'SHOW ALL',
			'SELECT count(*) FROM pg_timezone_names', 'EXPLAIN UPDATE tariff SET cents = 1 WHERE tariff_id = 1', 'EXPLAIN INSERT INTO tariff (cents) VALUES (1)', 'EXPLAIN (VERBOSE) DELETE FROM invoice', 'SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE relkind = \'r\'', 'SELECT uuid_nil_ FROM (VALUES (gen_random_uuid())) v(uuid_nil_)', 'SELECT inet_server_addr() IS NULL, pg_is_in_recovery()',
			'EXPLAIN MERGE INTO tariff t USING (VALUES (1)) v(i) ON t.tariff_id = v.i WHEN MATCHED THEN DELETE',
		]);
	}
}
Maker.prototype.names = 0;

const SHARES = { top: 36, grouped: 14, windowed: 9, cte: 12, plain: 12, catalog: 6, show: 2, explain: 5, moving: 5 };
const wheel = Object.entries(SHARES).flatMap(([kind, n]) => Array.from({ length: n }, () => kind));

// { sql, params, plain, compare, kind }: what is sent, with parameters, and
// the same without them.
export function* reads(r, n) {
	const m = new Maker(r);
	for (let i = 0; i < n; i++) {
		const kind = wheel[(i * 37) % wheel.length];
		let plain = m[kind]();
		const v = { kind, compare: kind !== 'moving', params: [] };
		if (plain.includes('$1'))
			[v.params, v.sql, plain] = [['40', '2'], plain, plain.replace('$1', '40').replace('$2', '2')];
		else if (kind === 'top' && r.chance(0.25) && !/ORDER BY \d|ROWS? ONLY|varchar/.test(plain))
			Object.assign(v, constants(r, plain, { strings: false }));
		v.sql ??= plain;
		if (r.chance(0.7))
			v.sql = disguise(r, v.sql, { except: /, depot AS/.test(plain) ? 'tables' : '' }).sql;
		yield { ...v, plain };
	}
}
