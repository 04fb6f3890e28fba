// cluster: a private PostgreSQL server, and a database of its own for each test
import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run, scratch, start } from './place.mjs';
import { exited, Lines, within } from './wait.mjs';

// The newest of the machine's own PostgreSQL, or AIRLOCK_PG_BIN.
export const bindir = process.env.AIRLOCK_PG_BIN ?? newest('/usr/lib/postgresql');
function newest(root) {
	const versions = existsSync(root) ? readdirSync(root) : [];
	const [v] = versions.filter(v => existsSync(join(root, v, 'bin/initdb')))
		.sort((a, b) => Number(b) - Number(a));
	assert.ok(v, 'no PostgreSQL server is installed: make deps');
	return join(root, v, 'bin');
}

// The login that airlockd is given where a test says nothing else: it may read
// and write every table, owns none, and is no superuser.
export const APP = 'app';
const ROLES = `
	CREATE ROLE ${APP} LOGIN;
	GRANT pg_read_all_data, pg_write_all_data, pg_read_all_stats TO ${APP};`;

// Roles of the field cases that must give their password.
const PASSWORDS = ['local all f_pw,f_pct scram-sha-256'];

// PostgreSQL 14 copies files without being told to, and may not be told.
const COPY = (name, from) => `SELECT 'CREATE DATABASE ${name} TEMPLATE ${from}' || CASE
	WHEN current_setting('server_version_num')::int >= 150000 THEN ' STRATEGY file_copy' ELSE '' END
	\\gexec
`;

const encode = s => encodeURIComponent(s);

export class Cluster {
	// hba: lines before the one that trusts the socket; settings: for
	// postgresql.conf; tcp: a port of 127.0.0.1, by default none.
	static async start({ settings = {}, hba = PASSWORDS, tcp = 0 } = {}) {
		const c = new Cluster();
		c.dir = scratch('alkpg-');
		c.port = tcp || 5432;
		c.data = join(c.dir, 'data');
		const init = await run(join(bindir, 'initdb'), ['-D', c.data, '-U', 'postgres',
			'-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync'], { home: c.dir });
		assert.equal(init.code, 0, init.stderr);
		const conf = {
			listen_addresses: tcp ? '127.0.0.1' : '',
			unix_socket_directories: c.dir,
			port: c.port,
			max_connections: 100,
			password_encryption: 'scram-sha-256',
			...settings,
		};
		appendFileSync(join(c.data, 'postgresql.conf'), Object.entries(conf)
			.map(([k, v]) => `${k} = '${v}'\n`).join(''));
		writeFileSync(join(c.data, 'pg_hba.conf'), [...hba,
			'local all all trust', 'host all all 127.0.0.1/32 trust', ''].join('\n'));
		await c.#launch();
		await c.sql('postgres', ROLES);
		return c;
	}

	// One that another process of this run has started.
	static join({ dir, port }) {
		return Object.assign(new Cluster(), { dir, port, borrowed: true });
	}

	async #launch() {
		this.child = start(join(bindir, 'postgres'), ['-D', this.data],
			{ home: this.dir, last: 'SIGQUIT' });
		this.log = new Lines(this.child.stderr);
		await this.log.until(/database system is ready to accept connections/);
	}

	// mode: immediate, as in a crash; or fast, which first writes to disk all that
	// the tests have made, and that can take longer than anyone wants to wait.
	async stop(mode = 'immediate') {
		if (this.borrowed)
			return;
		process.kill(this.child.pid, { fast: 'SIGINT', immediate: 'SIGQUIT' }[mode]);
		await within(20000, exited(this.child), () => `postgres to stop:\n${this.log.text()}`);
	}

	async restart(mode, meanwhile) {
		await this.stop(mode);
		await meanwhile?.();
		await this.#launch();
	}

	// What libpq takes: a URL, or the key = value form.
	url(database, role = APP, password) {
		const who = password === undefined ? role : `${encode(role)}:${encode(password)}`;
		return `postgresql://${who}@/${database}?host=${encode(this.dir)}&port=${this.port}`;
	}

	conninfo(database, role = APP) {
		return `host=${this.dir} port=${this.port} dbname=${database} user=${role}`;
	}

	// Rows as psql -A prints them: columns parted by |, rows by newlines.
	async sql(database, text, { role = 'postgres' } = {}) {
		const r = await run(join(bindir, 'psql'), ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1',
			'-d', this.conninfo(database, role), '-f', '-'], { home: this.dir, input: text });
		if (r.code !== 0)
			throw new Error(`psql: ${r.stderr.trim()}`);
		return r.stdout.replace(/\n$/, '');
	}

	// A new database, with what setup makes in it as a superuser; from is the
	// name of one to copy.
	async database(setup = '', { from } = {}) {
		const name = `t${process.pid}_${++made}`;
		await this.sql('postgres', from ? COPY(name, from) : `CREATE DATABASE ${name}`);
		if (setup)
			await this.sql(name, setup);
		return name;
	}
}
let made = 0;

// The run's own cluster (see run.mjs), or one for this process alone.
let shared;
export function cluster() {
	const given = process.env.AIRLOCK_CLUSTER;
	shared ??= given ? Cluster.join(JSON.parse(given)) : Cluster.start();
	return shared;
}
// To be called in an after() hook of a file that calls cluster().
export async function release() {
	if (shared)
		await (await shared).stop();
	shared = undefined;
}
