// agent: the official MCP clients over airlock-mcp, and raw lines beside them
import assert from 'node:assert/strict';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { join } from 'node:path';
import { environment, isRoot, program, scratch, start, tests, user } from './place.mjs';
import { exited, Lines, within } from './wait.mjs';

const INFO = { name: 'airlock-tests', version: '1.0' };
const make = {
	'v1': () => [new ClientV1(INFO), StdioV1],
	'v2-legacy': () => [new ClientV2(INFO, { versionNegotiation: { mode: 'legacy' } }), StdioV2],
	'v2-auto': () => [new ClientV2(INFO, { versionNegotiation: { mode: 'auto' } }), StdioV2],
	'v2-modern': () => [new ClientV2(INFO, { versionNegotiation: { mode: { pin: '2026-07-28' } } }), StdioV2],
};
export const kinds = Object.keys(make);

// The clients start the bridge themselves: as the user, in its own session.
function bridge(daemon, name) {
	const argv = ['setsid', program('airlock-mcp'), '--state-dir', daemon.state];
	if (name)
		argv.push('--agent', name);
	if (isRoot)
		argv.unshift('setpriv', `--reuid=${user.ids.uid}`, `--regid=${user.ids.gid}`, '--clear-groups', '--');
	return argv;
}

export class Agent {
	// kind: one of kinds; name: the agent's, where there are several.
	static async connect(daemon, { kind = 'v1', name } = {}) {
		const a = new Agent();
		const [client, Stdio] = make[kind]();
		const [command, ...args] = bridge(daemon, name);
		a.client = client;
		a.faults = [];
		client.onerror = e => a.faults.push(e); // noise on stdout, bad ids
		const home = scratch('alka-');
		a.transport = new Stdio({ command, args, cwd: home, env: environment(home), stderr: 'pipe' });
		a.stderr = a.transport.stderr ? new Lines(a.transport.stderr) : null;
		await within(20000, client.connect(a.transport), () => `${kind} to connect: ${a.stderr?.text()}`);
		return a;
	}

	get pid() {
		return this.transport.pid;
	}

	// { error, text, json }: json where the text is an object.
	async call(tool, args = {}, options = {}) {
		const r = this.client instanceof ClientV1
			? await this.client.callTool({ name: tool, arguments: args }, undefined, options)
			: await this.client.callTool({ name: tool, arguments: args }, options);
		const text = r.content.map(c => c.text).join('\n');
		const json = text.startsWith('{') ? JSON.parse(text) : null;
		if (!r.isError && r.structuredContent)
			assert.deepEqual(r.structuredContent, json, 'text and structure say the same');
		return { error: Boolean(r.isError), text, json };
	}

	query(sql, more) {
		return this.call('db_query', { sql, ...more });
	}

	execute(sql, more) {
		return this.call('db_execute', { sql, ...more });
	}

	status(change_id, more) {
		return this.call('db_status', { ...(change_id && { change_id }), ...more });
	}

	async close() {
		await this.client.close();
		assert.deepEqual(this.faults.map(String), [], 'the client saw no protocol fault');
	}
}

// Raw lines, for what no client would send: through the bridge, or straight
// into the agent's socket.
export class RawAgent {
	static open(daemon, { through = 'bridge', name } = {}) {
		const a = new RawAgent();
		const home = scratch('alka-');
		const [file, args] = through === 'bridge'
			? [program('airlock-mcp'), ['--state-dir', daemon.state, ...(name ? ['--agent', name] : [])]]
			: [process.execPath, [join(tests, 'e2e/lib/relay.mjs'), daemon.socket(name)]];
		a.child = start(file, args, { home, stdio: ['pipe', 'pipe', 'pipe'] });
		a.child.stdin.on('error', () => {});
		a.out = new Lines(a.child.stdout);
		a.stderr = new Lines(a.child.stderr);
		a.id = 0;
		return a;
	}

	write(bytes) {
		this.child.stdin.write(bytes);
	}

	send(message) {
		this.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
	}

	// The answer to an id, whenever it comes.
	async answer(id, ms) {
		const line = await this.out.until(l => {
			try {
				return JSON.parse(l).id === id;
			} catch {
				return false;
			}
		}, { ms });
		return JSON.parse(line);
	}

	request(method, params) {
		const id = ++this.id;
		this.send({ id, method, ...(params && { params }) });
		return this.answer(id);
	}

	async tool(name, args) {
		const { result, error } = await this.request('tools/call', { name, arguments: args });
		assert.equal(error, undefined);
		return { error: Boolean(result.isError), text: result.content[0].text };
	}

	async close() {
		this.child.stdin.end();
		return within(10000, exited(this.child), 'the bridge to end after its input has');
	}
}
