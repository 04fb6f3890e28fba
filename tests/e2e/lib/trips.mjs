// trips: how often a call waits for the server, counted between the two
import { ask } from './wait.mjs';

// What cleans a link goes when the answer has gone.
const cleans = m => m.type === 'P' && ['ROLLBACK', 'SET SESSION AUTHORIZATION DEFAULT'].includes(m.body.toString().split('\0')[1]);

// Counts the turns of every connection of the proxy, from now on: those in which
// the client has had all its answers before it asks again.
export class Trips {
	constructor(proxy) {
		this.proxy = proxy;
		this.links = new Map(); // link: Syncs that wait for an answer, ...
		this.bound = []; // names of prepared statements
		proxy.on = m => this.#see(m);
	}

	#see({ link, from, type, ...m }) {
		const l = this.links.get(link) ?? { waiting: 0, asking: false, ready: false };
		this.links.set(link, l);
		l.ready = from === 'server' && type === 'Z';
		if (l.ready)
			l.waiting = Math.max(0, l.waiting - 1);
		if (from === 'server')
			return;
		if (type === 'B' && this.counted)
			this.bound.push(m.body.toString().split('\0')[1]);
		if (l.waiting === 0 && !l.asking && this.counted?.has(link) && !cleans({ type, ...m }))
			this.n++;
		l.asking = type !== 'S' && type !== 'Q';
		if (!l.asking)
			l.waiting++;
	}

	// What call() gives, and how many round trips went by meanwhile; those of
	// links that are only being made do not count.
	async of(call) {
		await ask(() => {
			const links = [...this.proxy.connections];
			this.counted = new Set(links);
			return links.length > 1 && links.every(l => this.links.get(l)?.ready && this.links.get(l).waiting === 0);
		}, 'all links to be idle');
		this.n = 0;
		this.bound = [];
		const answer = await call();
		this.counted = undefined;
		return { answer, trips: this.n, bound: this.bound };
	}
}
