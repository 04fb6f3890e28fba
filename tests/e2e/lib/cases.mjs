// cases: the inputs that broke other products, from tests/cases
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tests } from './place.mjs';

const read = name => readFileSync(join(tests, 'cases', name), 'utf8');

// Every line of a file of cases.
export const load = name => read(`${name}.jsonl`).trim().split('\n').map(l => JSON.parse(l));

export const fixture = read('fixture.sql');

// What each id stands for: for red the outcome by each tool, "db_query
// db_execute"; for the others the file that tests it, or { later: why }.
export const coverage = JSON.parse(read('coverage.json'));

export const here = (area, file) => Object.entries(coverage[area])
	.filter(([, where]) => where === file).map(([id]) => id);

// Where the map does not fit what it maps.
export function mapFaults() {
	const faults = [];
	for (const area of Object.keys(coverage)) {
		const ids = load(area).map(c => c.id);
		for (const id of ids)
			if (!(id in coverage[area]))
				faults.push(`${id} is not in coverage.json`);
		for (const [id, where] of Object.entries(coverage[area])) {
			if (!ids.includes(id))
				faults.push(`${id} is in coverage.json only`);
			if (typeof where === 'object' ? !where.later
				: area !== 'red' && !existsSync(join(tests, 'e2e', where)))
				faults.push(`${id} leads nowhere: ${JSON.stringify(where)}`);
		}
	}
	return faults;
}
