// diff: a private server, airlockd on it, and diff.c's figures
//   BENCH_ROUNDS=5 BENCH_CASES="update.1000000" make bench-diff
import assert from 'node:assert/strict';
import { cpus } from 'node:os';
import { Cluster } from '../e2e/lib/cluster.mjs';
import { Daemon } from '../e2e/lib/daemon.mjs';
import { program, run } from '../e2e/lib/place.mjs';

const SETUP = `
	CREATE TABLE big(id int PRIMARY KEY, n int NOT NULL, name text, note text, at timestamptz);
	INSERT INTO big SELECT g, g % 1000, 'name ' || g, 'note ' || md5(g::text), now() FROM generate_series(1, 1000000) g;
	CREATE TABLE other AS SELECT * FROM big;
	CREATE VIEW through AS SELECT * FROM other;
	CREATE TABLE small AS SELECT * FROM big WHERE id <= 10000;
	CREATE TABLE touch(n int);
	INSERT INTO touch VALUES (10000), (1000000);
	CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF OLD.n = 10000 THEN UPDATE small SET n = -1 WHERE id = 5000;
		ELSE UPDATE big SET n = -1 WHERE id = 500000; END IF; RETURN NULL; END $$;
	CREATE TRIGGER touched AFTER UPDATE ON touch FOR EACH ROW EXECUTE FUNCTION touched();
	VACUUM ANALYZE;
	CHECKPOINT;`;

const cluster = await Cluster.start({
	settings: { shared_buffers: '1GB', max_wal_size: '8GB', autovacuum: 'off', fsync: 'off' },
});
const database = await cluster.database(SETUP);
const daemon = await Daemon.start({ config: `
[airlock]
operator_guard = off
write_timeout = 10m
[database bench]
writer_dsn = ${cluster.url(database)}
[agent agent]
access = data
` });
const version = await cluster.sql(database, 'SHOW server_version');
const r = await run(program('bench/diff'), [cluster.url(database, 'postgres'), daemon.state, String(daemon.pid),
	process.env.BENCH_ROUNDS ?? '3', ...process.env.BENCH_CASES?.split(' ') ?? []], { home: daemon.home });
await daemon.stop();
await cluster.stop();
assert.equal(r.code, 0, `${r.stderr}\n${r.stdout}\n${daemon.log.text()}`);

console.log(`# ${cpus()[0].model.trim()}, ${cpus().length} cores, PostgreSQL ${version}, fsync off, unix socket`);
const columns = ['raw ms', 'held ms', 'times', 'raw cpu', 'server', 'airlockd', 'times', 'MB more'];
console.log('rows held'.padEnd(24) + columns.map((c) => c.padStart(10)).join(''));
for (const line of r.stdout.trim().split('\n')) {
	const [name, rows, ...figures] = line.split(' ');
	const [raw, held, cpu, server, airlockd, peak] = figures.map(Number);
	const times = held / raw, mb = peak / 1024;
	const verdict = Number(rows) < 100000 ? '' : times <= 2 && mb < 16 ? '  met' : '  NOT MET: at most 2 times, 16 MB';
	console.log(name.padEnd(24) + [raw.toFixed(1), held.toFixed(1), times.toFixed(2), cpu.toFixed(1), server.toFixed(1),
		airlockd.toFixed(1), ((server + airlockd) / cpu).toFixed(2), mb.toFixed(1)].map((c) => c.padStart(10)).join('') + verdict);
}
