// world: a database, a daemon on it, an agent and an operator, for one test
import { Agent, RawAgent } from './agent.mjs';
import { cluster } from './cluster.mjs';
import { Daemon } from './daemon.mjs';
import { Operator } from './operator.mjs';

export { release } from './cluster.mjs';

// t: the test, whose end ends them all, daemon cleanly; setup: SQL as a
// superuser; from: a database to copy; role, args, config, state: for airlockd;
// config may be a function of the world; name: the agent's, where there are several.
export async function world(t, { setup = '', from, role, args, kind, name, url, config, state, ...more } = {}) {
	const w = { cluster: more.cluster ?? await cluster() };
	const agents = [];

	w.database = await w.cluster.database(setup, { from });
	w.daemon = await Daemon.start({ db: url?.(w) ?? w.cluster.url(w.database, role), args, state,
		config: typeof config === 'function' ? config(w) : config });
	t.after(async () => {
		for (const a of agents)
			await a.close().catch(() => {}); // a test may have ended it
		await w.daemon.stop();
	});
	w.operator = new Operator(w.daemon);
	w.sql = (text, options) => w.cluster.sql(w.database, text, options);
	w.connect = async options => {
		const a = await Agent.connect(w.daemon, { kind, ...options });
		agents.push(a);
		return a;
	};
	w.raw = options => {
		const a = RawAgent.open(w.daemon, options);
		agents.push(a);
		return a;
	};
	w.agent = await w.connect({ name });
	return w;
}

// What an answer amounts to, in one word: "rows", a status word, the code of
// a refusal, or the SQLSTATE of an error.
export function outcome(answer) {
	const refusal = /^(?:REFUSED|ERROR) ([A-Z0-9_]+):/.exec(answer.text);
	if (answer.error)
		return refusal ? refusal[1] : `unclear: ${answer.text}`;
	return answer.json?.rows ? 'rows' : answer.json?.status ?? `unclear: ${answer.text}`;
}
