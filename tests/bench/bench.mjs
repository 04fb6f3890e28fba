// bench: a private server with fsync on, airlockd on it, bench.c's figures
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { Agent } from '../e2e/lib/agent.mjs';
import { Cluster } from '../e2e/lib/cluster.mjs';
import { Daemon } from '../e2e/lib/daemon.mjs';
import { program, run } from '../e2e/lib/place.mjs';
import { Proxy } from '../e2e/lib/proxy.mjs';
import { Trips } from '../e2e/lib/trips.mjs';

const SETUP = `
	CREATE TABLE big(id int PRIMARY KEY, n int NOT NULL, name text, note text, at timestamptz);
	INSERT INTO big SELECT g, g % 1000, 'name ' || g, 'note ' || md5(g::text), now()
		FROM generate_series(1, 1000000) g;
	CREATE TABLE small AS SELECT * FROM big WHERE id <= 1000;
	ALTER TABLE small ADD PRIMARY KEY (id);
	CREATE TABLE parts(id int PRIMARY KEY, whole int REFERENCES small, n int NOT NULL);
	INSERT INTO parts SELECT g, g, 0 FROM generate_series(1, 1000) g;
	CREATE TABLE log(id bigserial PRIMARY KEY, part int NOT NULL, at timestamptz NOT NULL DEFAULT now());
	CREATE FUNCTION logged() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO log(part) VALUES (NEW.id);
		RETURN NULL;
	END $$;
	CREATE TRIGGER logged AFTER UPDATE ON parts FOR EACH ROW EXECUTE FUNCTION logged();
	VACUUM ANALYZE;
	CHECKPOINT;`;

// The guard's walk is not what is measured, and the driver has no terminal.
const config = url => `
[airlock]
operator_guard = off
changes_max = 60
agent_changes_max = 60
[database bench]
writer_dsn = ${url}
[agent agent]
access = data
`;

// How often a call waits for the server: the first of its kind, and the fifth.
async function roundTrips() {
	const proxy = await Proxy.start(cluster);
	const trips = new Trips(proxy);
	const d = await Daemon.start({ config: config(proxy.url(database)) });
	const agent = await Agent.connect(d);
	const waits = [];
	for (const [title, tool, sql, most] of [
		['SELECT 1', 'db_query', 'SELECT 1', 1],
		['point read', 'db_query', 'SELECT * FROM big WHERE id = 7', 1],
		['one-row UPDATE until held', 'db_execute', 'UPDATE big SET n = n + 1 WHERE id = 7', 3],
		['the same, with a trigger that writes a row', 'db_execute', 'UPDATE parts SET n = n + 1 WHERE id = 7', null],
	]) {
		const n = [];
		for (let i = 0; i < 5; i++) {
			const r = await trips.of(() => agent.call(tool, { sql }));
			n.push(r.trips);
			if (r.answer.json.change_id)
				await agent.call('db_withdraw', { change_id: r.answer.json.change_id });
		}
		waits.push([title, n[0], n[4], most]);
	}
	await agent.close();
	await d.stop();
	await proxy.close();
	return waits;
}

// bench.c's figures by name, as numbers.
async function measure(prefix, parts) {
	const [command, ...args] = [...prefix, program('bench/bench'), cluster.url(database, 'postgres'), daemon.state,
		program('airlock-mcp'), String(daemon.pid), join(daemon.home, 'sync'), ...parts];
	const r = await run(command, args, { home: daemon.home });
	assert.equal(r.code, 0, `${r.stderr}\n${r.stdout}`);
	return Object.fromEntries(r.stdout.trim().split('\n').map(l => {
		const [name, ...numbers] = l.split(' ');
		return [name, numbers.map(Number)];
	}));
}

// The daemon, the server and what they have started, on the first processor:
// what is left then is the work, without the waking of processors.
async function onOneProcessor(measured) {
	const all = [daemon.pid, cluster.child.pid];
	for (const pid of all)
		all.push(...readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number));
	const [, allowed, first] = readFileSync('/proc/self/status', 'utf8').match(/^Cpus_allowed_list:\s*((\d+)\S*)/m);
	const place = where => Promise.all(all.map(pid => run('taskset', ['-a', '-c', '-p', where, String(pid)])));
	await place(first);
	const figures = await measured(['taskset', '-c', first]);
	await place(allowed);
	return figures;
}

const parts = process.argv.slice(2);
const cluster = await Cluster.start({
	settings: { max_connections: 150, shared_buffers: '512MB', max_wal_size: '4GB', autovacuum: 'off' },
});
const database = await cluster.database(SETUP);
const daemon = await Daemon.start({ config: config(cluster.url(database)) });
const version = await cluster.sql(database, 'SHOW server_version');
const spread = await measure([], parts);
const readsToo = parts.length === 0 || parts.includes('reads');
const together = readsToo && await onOneProcessor(taskset => measure(taskset, ['reads']));
await daemon.stop();
const waits = await roundTrips();
await cluster.stop();

let got = spread;
const median = name => got[name][1];
const p99 = name => got[name][2];
const kb = name => got[name][0];

const row = (label, value, tail, target = '', ok) => console.log(
	[label.padEnd(56), value.padStart(10), tail.padStart(10), target.padStart(16),
		ok === undefined ? '' : ok ? '  met' : '  NOT MET'].join('').trimEnd());
const ms = us => (us / 1000).toFixed(3);
const times = n => `x ${n.toFixed(2)}`;
const mb = k => (k / 1024).toFixed(1);
const time = (label, name) => row(label, ms(median(name)), ms(p99(name)));
const most = (label, value, limit, show) =>
	row(`  ${label}`, show(value), '', `at most ${show(limit)}`, value <= limit);

console.log(`# ${cpus()[0].model.trim()}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GB,`
	+ ` PostgreSQL ${version}, fsync on, unix socket`);
row('milliseconds', 'median', 'p99', 'target');
const sections = {
	reads() {
		time(`a byte to a process ${got === together ? 'beside it' : 'on another processor'} and back`, 'wake');
		for (const [name, title] of [['one', 'SELECT 1'], ['point', 'point read, 1,000,000 rows']]) {
			time(`${title}: raw libpq`, `raw.${name}`);
			time(`${title}: airlockd's socket`, `socket.${name}`);
			time(`${title}: airlock-mcp and airlockd`, `bridge.${name}`);
			most('over raw libpq', median(`bridge.${name}`) - median(`raw.${name}`), 150, ms);
		}
	},
	writes() {
		time('one fdatasync of 600 bytes', 'sync');
		time('one-row UPDATE: raw BEGIN, UPDATE RETURNING', 'raw.write');
		time('one-row UPDATE: until held', 'held.write');
		most('2 x raw + one fdatasync', median('held.write'), 2 * median('raw.write') + median('sync'), ms);
		time('the same, with a trigger that writes a row: raw', 'raw.trigger');
		time('the same, with a trigger that writes a row: until held', 'held.trigger');
		time('beacon (needed before COMMIT, not before held)', 'beacon');
		time('raw COMMIT', 'raw.commit');
		time('commit by the operator: check, beacon, intent, COMMIT', 'commit');
	},
	tables() {
		time('100 of 1,000,000 rows: raw', 'raw.100');
		time('100 of 1,000,000 rows: until held', 'held.100');
		time('100 of 1,000 rows: until held', 'held.100.small');
		most('1,000,000 over 1,000 rows', median('held.100') / median('held.100.small'), 1.2, times);
	},
	bulk() {
		time('100,000 of 1,000,000 rows: raw', 'raw.100k');
		time('100,000 of 1,000,000 rows: until held', 'held.100k');
		row('  over raw', times(median('held.100k') / median('raw.100k')), '');
	},
};
for (const [part, show] of Object.entries(sections))
	if (parts.length === 0 || parts.includes(part))
		show();
if (readsToo) {
	got = together;
	console.log();
	row('milliseconds, all on one processor', 'median', 'p99', 'target');
	sections.reads();
	got = spread;
}

console.log();
row('round trips to the server that the answer waits for', 'first', 'warm', 'target');
for (const [title, first, warm, limit] of waits)
	row(title, String(first), String(warm), ...(limit ? [`at most ${limit}`, warm <= limit] : []));

console.log();
row('megabytes, airlockd resident', '', '', 'target');
for (const [title, name] of [['idle', 'idle'], ['50 changes held', 'many'], ['100,000 rows held', '100k'], ['the most it ever had', 'peak']])
	if (got[`memory.${name}`])
		row(title, mb(kb(`memory.${name}`)), '');
if (got['memory.peak'])
	most('the most, over idle', kb('memory.peak') - kb('memory.idle'), 16 * 1024, mb);
