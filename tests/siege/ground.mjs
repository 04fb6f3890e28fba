// ground: a server that holds nothing else, a daemon with every power over it,
// and another session that an attack could reach
import { Cluster, bindir } from '../e2e/lib/cluster.mjs';
import { join } from 'node:path';
import { scratch, start } from '../e2e/lib/place.mjs';
import { ask, Lines } from '../e2e/lib/wait.mjs';
import { world } from '../e2e/lib/world.mjs';
import { Pipe } from './pipe.mjs';
import { extensions, setup } from './seeds.mjs';
import { differences, state } from './trace.mjs';

// airlockd's own login is a superuser, so that nothing but its judgement stands
// in the way; a superuser is what a trace would be left by.
const ROLES = 'CREATE ROLE mighty LOGIN SUPERUSER; CREATE ROLE f_other;';

// Listens, holds a lock, waits: it must live on and hear nothing.
class Victim {
	asked = 0;

	static async start(cluster, database) {
		const v = new Victim();
		v.child = start(join(bindir, 'psql'), ['-X', '-q', '-A', '-t', '-d', cluster.conninfo(database, 'postgres')],
			{ home: scratch('alkv-'), stdio: ['pipe', 'pipe', 'pipe'] });
		v.out = new Lines(v.child.stdout);
		v.err = new Lines(v.child.stderr);
		v.child.stdin.write('LISTEN siege; SELECT pg_advisory_lock(4711); SELECT \'pid \' || pg_backend_pid();\n');
		v.pid = (await v.out.until(/^pid /)).slice(4);
		return v;
	}

	// What has happened to it: the empty list.
	async harm() {
		const end = `end ${++this.asked}`;
		this.child.stdin.write(`SELECT 'alive ' || pg_backend_pid(); \\echo ${end}\n`);
		await this.out.until(l => l === end);
		return [
			...(this.out.all.includes(`alive ${this.pid}`) ? [] : ['the other session was ended']),
			...[...this.out.all, ...this.err.all].filter(l => /Asynchronous|ERROR|FATAL/.test(l)),
		];
	}

	close() {
		this.child.stdin.end();
	}
}

export async function ground(t) {
	const cluster = await Cluster.start({ settings: { autovacuum: 'off', fsync: 'off', wal_level: 'logical', max_prepared_transactions: 2, logging_collector: 'off' } });
	t.after(() => cluster.stop());
	await cluster.sql('postgres', ROLES);
	const w = await world(t, { cluster, role: 'mighty', config: '[airlock]\nrefusals_max = 0\n', setup: `${setup}${extensions}` });
	w.victim = await Victim.start(cluster, w.database);
	t.after(() => w.victim.close());
	w.pipe = Pipe.open(w.daemon);
	t.after(() => w.pipe.close());
	w.state = async () => {
		// links that were given back are cleaned behind the answer
		await ask(async () => await w.sql('SELECT count(*) FROM pg_stat_activity WHERE usename = \'mighty\' AND state <> \'idle\'') === '0', 'airlockd to be at rest');
		return state(cluster, w.database);
	};
	return w;
}

// What differs from `was`; sequences only where none may have moved.
export async function traces(w, was, { sequences = true } = {}) {
	const is = await w.state();
	return [
		...differences(was.rest, is.rest),
		...(sequences && was.sequences !== is.sequences ? [`sequences: ${was.sequences} became ${is.sequences}`] : []),
		...await w.victim.harm(),
	];
}
