// players: the daemon, an agent, an operator and a psql, all as one user
//
// The daemon keeps the operator guard that it has by default.  So the agent's
// client is in a session of its own, and the operator has a terminal of its own
// (tests/guard/ptyrun.c): one that root holds, or a window of tmux.  In the
// latter case the client's session too begins in a window of that tmux, since a
// tmux that is younger than what started the client is not trusted.
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bindir } from '../../tests/e2e/lib/cluster.mjs';
import { Daemon } from '../../tests/e2e/lib/daemon.mjs';
import { terminal } from '../../tests/e2e/lib/operator.mjs';
import { build, isRoot, run, scratch, start } from '../../tests/e2e/lib/place.mjs';
import { exited, Lines, within } from '../../tests/e2e/lib/wait.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const top = join(here, '../..');
const SOCKET_ROOM = 70; // of the 107 bytes of a socket's path
const COLUMNS = 1000; // the transcript folds lines itself

// state/ of the checkout, where the user may write and sockets' paths fit.
function stateDir() {
	const inside = join(top, 'state/demo-XXXXXX');
	if (isRoot || inside.length > SOCKET_ROOM || !existsSync(dirname(inside)))
		return join(scratch('airlock-demo-'), 'state');
	const dir = mkdtempSync(join(top, 'state/demo-'));
	process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
	return dir;
}

export class Players {
	static async gather() {
		const p = new Players();
		p.state = stateDir();
		p.home = scratch('alkdemo-');
		p.env = {
			AIRLOCK_STATE_DIR: p.state,
			NO_COLOR: '1',
			PATH: `${build}:/usr/local/bin:/usr/bin:/bin`,
		};
		p.daemon = await Daemon.start({
			db: 'embedded', state: p.state, args: ['--init', join(top, 'examples/seed.sql')],
		});
		return p;
	}

	// Starts the agent's client, which calls back for its orders.
	async hireAgent() {
		const path = join(this.home, 'orders');
		const server = createServer();
		await new Promise(done => server.listen(path, done));
		chmodSync(path, 0o666); // in a directory that is the user's alone
		const called = new Promise(done => server.once('connection', done));
		const words = [process.execPath, join(here, 'client.mjs'), path];
		const place = { home: this.home, env: this.env };
		this.ended = isRoot ? exited(start(words[0], words.slice(1), { ...place, stdio: 'inherit' }))
			: terminal.run(['setsid', '-w', ...words], place);
		this.client = await within(20000, Promise.race([called, this.ended.then(r => {
			throw new Error(`the agent's client ended: ${r.stderr ?? ''}`);
		})]), "the agent's client to call");
		server.close();
		this.answers = new Lines(this.client);
	}

	async agent(order) {
		const from = this.answers.all.length;
		this.client.write(JSON.stringify(order) + '\n');
		return JSON.parse(await this.answers.until(/./, { from }));
	}

	// What the operator's terminal shows.
	async operator(command) {
		const { code, screen } = await terminal.talk(
			['sh', '-c', `stty cols ${COLUMNS}; ${command}`], [], { home: this.home, env: this.env });
		return { code, text: screen };
	}

	// An independent look, past Airlock.
	async psql(sql) {
		const r = await run(join(bindir, 'psql'), ['-X', '-U', 'airlock', '-d', 'airlock',
			'-h', join(this.state, 'embedded/run'), '-c', sql], { home: this.home });
		return { code: r.code, text: r.stdout + r.stderr };
	}

	async dismiss() {
		if (this.client) {
			this.client.end();
			await within(10000, this.ended, 'the agent to leave');
		}
		await this.daemon.stop();
	}
}
