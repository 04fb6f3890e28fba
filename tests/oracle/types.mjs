// types: column types, and literals of each that have broken something before

const quoted = s => `'${s.replaceAll('\'', '\'\'')}'`;
const oneOf = (...list) => r => quoted(r.pick(list));
const words = ['', ' ', 'a', 'b', 'it\'s', 'two\nlines', 'tab\there', 'NULL', 'null', '\\N', '"x"', '(a,b)', '{1,2}',
	'Zürich', '🐘', '\u2028', 'ß', 'x'.repeat(40)];

export const text = r => (r.chance(0.04)
	// long enough to leave the page, compressed and not
	? r.pick(['repeat(\'long \', 2000)', '(SELECT string_agg(md5(g::text), \'\') FROM generate_series(1, 400) g)'])
	: quoted(r.pick(words)));
export const int = r => String(r.int(-20, 20));

// name: [how a column declares it, a literal of it]; what stands in SETUP is
// made in the schema of the case.
export const types = {
	bigint: ['bigint', oneOf('0', '9007199254740993', '-9223372036854775808')],
	numeric: ['numeric', oneOf('0', '0.10', '1e20', 'NaN', '-0.000000000000000000001', '123456789012345678901234567890.5')],
	scaled: ['numeric(17,8)', oneOf('0.1', '100000000.00000001')],
	float: ['float8', oneOf('0', '-0', 'NaN', 'Infinity', '-Infinity', '0.1', '1e300', '5e-324')],
	real: ['real', oneOf('0.1', '3.4e38', '-0')],
	bool: ['boolean', oneOf('t', 'f')],
	date: ['date', oneOf('2024-02-29', '0044-03-15 BC', 'infinity')],
	stamp: ['timestamp', oneOf('1999-01-08 04:05:06.789012', '4713-01-01 BC', '-infinity')],
	stamptz: ['timestamptz', oneOf('2024-03-04 05:06:07.5+05:30', 'infinity', '0001-01-01 00:00 BC')],
	timetz: ['timetz', oneOf('12:34:56.7+03', '24:00:00-12')],
	interval: ['interval', oneOf('1 year -2 mons', '-1 day +02:03', '0', '00:00:00.000001')],
	bytea: ['bytea', oneOf('\\x', '\\x00ff5c', '\\xdeadbeef')],
	json: ['json', oneOf('{"a": 1,  "a":2}', 'null', '[1.0, 1e2]', '"\\u00e9"')],
	jsonb: ['jsonb', oneOf('{"b": 1, "a": [1, null]}', 'null', '1.10')],
	xml: ['xml', oneOf('<r/>', '<a b="c">&lt;</a>', 'text')],
	ints: ['int[]', oneOf('{}', '{1,NULL,3}', '[2:3]={7,8}', '{{1,2},{3,4}}')],
	texts: ['text[]', oneOf('{}', '{NULL,"NULL","a,b","\\"q\\"",""}')],
	point: ['point', oneOf('(1,2)', '(-0,NaN)')],
	box: ['box', oneOf('(1,1),(0,0)')],
	polygon: ['polygon', oneOf('((0,0),(1,1),(1,0))')],
	range: ['int4range', oneOf('empty', '[1,5)', '(,)', '[3,]')],
	multirange: ['int4multirange', oneOf('{}', '{[1,2),[5,7)}')],
	bits: ['varbit', oneOf('', '1', '0101')],
	money: ['money', oneOf('12.34', '-0.01')],
	uuid: ['uuid', oneOf('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')],
	inet: ['inet', oneOf('10.0.0.1', '10.0.0.0/8', '::ffff:1.2.3.4')],
	mac: ['macaddr', oneOf('08:00:2b:01:02:03')],
	tsvector: ['tsvector', oneOf('', 'fat:2 cat:3A', '\'it\'\'s\':1')],
	char: ['char(5)', oneOf('', 'ab', 'abcde')],
	name: ['name', oneOf('', 'n')],
	oid: ['oid', oneOf('0', '4294967295')],
	lsn: ['pg_lsn', oneOf('0/0', 'FFFFFFFF/FFFFFFFF')],
	jsonpath: ['jsonpath', oneOf('$.a[*] ? (@ > 1)')],
	enum: ['app.mood', oneOf('sad', 'so so', 'happy "x"')],
	domain: ['app.posint', oneOf('1', '99')],
	composite: ['app.pair', oneOf('(1,x)', '(,)', '(,"")', '(5,"a,b ""c""")')],
	composites: ['app.pair[]', oneOf('{}', '{"(1,x)",NULL}')],
	citext: ['public.citext', oneOf('Abc', 'aBC', '')],
	hstore: ['public.hstore', oneOf('', 'a=>1,b=>NULL', '"x y"=>""')],
};

export const EXTENSIONS = 'CREATE EXTENSION citext SCHEMA public; CREATE EXTENSION hstore SCHEMA public;';
export const SETUP = `
	CREATE TYPE app.mood AS ENUM ('sad', 'so so', 'happy "x"');
	CREATE DOMAIN app.posint AS int CHECK (VALUE > 0);
	CREATE DOMAIN app.bag AS int[];
	CREATE TYPE app.pair AS (i int, t text);`;
