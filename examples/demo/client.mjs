// client: an agent's host: the official MCP client over airlock-mcp, and a shell
//
//	client.mjs SOCKET
//
// Orders come from the demo as lines of JSON, each is answered with one:
// {"tool","args"} calls a tool: {"text"}; {"shell"} runs a command, as an agent
// that has a shell would: {"text","code"}.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

const client = new Client({ name: 'airlock-demo', version: '1.0' });
await client.connect(new StdioClientTransport({
	command: 'airlock-mcp',
	args: ['--state-dir', process.env.AIRLOCK_STATE_DIR],
}));

async function call({ tool, args }) {
	const { content } = await client.callTool({ name: tool, arguments: args });
	return { text: content.map(c => c.text).join('\n') };
}

function shell({ shell: command }) {
	const { status, stdout } = spawnSync('sh', ['-c', `exec 2>&1; ${command}`],
		{ stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' });
	return { text: stdout, code: status };
}

const demo = connect(process.argv[2]);
for await (const line of createInterface({ input: demo })) {
	const order = JSON.parse(line);
	demo.write(JSON.stringify(order.tool ? await call(order) : shell(order)) + '\n');
}
demo.end();
await client.close();
