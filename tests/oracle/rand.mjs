// rand: numbers that look random and are the same for the same seed

// A generator for one case of a run; mulberry32 behind a hash of both numbers.
export class Rand {
	constructor(seed, index = 0) {
		this.state = (Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b)) >>> 0;
		for (let i = 0; i < 4; i++)
			this.next();
	}

	next() {
		this.state = (this.state + 0x6d2b79f5) >>> 0;
		let t = this.state;
		t = Math.imul(t ^ (t >>> 15), t | 1);
		t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
		return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
	}

	// A whole number from a to b, both included.
	int(a, b) {
		return a + Math.floor(this.next() * (b - a + 1));
	}

	chance(p) {
		return this.next() < p;
	}

	pick(list) {
		return list[this.int(0, list.length - 1)];
	}

	// One of [weight, value] pairs.
	weighted(pairs) {
		let at = this.next() * pairs.reduce((sum, [w]) => sum + w, 0);
		for (const [w, v] of pairs)
			if ((at -= w) < 0)
				return v;
		return pairs.at(-1)[1];
	}

	some(list, n) {
		const left = [...list], out = [];
		while (out.length < n && left.length > 0)
			out.push(...left.splice(this.int(0, left.length - 1), 1));
		return out;
	}
}
