// lexis: SQL cut into tokens, and the ways to write the same tokens otherwise

// What a name is to the disguises; learnt from the text's own database.
// functions: in pg_catalog; tables: in public; names: may be quoted.
export const FUNCTIONS = new Set(`pg_sleep pg_advisory_lock pg_try_advisory_lock pg_advisory_xact_lock set_config
	pg_read_file pg_read_binary_file pg_terminate_backend pg_cancel_backend table_to_xml query_to_xml setval to_json
	max min count now nextval current_setting generate_series random pg_ls_dir pg_stat_file lo_create lo_import
	lo_from_bytea lo_unlink pg_notify pg_reload_conf pg_switch_wal pg_create_restore_point pg_export_snapshot
	pg_rotate_logfile pg_logical_emit_message pg_create_physical_replication_slot ts_stat ts_rewrite
	pg_create_logical_replication_slot pg_replication_origin_create pg_stat_reset pg_log_backend_memory_contexts
	pg_sleep_for pg_ls_waldir pg_ls_logdir pg_ls_tmpdir database_to_xml schema_to_xml cursor_to_xml setseed
	pg_stat_reset_shared length upper abs sum avg`.split(/\s+/));
export const TABLES = new Set(`depot courier parcel scan_event tariff invoice vault_key locker touched shipper contract
	courier_card accounts users audit`.split(/\s+/));
const COLUMNS = `depot_id label region courier_id full_name badge_pin parcel_id weight_g state sent_at scan_id kind
	tariff_id code cents invoice_id paid key_id secret payee_id iban note in_use body updated_at shipper_id
	contract_id gone owner balance id rolname amname schemaname pg_roles pg_am pg_views pg_catalog public hr ops payee`;
const NAMES = new Set([...FUNCTIONS, ...TABLES, ...COLUMNS.split(/\s+/)]);

const RULES = [
	['space', /[ \t\r\n\f]+/y],
	['comment', /--[^\n]*/y],
	['uquoted', /[uU]&"(?:[^"]|"")*"(?:\s+uescape\s+'.')?/iy],
	['ustring', /[uU]&'(?:[^']|'')*'(?:\s+uescape\s+'.')?/iy],
	['estring', /[eE]'(?:[^'\\]|''|\\[^])*'/y],
	['bits', /[bBxXnN]'[^']*'/y],
	['string', /'(?:[^']|'')*'/y],
	['quoted', /"(?:[^"]|"")*"/y],
	['dollar', /\$([A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$[^]*?\$\1\$/y],
	['param', /\$\d+/y],
	['number', /\d+(?:\.(?!\.)\d*)?(?:[eE][+-]?\d+)?|\.\d+/y],
	['word', /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y],
	['op', /::|\.\.|:=|[-+*/<>=~!@#%^&|`?]+|[^]/y],
];

// Comments nest, which no expression can say.
function blockComment(sql, at) {
	let depth = 0;
	for (let i = at; i < sql.length - 1; i++) {
		const two = sql.slice(i, i + 2);
		if (two === '/*') {
			depth++;
			i++;
		} else if (two === '*/') {
			depth--;
			i++;
			if (depth === 0)
				return sql.slice(at, i + 1);
		}
	}
	return sql.slice(at);
}

export function tokens(sql) {
	const list = [];
	for (let at = 0; at < sql.length;) {
		let text, kind = 'comment';
		if (sql.startsWith('/*', at)) {
			text = blockComment(sql, at);
		} else {
			for (const [name, rule] of RULES) {
				rule.lastIndex = at;
				const m = rule.exec(sql);
				if (m) {
					[text, kind] = [m[0], name];
					break;
				}
			}
			// an operator ends where a comment begins
			const cut = kind === 'op' ? text.slice(1).search(/\/\*|--/) : -1;
			if (cut >= 0)
				text = text.slice(0, cut + 1);
		}
		list.push({ kind, text });
		at += text.length;
	}
	return list;
}

const isBare = t => t && t.kind !== 'space' && t.kind !== 'comment';
// The nearest token on this side that is neither space nor comment.
const beside = (list, i, step) => {
	for (i += step; i >= 0 && i < list.length && !isBare(list[i]);)
		i += step;
	return list[i];
};
const before = (list, i) => beside(list, i, -1);
const after = (list, i) => beside(list, i, 1);
const hex = (c, n) => c.toString(16).padStart(n, '0');
const points = s => [...s].map(c => c.codePointAt(0));

// A string of the U& kind: escapes for some characters, by this escape.
function unicode(r, text, mark, quote) {
	const body = [...text].map(c => {
		if (c === mark)
			return mark + mark;
		if (c === quote)
			return quote + quote;
		if (!r.chance(0.6))
			return c;
		const p = c.codePointAt(0);
		return p > 0xffff || r.chance(0.3) ? `${mark}+${hex(p, 6)}` : `${mark}${hex(p, 4)}`;
	}).join('');
	const head = `${r.pick(['U', 'u'])}&${quote}${body}${quote}`;
	return mark === '\\' ? head : `${head}${r.pick([' ', '\n'])}${r.pick(['UESCAPE', 'uescape'])} '${mark}'`;
}
const MARKS = ['\\', '\\', '!', '~', '?', '#'];

export function otherName(r, name) {
	if (r.chance(0.5))
		return `"${name}"`;
	return unicode(r, name, r.pick(MARKS), '"');
}

export function otherString(r, text) {
	const tag = r.pick(['', 'q', 'a_1', 'é', '_']);
	const ways = [
		() => `E'${points(text).map(p => r.pick([
			`\\u${hex(p, 4)}`, p < 128 ? `\\x${hex(p, 2)}` : `\\u${hex(p, 4)}`,
			p < 128 ? `\\${p.toString(8).padStart(3, '0')}` : `\\U${hex(p, 8)}`])).join('')}'`,
		() => unicode(r, text, r.pick(MARKS), '\''),
		() => {
			const cut = r.below(text.length + 1);
			return `'${text.slice(0, cut).replaceAll('\'', '\'\'')}'${r.pick(['\n', ' \n\t', '\r\n'])}'${text.slice(cut).replaceAll('\'', '\'\'')}'`;
		},
	];
	if (!text.includes(`$${tag}$`) && !text.endsWith('$'))
		ways.push(() => `$${tag}$${text}$${tag}$`);
	if (points(text).some(p => p > 0xffff))
		return `'${text.replaceAll('\'', '\'\'')}'`;
	return r.pick(ways)();
}

const COMMENTS = ['/**/', '/*+ SeqScan(x) */', '/* a /* b */ c */', '/* ; SELECT 1; */', '/* \' " $$ */', '/*/**/*/',
	'-- x\n', '--\n', '-- \' ; COMMIT\n', '-- /* \n', '/*\n--\n*/', '/* é漢 */', '/*$a$*/', '--*/\n'];
const SPACES = [' ', '\t', '\n', '\r\n', '  ', ' \f', '\n\n\t'];

const disguises = {
	case: (r, list) => list.map(t => t.kind !== 'word' || !r.chance(0.7) ? t
		: { ...t, text: [...t.text].map(c => (c.charCodeAt(0) < 128 && r.chance(0.5) ? c.toUpperCase() : c)).join('') }),
	upper: (r, list) => list.map(t => t.kind !== 'word' ? t
		: { ...t, text: t.text.replace(/[a-z]/g, c => c.toUpperCase()) }),
	space: (r, list) => list.map((t, i) => t.kind !== 'space' ? t
		: { ...t, text: (list[i - 1]?.text.startsWith('--') || /string/.test(list[i - 1]?.kind) ? '\n' : '') + Array.from({ length: r.between(1, 4) }, () => r.pick(SPACES)).join('') }),
	// between any two tokens but those of one string
	comments: (r, list) => list.flatMap((t, i) => {
		const next = list[i + 1];
		const apart = !next || !r.chance(0.35) || t.kind === 'comment' || next.kind === 'comment'
			|| (/string/.test(t.kind) && /string/.test(after(list, i)?.kind ?? ''));
		return apart ? [t] : [t, { kind: 'space', text: ' ' }, { kind: 'comment', text: r.pick(COMMENTS) }, { kind: 'space', text: ' ' }];
	}),
	apart: (r, list) => list.flatMap((t, i) => (/op|word/.test(t.kind) && /op|word|number/.test(list[i + 1]?.kind ?? '')
		&& r.chance(0.5) && !/[&uUeEbBxXnN]$/.test(t.text) ? [t, { kind: 'space', text: r.pick(SPACES) }] : [t])),
	names: (r, list) => list.map(t => t.kind === 'word' && NAMES.has(t.text.toLowerCase()) && r.chance(0.7)
		? { kind: 'quoted', text: otherName(r, t.text.toLowerCase()) } : t),
	strings: (r, list) => list.map((t, i) => t.kind === 'string' && r.chance(0.8) && before(list, i)?.kind !== 'string' && after(list, i)?.kind !== 'string'
		? { kind: 'ustring', text: otherString(r, t.text.slice(1, -1).replaceAll('\'\'', '\'')) } : t),
	functions: (r, list) => list.map((t, i) => t.kind === 'word' && FUNCTIONS.has(t.text.toLowerCase())
		&& after(list, i)?.text === '(' && before(list, i)?.text !== '.'
		? { ...t, text: `${r.pick(['pg_catalog.', 'PG_CATALOG.', '"pg_catalog".', 'pg_catalog . '])}${t.text}` } : t),
	tables: (r, list) => list.map((t, i) => t.kind === 'word' && TABLES.has(t.text.toLowerCase())
		&& /^(from|into|update|join|table|only)$/i.test(before(list, i)?.text ?? '')
		? { ...t, text: `${r.pick(['public.', '"public".', 'PUBLIC . '])}${t.text}` } : t),
	ends: (r, list) => [
		...(r.chance(0.5) ? [{ kind: 'comment', text: `${r.pick(['', ' ', '\n', ';', ' ; '])}${r.pick(COMMENTS)}` }] : []),
		...list,
		{ kind: 'comment', text: r.pick([';', ' ;', ';;', '\n;\n', ' -- x', ' --', '/* x */', ' ; -- DROP TABLE x', ';/**/;', ' /* ; */ ;', '\n\n']) },
	],
};
export const kinds = Object.keys(disguises);

// The same statement in other words: its meaning is unchanged.
export function disguise(r, sql, { except } = {}) {
	const chosen = r.some(kinds.filter(k => k !== except), r.between(1, 4));
	let list = tokens(sql);
	for (const kind of chosen) {
		list = disguises[kind](r, list);
		if (kind !== 'ends')
			list = tokens(list.map(t => t.text).join(''));
	}
	return { sql: list.map(t => t.text).join(''), how: chosen };
}

// Constants in other places of the same statement: its meaning is unchanged,
// though not every place takes them.
export function constants(r, sql, { strings = true } = {}) {
	const params = [];
	const text = tokens(sql).map(t => {
		if (t.kind === 'number' && /^\d+$/.test(t.text) && r.chance(0.7)) {
			const way = r.below(6);
			if (way === 5) {
				params.push(t.text);
				return `$${params.length}::int`;
			}
			return [`(${t.text})`, `${t.text}::int`, `CAST(${t.text} AS int)`, `'${t.text}'::int`, `(${t.text}::int8)::int4`][way];
		}
		if (strings && t.kind === 'string' && r.chance(0.6)) {
			if (r.chance(0.4)) {
				params.push(t.text.slice(1, -1).replaceAll('\'\'', '\''));
				return `$${params.length}::text`;
			}
			return r.pick([`${t.text}::text`, `CAST(${t.text} AS text)`, `text ${t.text}`, `(${t.text} || '')`]);
		}
		return t.text;
	}).join('');
	return { sql: text, params };
}
