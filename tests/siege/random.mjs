// random: choices that a seed repeats

// mulberry32: small, and the same on every machine.
export class Random {
	constructor(seed) {
		this.state = seed >>> 0;
	}

	real() {
		this.state = (this.state + 0x6d2b79f5) >>> 0;
		let t = this.state;
		t = Math.imul(t ^ (t >>> 15), t | 1);
		t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
		return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
	}

	// 0 to n - 1.
	below(n) {
		return Math.floor(this.real() * n);
	}

	between(from, to) {
		return from + this.below(to - from + 1);
	}

	chance(p) {
		return this.real() < p;
	}

	pick(list) {
		return list[this.below(list.length)];
	}

	// n of them, in their order.
	some(list, n) {
		const at = new Set();
		while (at.size < Math.min(n, list.length))
			at.add(this.below(list.length));
		return list.filter((_, i) => at.has(i));
	}
}

// The seed of a run, and how much of it: SIEGE_SEED, SIEGE_VARIANTS, READS.
export const seed = Number(process.env.SIEGE_SEED ?? 20260728);
export const amount = (name, usual) => Number(process.env[name] ?? usual);
