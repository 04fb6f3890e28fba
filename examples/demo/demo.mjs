// demo: an agent's write is held, refused, sent again and committed
//
// Nothing here is mocked: airlockd with a PostgreSQL of its own, the official
// MCP client over airlock-mcp, and airlock on the operator's terminal.
//	sh tests/stage.sh node examples/demo/demo.mjs
import { Players } from './players.mjs';
import { answer, call, command, heading, note, title } from './transcript.mjs';

const began = Date.now();
const LOOK = 'SELECT id, name, status FROM customers ORDER BY id LIMIT 4';
const INTENT = 'Ada asked for a break, pause her account';

title('Airlock: an agent writes, a person decides');
note(`airlockd runs on a PostgreSQL of its own. The agent is the official MCP client over airlock-mcp;
	the operator has a terminal. What follows a $ or a > was really asked, and all below it is what
	the programs answered, but that long lines are folded.`);
const players = await Players.gather();
for (const signal of ['SIGINT', 'SIGTERM'])
	process.on(signal, () => players.dismiss().finally(() => process.exit(1)));

async function tool(name, args) {
	call(name, args);
	const r = await players.agent({ tool: name, args });
	answer(r);
	return r.text.startsWith('{') ? JSON.parse(r.text) : null;
}

async function agentShell(words) {
	command('agent', words);
	answer(await players.agent({ shell: words }));
}

async function operator(words) {
	command('operator', words);
	const r = await players.operator(words);
	answer(r);
	return r.text;
}

async function psql() {
	command('', `psql -c '${LOOK}'`);
	answer(await players.psql(LOOK));
}

async function forgets() {
	heading('An agent forgets the WHERE');
	note('The table, seen by psql, past Airlock. Ada is the first of twelve customers.');
	await psql();
	note(`The agent was asked to pause Ada's account.`);
	await players.hireAgent();
	const { change_id } = await tool('db_execute',
		{ sql: "UPDATE customers SET status = 'paused'", intent: INTENT });
	note('It has run, in a transaction that airlockd holds open. Nobody else sees it.');
	await psql();
	return change_id;
}

async function declines(id) {
	heading('The operator looks, and says no');
	await operator('airlock pending');
	note('Ten accounts instead of one.');
	await operator(`airlock rollback ${id} --reason 'Ada only, please: id 1'`);
	note('The agent asks what became of its change, and is told the truth.');
	await tool('db_status', { change_id: id });
}

async function corrects() {
	heading('The agent sends it again, with a WHERE');
	note('This time it is one row, and the risk is low.');
	await tool('db_execute',
		{ sql: "UPDATE customers SET status = 'paused' WHERE id = $1", params: ['1'], intent: INTENT });
	const screen = await operator('airlock pending');
	return /chg_[0-9a-f]{10}@[0-9a-f]{64}/.exec(screen)[0];
}

async function evades(token) {
	heading('An agent that will not wait');
	note('It tries to commit by itself, as a statement and hidden behind another.');
	await tool('db_execute', { sql: 'COMMIT' });
	await tool('db_query', { sql: 'SELECT 1; COMMIT' });
	note(`It has a shell too, runs as the operator's own user, and has somehow learnt the token. It
		runs the operator's command; then another on a wide terminal of its own making.`);
	await agentShell(`airlock commit ${token}`);
	await agentShell("script -qec 'stty cols 500; airlock pending' /dev/null");
	note('Nothing has happened.');
	await psql();
}

async function commits(token) {
	heading('The operator says yes');
	note(`The agent's own command line, now on the operator's terminal. The token names the digest of what was
		shown: this is committed, or nothing.`);
	await operator(`airlock commit ${token}`);
	await tool('db_status', { change_id: token.split('@')[0] });
	await psql();
}

async function looksBack() {
	heading('What is on record');
	note(`Each record was on disk before anything depended on it, and carries the hash of the one
		before.`);
	await operator('airlock log');
	await operator('airlock log --verify');
}

try {
	await declines(await forgets());
	const token = await corrects();
	await evades(token);
	await commits(token);
	await looksBack();
} finally {
	await players.dismiss();
}
console.error(`\ndemo: ${((Date.now() - began) / 1000).toFixed(1)} s`);
