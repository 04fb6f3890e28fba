// trips: how often a call waits for the server, counted between the two
import { ask } from './wait.mjs';

const rollsBack = m => m.type === 'P' && m.body.toString().split('\0')[1] === 'ROLLBACK';

// Counts turns of every connection of the proxy, from now on.
export class Trips {
	constructor(proxy) {
		this.proxy = proxy;
		this.links = new Map(); // link: whose turn it is, and whether it is ready
		proxy.on = m => this.#see(m);
	}

	#see({ link, from, type, ...m }) {
		const l = this.links.get(link) ?? { turn: 'server', ready: false };
		// A read's ROLLBACK goes when its answer has gone.
		if (from === 'client' && l.turn === 'server' && this.counted?.has(link) && !rollsBack({ type, ...m }))
			this.n++;
		this.links.set(link, { turn: from, ready: from === 'server' && type === 'Z' });
	}

	// What call() gives, and how many round trips went by meanwhile; those of
	// links that are only being made do not count.
	async of(call) {
		await ask(() => {
			const links = [...this.proxy.connections];
			this.counted = new Set(links);
			return links.length > 1 && links.every(l => this.links.get(l)?.ready);
		}, 'all links to be idle');
		this.n = 0;
		const answer = await call();
		this.counted = undefined;
		return { answer, trips: this.n };
	}
}
