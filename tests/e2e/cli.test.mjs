// cli: airlock against a daemon that says what the test wants
import assert from 'node:assert/strict';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeDaemon, header, holding, NONCE, row, sealed } from './lib/fakedaemon.mjs';
import { terminal } from './lib/operator.mjs';
import { isRoot, program, run, scratch, start, tests, user } from './lib/place.mjs';
import { Lines } from './lib/wait.mjs';

const ID = 'chg_0123456789';
const airlock = (...args) => run(program('airlock'), args, { home: scratch('alkc-') });

// No byte that does something to a terminal; newlines end lines.
const harmless = text => assert.doesNotMatch(text,
	// eslint-disable-next-line no-control-regex
	/[\x00-\x09\x0b-\x1f\x7f-\xa0\u034f\u115f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\ufe0f\ufeff\uffa0]/);

test('wrong usage is 2, says what is possible, and asks nobody', async () => {
	const cases = [
		[[], /verb is missing.*pending/],
		[['frobnicate'], /no verb 'frobnicate'.*ping.*commit/],
		[['--frobnicate', 'ping'], /no option '--frobnicate'.*--state-dir/],
		[['ping', '--reason', 'x'], /no option '--reason' for ping/],
		[['show'], /needs the id/],
		[['commit', ''], /needs the id/],
		[['commit', ID, 'chg_0123456788'], /one word too many/],
		[['ping', 'now'], /takes no argument/],
		[['rollback', ID, '--reason'], /needs a value/],
		[['show', ID, '--limit', '-1'], /not between/],
		[['show', ID, '--limit=x'], /not a whole number/],
		[['ping', '--json=yes'], /takes no value/],
		[['log', '--verify', '-f'], /do not go together/],
		[['log', '--change', 'x'], /not the id/],
		[['show', ID, '--json', '--column', 'a'], /do not go together/],
		[['commit', 'latest'], /not a change/],
		[['commit', 'all'], /not a change/],
		[['commit', `${ID}@abc`], /64 hex digits/],
		[['commit', `${ID}@${'A'.repeat(64)}`], /64 hex digits/],
		[['commit', ID], /airlock commit chg_0123456789@DIGEST/],
		[['frob\x1b[2J'], /frob\\x1b\[2J/],
	];
	for (const [args, says] of cases) {
		const r = await airlock('--state-dir', '/nonexistent', ...args);
		assert.deepEqual([r.code, r.stdout], [2, ''], args.join(' '));
		assert.match(r.stderr, says);
		harmless(r.stderr);
	}
});

test('help and the version need no daemon', async () => {
	const help = await airlock('help');
	assert.equal(help.code, 0);
	for (const verb of ['pending', 'show', 'commit', 'rollback', 'log', 'status', 'agents', 'ping', 'version',
		'reasons', 'grants'])
		assert.match(help.stdout, new RegExp(`^  ${verb}`, 'm'));
	const manual = readFileSync(join(tests, '../man/airlock.1'), 'utf8');
	const options = help.stdout.match(/--[a-z-]+(?=.* {2})/g);
	assert.ok(options.length >= 14);
	for (const option of options)
		assert.match(manual, new RegExp(`^\\.It Fl (\\w , )?${option.slice(1)}( |$)`, 'm'), option);
	assert.match((await airlock('--version')).stdout, /^airlock \d+\.\d+\.\d+\n$/);
	const r = await airlock('--state-dir', '/nonexistent', 'version');
	assert.equal(r.code, 3);
	assert.match(r.stdout, /^airlock /);
});

test('reasons need no daemon; one that is not there is 1', async () => {
	const reasons = (...args) => airlock('reasons', ...args);
	const all = JSON.parse((await reasons('--json')).stdout);
	for (const { code, severity, meaning, advice } of all) {
		const one = await reasons(code.toLowerCase());
		assert.equal(one.code, 0);
		for (const part of [code, meaning, advice, severity === 'refuse' ? 'refused' : severity])
			assert.ok(one.stdout.includes(part), `${code}: ${part}`);
	}
	assert.equal((await reasons()).stdout.trim().split('\n').length, all.length);
	assert.equal((await reasons('NOT_A_REASON')).code, 1);
	assert.equal((await reasons('A', 'B')).code, 2);
	assert.equal((await reasons('--markdown', 'SYNTAX')).code, 2);
	const before = await airlock('--json', 'reasons', all[0].code);
	assert.deepEqual(JSON.parse(before.stdout), all[0]);
});

test('grants need no daemon and are those of airlockd', async () => {
	for (const tables of [[], ['orders'], ['shop.*', 'public.orders']]) {
		const ours = await airlock('grants', ...tables);
		const daemons = await run(program('airlockd'), ['--grants', ...tables]);
		assert.deepEqual([ours.code, ours.stdout], [0, daemons.stdout]);
		const json = await airlock('grants', '--json', ...tables);
		assert.equal(JSON.parse(json.stdout).sql, ours.stdout);
	}
	for (const bad of ['a.b.c', '\x1b[2J.x.y', '--frobnicate']) {
		const r = await airlock('grants', bad);
		assert.deepEqual([r.code, r.stdout], [2, ''], bad);
		harmless(r.stderr);
	}
});

test('a daemon that is not there, or breaks off, is 3', async () => {
	const none = await airlock('--state-dir', '/nonexistent', 'ping');
	assert.equal(none.code, 3);
	assert.match(none.stderr, /no airlockd at/);
	const broken = [
		['{"data":{"id"', /not JSON|broke off/],
		['', /broke off/],
		['[]\n', /broke off/],
		['nonsense\n', /broke off/],
		['{"what":1}\n', /broke off/],
		['{"ok":true,"ok":false}\n', /broke off/],
		['"\ud800\xff"\n', /broke off/],
		['[' .repeat(5000) + '\n', /broke off/],
	];
	for (const [bytes, says] of broken) {
		const d = await FakeDaemon.start((verb, args, say) => {
			say.raw(bytes);
			say.end();
		});
		const r = await d.run('pending');
		assert.equal(r.code, 3, bytes);
		assert.match(r.stderr, says);
		await d.stop();
	}
	for (const greeting of ['\n', '{}\n', '{"airlock":2,"version":"9","nonce":"x"}\n',
		`{"airlock":1,"nonce":"${'n'.repeat(500)}"}\n`, '{"airlock":1}\n']) {
		const d = await FakeDaemon.start(() => {}, { greeting });
		assert.equal((await d.run('ping')).code, 3, greeting);
		assert.deepEqual(d.verbs, [], 'nothing is asked of a stranger');
		await d.stop();
	}
});

test('a line without an end is given up, not kept', async () => {
	const d = await FakeDaemon.start((verb, args, say) => {
		const chunk = Buffer.alloc(1 << 20, 'x');
		for (let i = 0; i < 90; i++)
			say.raw(chunk);
	});
	const r = await d.run('status');
	assert.equal(r.code, 3);
	assert.match(r.stderr, /a line of more than/);
	await d.stop();
});

test('a socket of somebody else\'s is not believed', { skip: !isRoot && 'takes root' }, async () => {
	const state = scratch('alkf-');
	mkdirSync(join(state, 'run'));
	chownSync(join(state, 'run'), user.ids.uid, user.ids.gid);
	chownSync(state, 0, 0);
	chmodSync(state, 0o755);
	const child = start(process.execPath, ['-e', `
		require('net').createServer(s => s.write('{"airlock":1,"version":"1","nonce":"1"}\\n'))
			.listen(process.argv[1], () => console.log('up'))`, join(state, 'run/control.sock')]);
	await new Lines(child.stdout).until(/up/);
	const r = await airlock('--state-dir', state, 'ping');
	assert.equal(r.code, 4);
	assert.match(r.stderr, /runs as uid \d+, but .* belongs to uid 0 \(WRONG_OWNER\)/);
	child.kill();
});

test('the state directory comes from option, environment, or home', async () => {
	const d = await holding([]);
	const env = { AIRLOCK_STATE_DIR: d.state };
	const by = (args, more) => run(program('airlock'), args, { home: scratch(), ...more });
	assert.equal((await by(['ping'], { env })).code, 0);
	assert.equal((await by(['ping', '--state-dir', '/nonexistent'], { env })).code, 3);
	assert.equal((await by(['ping', `--socket=${d.socket}`])).code, 0);
	assert.equal((await by(['ping'], { env: { XDG_STATE_HOME: '/nonexistent' } })).code, 3);
	assert.deepEqual(d.requests[0], { airlock: 1, nonce: NONCE, verb: 'ping', args: {} });
	await d.stop();
	const deep = await FakeDaemon.start((verb, args, say) => say({ ok: true }));
	const link = join(scratch(), 'x'.repeat(120));
	mkdirSync(link);
	symlinkSync(deep.socket, join(link, 'control.sock'));
	const r = await by(['ping', '--socket', join(link, 'control.sock'), '--state-dir', deep.state]);
	assert.deepEqual([r.code, r.stderr], [0, '']);
	await deep.stop();
});

test('pending shows what is asked of it, and a token that commit takes', async () => {
	const d = await holding([{
		header: header({
			risk: 'high', reasons: [{ code: 'NO_WHERE', text: 'every row would change' }],
			effects: [{ code: 'SEQUENCE', text: 'public.s moved on' }],
		}),
		rows: [row()],
	}]);
	const { code, stdout, stderr } = await d.run('pending');
	assert.deepEqual([code, stderr], [0, '']);
	for (const says of [/^chg_0123456789 pending, agent agent, database shop$/m,
		/^ {2}agent says: fix balances$/m, /^ {2}risk high$/m,
		/^ {4}NO_WHERE: every row would change$/m, /^ {2}ran \d+ h .* ago \(2026-01-02T03:04:05.678Z\)$/m,
		/^ {2}\d+ h \d+ min left \(until 2099/m,
		/^ {2}sql \| UPDATE accounts SET balance = \$1 WHERE id = 1$/m, /^ {4}\$1 = 2$/m,
		/^ {2}public\.accounts: 0 inserted, 1 updated, 0 deleted, 0 matched but unchanged; rows 3 -> 3$/m,
		/^ {2}effect SEQUENCE: public.s moved on$/m,
		/^ {4}update public\.accounts id=1$/m, /^ {6}balance: 100\.00 -> 2$/m,
		/^chg_0123456789@[0-9a-f]{64}$/m])
		assert.match(stdout, says);
	assert.doesNotMatch(stdout, /owner/, 'what did not change is not shown');
	const token = /^chg_.*@.*$/m.exec(stdout)[0];
	const done = await d.run('commit', token);
	assert.deepEqual([done.code, done.stdout], [0, 'committed chg_0123456789: 1 row\n']);
	const json = JSON.parse((await d.run('--json', 'pending')).stdout);
	assert.equal(json[0].token, token);
	await d.stop();
	const idle = await holding([]);
	assert.equal((await idle.run('pending', '--json')).stdout, '[]\n');
	assert.deepEqual((await idle.run('pending')).stdout, '');
	await idle.stop();
});

test('many rows are paged, counted, exported', async () => {
	const rows = Array.from({ length: 250 }, (_, i) => row({ key: { id: `${i}` },
		...(i % 2 && { table: 'public.odd' }) }));
	const d = await holding([{ header: header(), rows }]);
	assert.match((await d.run('pending')).stdout, /\.\.\. 240 more rows: airlock show chg_0123456789 --offset 10\n/);
	assert.match((await d.run('show', ID)).stdout, /\.\.\. 150 more rows: .* --offset 100\n/);
	const second = (await d.run('show', ID, '--offset', '100', '--limit=2')).stdout;
	assert.deepEqual(second.match(/id=\d+/g), ['id=100', 'id=101']);
	assert.match(second, /--offset 102\n/);
	const odd = (await d.run('show', ID, '--table', 'public.odd', '--offset', '120')).stdout;
	assert.deepEqual(odd.match(/id=\d+/g), ['id=241', 'id=243', 'id=245', 'id=247', 'id=249']);
	for (const as of [[], ['--json']]) { // as psql would take it, but the counts do not write it
		const none = await d.run('show', ID, '--table', 'odd', ...as);
		assert.equal(none.code, 1);
		assert.match(none.stderr, /chg_0123456789 changes no table 'odd': write it as the counts do/);
	}
	for (const where of [[], ['--offset', '200', '--limit', '3']]) { // as nobody named it
		const none = await d.run('show', ID, '--column', 'ballance\x1b[m', ...where);
		assert.equal(none.code, 1);
		assert.match(none.stderr, /no row of chg_0123456789 that is shown has a column 'ballance\\x1b\[m'/);
	}
	for (const [args, code] of [[['owner'], 0], [['nope', '--limit', '0'], 0], [['nope', '--table', 'odd'], 1]]) {
		const some = await d.run('show', ID, '--column', ...args);
		assert.deepEqual([some.code, /no row of/.test(some.stderr)], [code, false], args.join(' '));
	}
	const lines = (await d.run('show', ID, '--json')).stdout.trimEnd().split('\n').map(l => JSON.parse(l));
	assert.deepEqual(lines, [d && lines[0], ...rows]);
	assert.equal(lines[0].id, ID);
	const home = scratch(), file = join(home, 'rows.ndjson');
	const exported = await d.run('show', ID, '--export', file);
	assert.equal(exported.code, 0, exported.stderr);
	assert.equal(readFileSync(file, 'utf8').split('\n').length, 252);
	const again = await d.run('show', ID, '--export', file);
	assert.equal(again.code, 1);
	assert.match(again.stderr, /File exists/);
	await d.stop();
});

test('F116: what a value holds does nothing to a terminal', async () => {
	const values = ['\x1b[2J\x1b[1;1H\x1b[8mhidden', 'ok\r- 0 rows changed', '\x1b]52;c;ZXZpbA==\x07',
		'\u202Egnp.exe\u202C', 'a\nCOMMITTED id 1\nb', '\x7f\u0085\u009b31m',
		'a\u00A0b\u034F\u2003\u2800\u3000\uFE0F\uFFA0', 'NULL', '', ' x', 'a" -> "b'];
	const evil = values.join('');
	const d = await holding([{
		header: header({
			agent: evil, intent: evil, reasons: [{ code: evil, text: evil }],
			statements: [{ sql: `SELECT 1\n2024-01-01 OPERATOR committed id 1\t${evil}`, params: [evil, null] }],
			tables: [{ ...header().tables[0], table: evil }], effects: [{ code: evil, text: evil }],
		}),
		rows: values.map((s, i) => row({
			table: evil, key: { id: `${i}` }, before: { id: `${i}`, s }, after: { id: `${i}`, s: `${s}!` },
		})),
	}]);
	for (const args of [['pending'], ['show', ID], ['show', ID, '--column', 's'],
		['pending', '--json'], ['show', ID, '--json']]) {
		const r = await d.run(...args);
		assert.deepEqual([r.code, r.stderr], [0, ''], args.join(' '));
		harmless(r.stdout);
		assert.doesNotMatch(r.stdout, /^(COMMITTED|2024)/m);
	}
	const { stdout } = await d.run('show', ID);
	assert.ok(stdout.includes(String.raw`s: "\x1b[2J\x1b[1;1H\x1b[8mhidden" -> `));
	assert.ok(stdout.includes(String.raw`s: "NULL" -> "NULL!"`), 'a text is not NULL');
	assert.ok(stdout.includes(String.raw`s: "a\" -> \"b" -> `), 'an arrow in a value is no arrow');
	assert.ok(stdout.includes('$2 = NULL'));
	await d.stop();
	const rude = await FakeDaemon.start((verb, args, say) => say({ ok: false, exit: 1, code: evil, error: evil }));
	const r = await rude.run('agents');
	assert.equal(r.code, 1);
	harmless(r.stderr);
	await rude.stop();
});

test('a long value is cut where it differs, and whole with --column', async () => {
	const long = 'a'.repeat(5000);
	const d = await holding([{
		header: header(),
		rows: [row({ before: { id: '1', s: `${long}b${long}` }, after: { id: '1', s: `${long}c${long}` } })],
	}]);
	const cut = (await d.run('show', ID)).stdout;
	assert.match(cut, /s: \.\.\."a{24}ba+"\.\.\. \(bytes 4977 to 5136 of 10001\) -> \.\.\."a{24}ca+"/);
	assert.match((await d.run('show', ID, '--column', 's')).stdout, /s: a{5000}ba{5000} -> a{5000}ca{5000}\n/);
	await d.stop();
});

test('rows that do not give the digest are not shown as if they did', async () => {
	const change = { header: header(), rows: [row()] };
	const d = await holding([change]);
	change.rows[0] = row({ after: { id: '1', owner: 'ann', balance: '3' } });
	for (const args of [['show', ID], ['pending'], ['pending', '--json'], ['show', ID, '--json'],
		['show', ID, '--export', join(scratch(), 'f')]]) {
		const r = await d.run(...args);
		assert.equal(r.code, 1, args.join(' '));
		assert.match(r.stderr, /DO NOT TRUST THIS VIEW of chg_0123456789.*DIGEST_MISMATCH/);
		assert.doesNotMatch(r.stdout, /^chg_0123456789@/m);
		if (args[0] === 'pending' && args[1])
			assert.equal(r.stdout, '[]\n');
	}
	change.header.id = 'chg_0000000000';
	const other = await FakeDaemon.start((verb, args, say) => {
		say({ data: change.header });
		say({ ok: true, rows: 0, next: null });
	});
	const r = await other.run('show', ID);
	assert.equal(r.code, 1);
	assert.match(r.stderr, /answers for another change/);
	await other.stop();
	await d.stop();
});

test('F108: a part of an id never acts', async () => {
	const two = ['chg_0123456789', 'chg_0123456788'].map(id => ({ header: header({ id }), rows: [row()] }));
	const d = await holding(two);
	for (const [word, says] of [['chg_012345678', /ambiguous: it fits 2/], ['0123', /ambiguous/],
		['chg_', /ambiguous/], [`chg_01234@${'0'.repeat(64)}`, /ambiguous/], ['ff', /no pending change begins/]])
		for (const verb of ['commit', 'rollback', 'show']) {
			const r = await d.run(verb, word);
			assert.deepEqual([r.code, r.stdout], [1, ''], word);
			assert.match(r.stderr, says);
			if (says.source.includes('2'))
				for (const { header: h } of two)
					assert.match(r.stderr, new RegExp(h.id));
		}
	two.pop();
	const one = await d.run('commit', 'chg_0');
	assert.equal(one.code, 1);
	assert.match(one.stderr, /is part of an id; a change is named in full: chg_0123456789/);
	assert.ok(d.verbs.every(v => v === 'pending'), 'nothing but the list was asked for');
	await d.stop();
});

test('decisions name the digest, say how they ended, and carry the reason', async () => {
	const change = { header: header(), rows: [row()] };
	const answers = [
		[{ exit: 1, code: 'ALREADY_DECIDED', error: 'it is already committed' }, 1],
		[{ exit: 1, code: 'NOT_FOUND', error: 'no' }, 1], [{ exit: 4, code: 'DENIED', error: 'no' }, 4],
		[{ exit: 77, code: 'X', error: 'no' }, 1], [{ exit: 0 }, 1], [{}, 1],
	];
	let next;
	const d = await holding([change], { decide: (verb, args, say) => next && (say({ ok: false, ...next }), true) });
	for (const [answer, code] of answers) {
		next = answer;
		const r = await d.run('commit', change.header.token);
		assert.deepEqual([r.code, r.stdout], [code, '']);
	}
	next = null;
	d.requests.length = 0;
	assert.equal((await d.run('rollback', ID, '--reason', 'no WHERE\n')).stdout,
		'rolled_back chg_0123456789: 1 row, reason: no WHERE\\n\n');
	assert.deepEqual(d.requests[0].args, { change: ID, reason: 'no WHERE\n' });
	assert.equal(JSON.parse((await d.run('commit', change.header.token, '--json')).stdout).status, 'committed');
	assert.deepEqual(d.requests[1].args, { change: ID, digest: change.header.digest });
	const moved = await d.run('commit', `${ID}@${'f'.repeat(64)}`);
	assert.deepEqual([moved.code, moved.stdout], [1, '']);
	assert.match(moved.stderr, /DIGEST_MOVED[^]*nothing was done[^]*balance: 100.00 -> 2/);
	assert.equal((await d.run('rollback', ID, '--reason', 'x'.repeat(5000))).code, 2);
	await d.stop();
});

test('an answer that is lost is not called one', async () => {
	const change = { header: header(), rows: [row()] };
	const d = await holding([change], { decide: (verb, args, say) => (say.end(), true) });
	const r = await d.run('commit', change.header.token);
	assert.equal(r.code, 3);
	assert.match(r.stderr, /not known here; ask: airlock show chg_0123456789/);
	await d.stop();
	const doubt = await holding([change], { decide: (verb, args, say) =>
		(say({ ok: true, change: { ...change.header, status: 'in_doubt' } }), true) });
	const r2 = await doubt.run('commit', change.header.token);
	assert.deepEqual([r2.code, r2.stdout], [1, '']);
	assert.match(r2.stderr, /not committed but: in_doubt/);
	await doubt.stop();
});

test('on a terminal commit shows the diff and asks', async () => {
	const change = { header: header(), rows: [row()] };
	const d = await holding([change]);
	const talk = (says, ...args) => terminal.talk(d.words(...args), says, { home: scratch('alkc-') });
	const yes = await talk([[/Commit chg_0123456789\? \[y\/N\] /, 'y\n']], 'commit', ID);
	assert.equal(yes.code, 0, yes.screen);
	assert.match(yes.screen, /balance: 100\.00 -> 2[^]*rows that change: 1, risk low[^]*committed chg_0123456789/);
	assert.equal(d.requests.at(-1).args.digest, change.header.digest);
	d.requests.length = 0;
	for (const no of ['\n', 'n\n', 'yep\n', '\x04']) {
		const r = await talk([[/\[y\/N\] /, no]], 'commit', ID);
		assert.equal(r.code, 1, r.screen);
		assert.match(r.screen, /was not committed; it stays pending/);
	}
	assert.ok(!d.verbs.includes('commit'));
	await d.stop();
});

test('high risk takes the number of rows, and a digest that moves is told', async () => {
	const tables = [{ ...header().tables[0], updated: 1234 }];
	const change = { header: header({ risk: 'high', tables }), rows: [row()] };
	const after = header({ risk: 'medium', tables: [{ ...tables[0], updated: 1300 },
		{ ...tables[0], table: 'public.audit', collateral: true }] });
	let moves = false;
	const d = await holding([change], {
		decide(verb, args, say, c) {
			if (!moves)
				return false;
			c.header = after;
			say({ ok: false, exit: 1, code: 'DIGEST_MOVED', error: 'it is another by now', change: after });
			return true;
		},
	});
	const before = change.header;
	change.header = after;
	await sealed(d, change);
	change.header = before;
	const talk = says => terminal.talk(d.words('commit', ID), says, { home: scratch('alkc-') });
	for (const no of ['y\n', '1233\n', '0\n', '12340\n'])
		assert.equal((await talk([[/type the number of rows/, no]])).code, 1);
	assert.ok(!d.verbs.includes('commit'));
	assert.equal((await talk([[/type the number of rows/, '1234\n']])).code, 0);
	moves = true;
	const r = await talk([[/type the number of rows/, '1234\n']]);
	assert.equal(r.code, 1);
	assert.match(r.screen, /DIGEST_MOVED[^]*has changed since it was shown[^]*what differs[^]*risk: high -> medium/);
	assert.match(r.screen, /table public\.accounts: inserted 0, updated 1234 -> 1300, deleted 0, unchang/);
	assert.match(r.screen, /table public\.audit \(new\): inserted 0, updated 0 -> 1234, /);
	await d.stop();
});

test('colour is for terminals without NO_COLOR', async () => {
	const d = await holding([{ header: header(), rows: [row()] }]);
	const show = env => terminal.talk(d.words('show', ID), [], { home: scratch('alkc-'), env: { TERM: 'xterm', ...env } });
	if (isRoot) // a tmux window paints its own
		assert.match((await show({})).screen, /\x1b\[1mchg_/); // eslint-disable-line no-control-regex
	assert.doesNotMatch((await show({ NO_COLOR: '1' })).screen, /\x1b\[1m/); // eslint-disable-line no-control-regex
	assert.doesNotMatch((await d.run('show', ID)).stdout, /\x1b/); // eslint-disable-line no-control-regex
	await d.stop();
});

test('on a narrow terminal no value begins a line', async () => {
	const value = `${' '.repeat(200)}COMMITTED`.repeat(3);
	const d = await holding([{
		header: header({ intent: value, statements: [{ sql: value, params: [value] }] }),
		rows: [row({ after: { id: '1', owner: value, balance: value } })],
	}]);
	const { screen } = await terminal.talk(d.words('show', ID, '--column', 'owner'), [],
		{ home: scratch('alkc-'), env: { NO_COLOR: '1' } });
	for (const line of screen.split('\n')) {
		assert.ok(line.length < 80 || /@/.test(line), line);
		assert.doesNotMatch(line, /^COMMITTED/);
	}
	await d.stop();
});

test('log prints a line a record, the last ones, and goes on', async () => {
	const records = Array.from({ length: 5 }, (_, i) => ({
		seq: i + 1, at: '2026-01-02T03:04:05.678Z', kind: i % 2 ? 'committed' : 'held', prev: '0'.repeat(64),
		change: ID, agent: 'agent', sql: 'SELECT 1\n2024-01-01 OPERATOR committed id 1', rows: { updated: 1 },
	}));
	let asked = 0;
	const d = await FakeDaemon.start((verb, args, say) => {
		if (args.verify)
			return say({ ok: true, records: 5, files: 1 });
		if (args.from && ++asked > 1)
			return say({ ok: false, exit: 4, code: 'DENIED', error: 'enough' });
		for (const r of args.from ? [{ ...records[4], seq: 6, kind: 'late' }] : records)
			say({ data: r });
		return say({ ok: true, next: 6 });
	});
	const all = (await d.run('log')).stdout.trimEnd().split('\n');
	assert.equal(all.length, 5);
	assert.match(all[0], /^2026-01-02T03:04:05.678Z held {9}chg_0123456789 agent {8}sql="SELECT 1\\n2024.*rows=\{"updated":1\}$/);
	const last = (await d.run('log', '--json', '--limit', '2')).stdout.trimEnd().split('\n').map(l => JSON.parse(l));
	assert.deepEqual(last, records.slice(3));
	assert.deepEqual(d.requests.at(-1).args, { limit: 2 });
	const f = await d.run('log', '-f', '--json', '--change', ID);
	assert.equal(f.code, 4, 'following ends when it is told so');
	assert.match(f.stdout, /"kind":"late"/);
	assert.deepEqual(d.requests.at(-2).args, { from: 6, change: ID });
	assert.match((await d.run('log', '--verify')).stdout, /is whole: 5 records/);
	assert.equal(JSON.parse((await d.run('log', '--verify', '--json')).stdout).records, 5);
	await d.stop();
});

test('status, agents, ping and version, for people and as JSON', async () => {
	const d = await FakeDaemon.start((verb, args, say) => {
		if (verb === 'status')
			say({ data: { daemon: 'up', database: 'down', warnings: ['one', 'two\x1b'], links: { read: 1 } } });
		if (verb === 'agents')
			say({ data: { name: 'agent', access: 'data', calls: 1, pending: 2 } });
		say({ ok: true });
	});
	assert.equal((await d.run('status')).stdout,
		'daemon: up\ndatabase: down\nwarnings: one\nwarnings: two\\x1b\nlinks: {"read":1}\n');
	assert.match((await d.run('agents')).stdout, /^AGENT +ACCESS +CALLS +PENDING\nagent +data +1 +2\n$/);
	assert.deepEqual(JSON.parse((await d.run('agents', '--json')).stdout),
		[{ name: 'agent', access: 'data', calls: 1, pending: 2 }]);
	assert.equal(JSON.parse((await d.run('status', '--json')).stdout).database, 'down');
	assert.equal((await d.run('ping')).stdout, 'airlockd 0.1.0 is up\n');
	assert.deepEqual(JSON.parse((await d.run('ping', '--json')).stdout), { ok: true, version: '0.1.0' });
	assert.match((await d.run('version')).stdout, /^airlock .*\nairlockd 0\.1\.0\n$/);
	await d.stop();
});

test('output that cannot be written is an error', { skip: !existsSync('/dev/full') }, async () => {
	const d = await holding([]);
	const r = await run('sh', ['-c', `exec "$0" "$@" >/dev/full`, ...d.words('ping')]);
	assert.equal(r.code, 1);
	assert.match(r.stderr, /cannot write to standard output/);
	await d.stop();
});
