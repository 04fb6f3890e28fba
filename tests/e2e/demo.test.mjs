// demo: what `make demo` prints is docs/demo.txt, but for ids, times and users
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { finished, tests } from './lib/place.mjs';
import { within } from './lib/wait.mjs';

const top = join(tests, '..');
const SECONDS = 60; // many times what it takes, for a sanitized build

// What differs from run to run, and what stands in its place.
const MASKS = [
	[/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d+(Z|\+00)/g, 'TIME'],
	[/\d+ (s|min)( \d+ s)? (ago|left)/g, 'DURATION $3'],
	[/ (uid|xid|system|timeline|version)=\S+/g, ' $1=N'],
	[/\bpid(=| )\d+/g, 'pid$1N'],
	[/(Ways out:)[^"]*"\.\.\. \(\d+ bytes\)/g, '$1 CUT'], // where, the pid's length says
	[/(TIME \w+ +(?:chg_\w+|-) +)(\S+)/g, (all, before, who) =>
		before + (who === 'agent' || who === '-' ? who : 'OPERATOR')],
];

// Ids and digests by the order in which they are first seen, so that one in
// the wrong place is a difference; digests also by their first digits.
function numbered(text, pattern, name) {
	const seen = [];
	return text.replace(pattern, found => {
		let n = seen.findIndex(s => s.startsWith(found) || found.startsWith(s));
		if (n === -1)
			n = seen.push(found) - 1;
		return `${name}${n + 1}`;
	});
}

// The paragraphs, without blanks: where lines are folded depends on lengths.
function essence(transcript) {
	let text = numbered(transcript, /chg_[0-9a-f]{10}/g, 'chg_');
	text = numbered(text, /\b[0-9a-f]{64}\b|(?<=digest=)[0-9a-f]{12}\b/g, 'DIGEST');
	return text.split('\n\n').map(paragraph => {
		let p = paragraph.replace(/\s+/g, ' ');
		for (const [pattern, by] of MASKS)
			p = p.replace(pattern, by);
		return p.replaceAll(' ', '');
	});
}

test('the demo prints docs/demo.txt, within 100 columns', async () => {
	const child = spawn(process.execPath, [join(top, 'examples/demo/demo.mjs')],
		{ cwd: top, stdio: ['ignore', 'pipe', 'pipe'] });
	const r = await within(SECONDS * 1000, finished(child), 'the demo to end');
	assert.equal(r.code, 0, r.stdout + r.stderr);
	assert.match(r.stderr, /^\s*demo: [\d.]+ s\s*$/);
	assert.deepEqual(essence(r.stdout), essence(readFileSync(join(top, 'docs/demo.txt'), 'utf8')),
		'if this is as it should be: make demo-update');
	assert.deepEqual(r.stdout.split('\n').filter(line => line.length > 100), []);
});
