// trace: everything a server keeps, to be compared before and after
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

// Where a catalog moves by itself: statistics, and what VACUUM notes.
const MASKED = {
	pg_statistic: null,
	pg_statistic_ext_data: null,
	pg_class: ['relpages', 'reltuples', 'relallvisible', 'relfrozenxid', 'relminmxid'],
	pg_database: ['datfrozenxid', 'datminmxid'],
};
// Not a cast: that may be anything.
const plain = 'format(\'%s\', t)';
const mask = name => (MASKED[name] ? `(${MASKED[name].reduce((e, c) => `${e} - '${c}'`, 'to_jsonb(t)')})::text` : plain);

// One line a relation: its name, how many rows, and a hash of them in order.
const hashing = (name, from, row) => `SELECT '${name.replaceAll('\'', '\'\'')}', count(*),
	md5(coalesce(string_agg(x, ',' ORDER BY x), '')) FROM (SELECT ${row} COLLATE "C" AS x FROM ${from} t) s;`;

const LIST = `SELECT c.relname, c.oid::regclass, n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'm') AND n.nspname !~ '^(pg_toast|pg_temp|information_schema)' ORDER BY 3, 1`;

// What is in no table: settings, locks, sessions, slots, files in use.
// OURS is airlockd's sessions; they hold nothing when it is at rest.
const STATE = [
	['settings', 'SELECT name, setting, source FROM pg_settings WHERE source NOT IN (\'client\', \'session\', \'command line\', \'override\') ORDER BY 1'],
	['file settings', 'SELECT sourcefile, name, setting FROM pg_file_settings ORDER BY 1, 2, 3'],
	['locks', 'SELECT locktype, mode, objid, relation::regclass FROM pg_locks WHERE pid <> pg_backend_pid() AND virtualxid IS NULL ORDER BY 1, 2, 3, 4'],
	['advisory locks', 'SELECT classid, objid, objsubid, mode FROM pg_locks WHERE locktype = \'advisory\' ORDER BY 1, 2'],
	['transactions', `SELECT state, application_name, query FROM pg_stat_activity WHERE pid <> pg_backend_pid()
		AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL OR state LIKE 'idle in%') AND backend_type = 'client backend'`],
	['slots', 'SELECT slot_name FROM pg_replication_slots ORDER BY 1'],
	['origins', 'SELECT roname FROM pg_replication_origin ORDER BY 1'],
	['prepared transactions', 'SELECT gid FROM pg_prepared_xacts ORDER BY 1'],
	['large objects', 'SELECT oid FROM pg_largeobject_metadata ORDER BY 1'],
	['notifications', 'SELECT pg_notification_queue_usage()'],
	['resets', `SELECT 'database', datname, stats_reset FROM pg_stat_database WHERE datname = current_database()
		UNION ALL SELECT 'bgwriter', NULL, stats_reset FROM pg_stat_bgwriter UNION ALL SELECT 'archiver', NULL, stats_reset FROM pg_stat_archiver
		UNION ALL SELECT name, NULL, stats_reset FROM pg_stat_slru ORDER BY 1`],
	['restart', 'SELECT pg_postmaster_start_time(), pg_conf_load_time(), pg_is_in_recovery()'],
	['temporary tables', 'SELECT oid::regclass FROM pg_class WHERE relpersistence = \'t\''],
	['collations', 'SELECT count(*) FROM pg_collation'],
];

const SEQUENCES = 'SELECT format(\'SELECT %L, last_value, is_called FROM %s;\', oid::regclass, oid::regclass) FROM pg_class WHERE relkind = \'S\' ORDER BY 1';

// Files that come and go while a server works.
const PASSING = /^(pg_wal|pg_xact|pg_subtrans|pg_multixact|pg_stat|pg_stat_tmp|pg_notify|pg_commit_ts|pg_logical\/replorigin_checkpoint|base\/pgsql_tmp)(\/|$)|_(fsm|vm|init)$|pg_internal\.init|postmaster\.pid|\.\d+$|^global\/pg_control$/;
const READ = /\.(conf|opts)$|PG_VERSION$/;

function files(root) {
	const found = [];
	const walk = dir => {
		for (const e of readdirSync(join(root, dir), { withFileTypes: true })) {
			const path = dir ? `${dir}/${e.name}` : e.name;
			if (PASSING.test(path))
				continue;
			if (e.isDirectory())
				walk(path);
			found.push(READ.test(path) ? `${path} ${createHash('md5').update(readFileSync(join(root, path))).digest('hex')}` : path);
		}
	};
	walk('');
	return found.sort();
}

function outside() {
	return readdirSync('/tmp').filter(f => f.startsWith('airlock_case_'))
		.map(f => `${f} ${lstatSync(join('/tmp', f)).mtimeMs}`).sort();
}

// Everything, by name: { sequences, rest }, each an object of texts.
export async function state(cluster, database) {
	const sql = text => cluster.sql(database, text);
	const list = (await sql(LIST)).split('\n').map(l => l.split('|'));
	const hashes = list.filter(([name, , schema]) => schema !== 'pg_catalog' || MASKED[name] !== null)
		.map(([name, full, schema]) => hashing(full, full, schema === 'pg_catalog' ? mask(name) : plain));
	const rest = {};
	for (const line of (await sql(hashes.join('\n'))).split('\n')) {
		const [name, ...more] = line.split('|');
		rest[`rows of ${name}`] = more.join(' ');
	}
	for (const [name, text] of STATE)
		rest[name] = await sql(text);
	rest['files of the server'] = files(cluster.data).join('\n');
	rest['files beside it'] = outside().join('\n');
	return { sequences: await sql(await sql(SEQUENCES)), rest };
}

// What differs, in words; the empty list where nothing does.
export function differences(was, is) {
	return [...new Set([...Object.keys(was), ...Object.keys(is)])].filter(k => was[k] !== is[k])
		.map(k => `${k}: ${shorten(was[k], is[k])}`);
}

function shorten(a = '', b = '') {
	const [x, y] = [a, b].map(s => s.split('\n').filter(Boolean));
	return [...x.filter(l => !y.includes(l)).map(l => `- ${l}`), ...y.filter(l => !x.includes(l)).map(l => `+ ${l}`)].slice(0, 12).join('\n');
}
