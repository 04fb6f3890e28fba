// rig: one server, one daemon and two agents, and what is done for one case
import { Cluster } from '../e2e/lib/cluster.mjs';
import { Daemon } from '../e2e/lib/daemon.mjs';
import { FastAgent, FastOperator } from './client.mjs';
import { Pg } from './pgwire.mjs';
import { contents, differences, faultsOf, pathFaults, PINS, tablesOf } from './truth.mjs';
import { EXTENSIONS } from './types.mjs';

const ROLES = `
	CREATE ROLE narrow LOGIN;
	CREATE ROLE watch LOGIN BYPASSRLS;
	GRANT pg_read_all_data, pg_read_all_stats TO watch;`;
const MAP = 'CREATE EXTENSION pg_visibility; GRANT pg_stat_scan_tables TO watch;';

// Makes tables of some pages whose rows lie here and there, all-visible.
const SPREAD = schema => `DO $$ DECLARE t record; BEGIN
	SET LOCAL session_replication_role = replica;
	FOR t IN SELECT format('UPDATE ONLY %s SET %2$I = %2$I WHERE %2$I::text ~ ''[02468]'' OR $1 < 40', c.oid::regclass, min(a.attname)) AS sql
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attidentity <> 'a'
		WHERE c.relnamespace = '${schema}'::regnamespace AND c.relkind = 'r' GROUP BY c.oid LOOP
		FOR i IN 1 .. 80 LOOP EXECUTE t.sql USING i; END LOOP;
	END LOOP; END $$`;

export class Rig {
	made = 0;

	// narrow: above how many bytes a table's rows are looked for without a scan
	static async start({ settings, config = '', narrow = process.env.ORACLE_NARROW ?? 0 } = {}) {
		const g = new Rig();
		g.cluster = await Cluster.start({ settings: { fsync: 'off', track_functions: 'all', ...settings } });
		await g.cluster.sql('postgres', `${ROLES} CREATE DATABASE oracle;`);
		const at = { dir: g.cluster.dir, port: g.cluster.port, database: 'oracle' };
		g.pg = await Pg.open({ ...at, options: `${PINS} -c client_min_messages=error` });
		g.other = await Pg.open({ ...at, options: '-c lock_timeout=50ms' }); // somebody else
		g.locker = await Pg.open({ ...at, options: '-c lock_timeout=50ms' });
		g.version = Number((await g.pg.rows('SHOW server_version_num'))[0][0]) / 10000 | 0;
		await g.pg.query(EXTENSIONS);
		g.maps = (await g.pg.rows('SELECT FROM pg_available_extensions WHERE name = \'pg_visibility\'')).length > 0;
		if (g.maps)
			await g.pg.query(MAP);
		const url = role => g.cluster.url('oracle', role);
		g.daemon = await Daemon.start({ config: `[airlock]
operator_guard = off
shared_uid = yes
lock_timeout = 300ms
narrow_above = ${narrow}
${config}
[database oracle]
writer_dsn = ${url('app')}
observer_dsn = ${url('watch')}
[agent wide]
access = data
[agent narrow]
access = data
writer_dsn = ${url('narrow')}
` });
		g.agents = { wide: new FastAgent(g.daemon, 'wide'), narrow: new FastAgent(g.daemon, 'narrow') };
		g.operator = new FastOperator(g.daemon);
		return g;
	}

	async stop() {
		for (const a of Object.values(this.agents))
			await a.close();
		this.operator.close();
		for (const c of [this.pg, this.other, this.locker])
			c.close();
		await this.daemon.stop();
		await this.cluster.stop();
	}

	// Runs one case; gives { faults, tally }: what happened, counted by words.
	// A case: { setup, steps, agent, may, rollback, spread, before, during }; a step is
	// a statement, or { other: SQL of somebody else }, or { lock: SQL }.
	async run(c) {
		if (!this.daemon.running)
			throw new Error(`airlockd has ended:\n${this.daemon.log.text().slice(-2000)}`);
		if (this.schema)
			await this.pg.query(`DROP SCHEMA ${this.schema} CASCADE`);
		this.schema = `s${++this.made}`;
		c = this.#renamed(c);
		for (const sql of [c.setup].flat())
			await this.pg.query(sql);
		if (c.spread && this.maps)
			await this.#spread();
		// what a held change has emptied nobody can read meanwhile
		const list = async () => (await tablesOf(this.pg, [this.schema])).filter(t => c.may(t.ref) !== 'emptied whole');
		const tables = await list();
		const start = await contents(this.pg, tables);
		const x = { c, tables, agent: this.agents[c.agent ?? 'wide'], faults: [], tally: {}, alone: true };
		try {
			if (c.rollback && await this.#steps(x)) {
				const held = await contents(this.pg, tables);
				await this.operator.rollback(x.id);
				await this.#thirdParties(x);
				const now = await contents(this.pg, tables);
				x.faults.push(...[held, ...x.alone ? [start] : []].flatMap(was => differences(tables, was, now))
					.map(d => `after a rollback ${d}`));
				this.#count(x, 'rolled back');
				x.id = undefined;
			}
			if (c.twice)
				await this.#otherPath(x);
			if (await this.#steps(x)) {
				x.tables = await list(); // somebody else may have altered one
				await this.#commit(x);
			}
		} finally {
			await this.#thirdParties(x);
			if (x.id)
				await this.operator.rollback(x.id);
		}
		return x;
	}

	// A schema of its own for each case: what is said of app is meant of it.
	#renamed(c) {
		const { schema } = this, there = s => s?.replace(/\bapp\./g, `${schema}.`).replace(/\bSCHEMA app\b/g, `SCHEMA ${schema}`);
		const back = ref => ref.replace(`${schema}.`, 'app.');
		return { ...c, setup: [c.setup].flat().map(there), shows: c.shows?.map(([ref, ...more]) => [there(ref), ...more]), may: ref => c.may?.(back(ref)) ?? null,
			steps: c.steps.map(s => ({ ...s, sql: there(s.sql), other: there(s.other), lock: there(s.lock), named: s.named?.map(there) })) };
	}

	async #spread() {
		await this.pg.query(SPREAD(this.schema));
		for (const [ref] of await this.pg.rows(`SELECT oid::regclass FROM pg_class WHERE relnamespace = '${this.schema}'::regnamespace AND relkind = 'r'`))
			await this.pg.query(`VACUUM (TRUNCATE FALSE) ${ref}`);
	}

	// How often a map was asked for.
	async mapped() {
		const [[n]] = await this.pg.rows('SELECT COALESCE(sum(calls), 0) FROM pg_stat_user_functions WHERE funcname = \'pg_visibility_map\'');
		return Number(n);
	}

	#count(x, word) {
		x.tally[word] = (x.tally[word] ?? 0) + 1;
	}

	async #thirdParties(x) {
		if (x.locking)
			await this.locker.query('ROLLBACK');
		x.locking = false;
	}

	// True where there is a change to decide.
	async #steps(x) {
		x.named = [];
		for (const step of x.c.steps) {
			if (step.other !== undefined) {
				x.alone = await this.other.tries(step.other) !== null && x.alone;
			} else if (step.lock !== undefined) {
				if (!x.locking)
					await this.locker.query('BEGIN');
				x.locking = true;
				if (await this.locker.tries(`SAVEPOINT s; ${step.lock}`) !== null)
					await this.locker.query('ROLLBACK TO s');
			} else {
				await this.#statement(x, step);
			}
		}
		return x.id !== undefined;
	}

	// The same change, found by the other path: with a rule on each table that
	// does nothing, no statement is spliced and all its rows are searched for.
	// Both must show the same, row by row and in the digest.
	async #otherPath(x) {
		const sequences = await this.pg.rows(`SELECT format('SELECT setval(%L, %s, %L);', c.oid::regclass, COALESCE(pg_sequence_last_value(c.oid), 1),
			pg_sequence_last_value(c.oid) IS NOT NULL) FROM pg_class c WHERE c.relkind = 'S' AND c.relnamespace = '${this.schema}'::regnamespace`);
		const rules = how => x.tables.map(t => how(t.ref)).join('; ');
		const a = await this.#look(x, sequences);
		await this.pg.query(rules(ref => `CREATE RULE zz_nothing AS ON DELETE TO ${ref} DO ALSO NOTHING`));
		await this.#look(x, sequences); // runs some twice: the tables are not what they were
		const b = await this.#look(x, sequences);
		await this.pg.query(rules(ref => `DROP RULE zz_nothing ON ${ref}`));
		if (a.answers.join() !== b.answers.join())
			return; // MERGE goes to no table with rules
		this.#count(x, 'both paths');
		if (a.shown)
			x.faults.push(...pathFaults(a.shown, b.shown, x.tables));
	}

	// What a change shows that is not to stay, and how its statements went.
	async #look(x, sequences) {
		const out = { answers: [] };
		x.answers = out.answers;
		if (await this.#steps(x)) {
			out.shown = await this.operator.show(x.id);
			await this.operator.rollback(x.id);
		}
		x.id = undefined;
		await this.#thirdParties(x);
		await this.pg.query(sequences.join(' ') || 'SELECT 1');
		return out;
	}

	async #statement(x, step) {
		const answer = await x.agent.call('db_execute',
			{ sql: step.sql, ...step.params && { params: step.params }, ...x.id && { change_id: x.id } });
		if (process.env.ORACLE_TRACE)
			console.log(step.form, step.sql, answer.text.slice(0, 300));
		const word = /^(?:REFUSED|ERROR) ([A-Z0-9_]+):/.exec(answer.text)?.[1] ?? answer.json?.status ?? '?';
		this.#count(x, word);
		x.answers?.push(word);
		if (!answer.error && word === 'pending') {
			x.id = answer.json.change_id;
			x.named = step.named && x.named ? [...x.named, ...step.named] : null;
			return;
		}
		if (step.expect ? !step.expect.includes(word) : !/^[0-9A-Z]{5}$/.test(word) && !x.c.refusals?.includes(word))
			x.faults.push(`${step.sql}\n  is answered: ${answer.text}`);
		if (!x.id)
			return;
		// what was held before a failure is held after it
		const { data, end } = await this.operator.ask('show', { change: x.id });
		if (!end.ok || data[0].status !== 'pending') {
			this.#count(x, `change lost by ${word}`);
			if (!/^(40001|40P01)$/.test(word) && !/conflict|lost/.test(answer.text))
				x.faults.push(`${step.sql}\n  failed (${answer.text}), and the change is ${data[0]?.status ?? end.error}`);
			x.id = undefined;
		}
	}

	async #commit(x) {
		const shown = await this.operator.show(x.id), { head } = shown;
		x.shown = shown;
		await this.#thirdParties(x);
		const before = await contents(this.pg, x.tables);
		const { data, end } = await this.operator.commit({ id: x.id, digest: head.digest });
		const after = await contents(this.pg, x.tables);
		const fails = head.reasons.some(r => r.code === 'DEFERRED_FAILURE');
		x.id = undefined;
		if (!end.ok || end.change?.status !== 'committed') {
			this.#count(x, `commit ${end.change?.status ?? end.code}`);
			if (!fails || end.code === 'IN_DOUBT')
				x.faults.push(`commit: ${JSON.stringify(end)} ${JSON.stringify(data)}`);
			x.faults.push(...differences(x.tables, before, after).map(d => `after a failed commit ${d}`));
			return;
		}
		this.#count(x, head.complete ? 'complete' : 'incomplete');
		if (fails)
			x.faults.push('said to fail at commit, and committed');
		const kinds = x.c.shows?.map(([ref, op, n]) => `${n} ${op} ${ref}`).sort(), are = {};
		for (const r of shown.rows)
			are[`${r.op} ${r.table}`] = (are[`${r.op} ${r.table}`] ?? 0) + 1;
		const shows = Object.entries(are).map(([k, n]) => `${n} ${k}`).sort();
		if (kinds && kinds.join() !== shows.join())
			x.faults.push(`rows are shown as ${shows}, and not as ${kinds}`);
		for (const code of (x.c.says ?? []).filter(code => !head.reasons.some(r => r.code === code)))
			x.faults.push(`no reason says ${code}: ${JSON.stringify(head.reasons)}`);
		x.faults.push(...faultsOf(shown, x.tables, before, after, { may: x.c.may, alone: x.alone, named: x.named }));
	}
}
