// place: where the programs are, as whom they run, and scratch directories
import { spawn } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const tests = fileURLToPath(new URL('../..', import.meta.url));
export const build = resolve(process.env.AIRLOCK_BUILD ?? join(tests, '../build'));
export const program = name => join(build, name);
export const isRoot = process.getuid() === 0;

// Neither PostgreSQL nor airlockd runs as root: tests/stage.sh says as whom.
if (isRoot && !process.env.AIRLOCK_UID)
	throw new Error('run by root: start the tests through tests/stage.sh');
export const user = isRoot
	? {
		name: process.env.AIRLOCK_USER,
		ids: { uid: Number(process.env.AIRLOCK_UID), gid: Number(process.env.AIRLOCK_GID) },
	}
	: { name: process.env.USER ?? String(process.getuid()), ids: {} };

// A directory of the user's own, removed when the process ends.
const scratches = [];
export function scratch(prefix = 'alk-') {
	const dir = mkdtempSync(join(tmpdir(), prefix));
	if (isRoot)
		chownSync(dir, user.ids.uid, user.ids.gid);
	scratches.push(dir);
	return dir;
}

// A file of the user's own that nobody else may read: its path.
export function writeFor(dir, name, text) {
	const path = join(dir, name);
	writeFileSync(path, text, { mode: 0o600 });
	if (isRoot)
		chownSync(path, user.ids.uid, user.ids.gid);
	return path;
}

// Only what a program needs; nothing of PostgreSQL's or of the caller's own.
export const environment = (home, more = {}) => ({
	PATH: '/usr/local/bin:/usr/bin:/bin',
	HOME: home,
	LANG: 'C.UTF-8',
	TMPDIR: tmpdir(),
	...more,
});

// Starts a program as the user, at the head of a session of its own.  One that
// outlives the test process is ended with it, by the signal last.
const living = new Map();
export function start(file, args, { home, env, last = 'SIGKILL', ...more } = {}) {
	const child = spawn(file, args, {
		...user.ids,
		detached: true,
		cwd: home ?? tmpdir(),
		env: environment(home ?? tmpdir(), env),
		stdio: ['ignore', 'pipe', 'pipe'],
		...more,
	});
	living.set(child, last);
	child.on('exit', () => living.delete(child));
	return child;
}
process.on('exit', () => {
	for (const [child, last] of living)
		child.kill(last);
	for (const dir of process.env.AIRLOCK_KEEP ? [] : scratches)
		rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
});

// Runs a program as the user to its end: { code, signal, stdout, stderr }.
export function run(file, args, { input, ...more } = {}) {
	return finished(start(file, args, {
		...more,
		stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
	}), input);
}

export function finished(child, input) {
	const out = [], err = [];
	child.stdout.on('data', d => out.push(d));
	child.stderr?.on('data', d => err.push(d));
	child.stdin?.on('error', () => {}); // it may end without reading
	child.stdin?.end(input);
	return new Promise((done, fail) => {
		child.on('error', fail);
		child.on('close', (code, signal) => done({
			code, signal,
			stdout: Buffer.concat(out).toString(),
			stderr: Buffer.concat(err).toString(),
		}));
	});
}
