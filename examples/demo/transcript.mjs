// transcript: what was said to a program and what it answered, to be read

const WIDTH = 100;

// Text in lines of at most WIDTH, broken where it may be: first begins the
// first line, rest those after it.
function fold(text, { first = '', rest = '', breaks = /[ ]/ } = {}) {
	const lines = [];
	let lead = first;
	while (lead.length + text.length > WIDTH) {
		let at = WIDTH - lead.length;
		while (at > 1 && !breaks.test(text[at - 1]))
			at--;
		if (at === 1)
			at = WIDTH - lead.length; // one long word
		lines.push(lead + text.slice(0, at).trimEnd());
		text = text.slice(at);
		lead = rest;
	}
	return [...lines, lead + text].join('\n');
}

const write = text => process.stdout.write(text + '\n');

export function title(text) {
	write(`# ${text}\n# ${'='.repeat(text.length)}`);
}

export function heading(text) {
	write(`\n\n# ${text}\n# ${'-'.repeat(text.length)}`);
}

// A paragraph of ours, between the programs' words.
export function note(text) {
	write('\n' + fold(text.replace(/\s+/g, ' ').trim(), { first: '# ', rest: '# ' }));
}

// What is asked of a tool.
export function call(tool, args) {
	write('\n' + fold(`${tool} ${JSON.stringify(args)}`,
		{ first: 'agent> ', rest: '    ', breaks: /[ ,]/ }));
}

// What is typed into a shell: the operator's, the agent's or anybody's.
export function command(who, words) {
	const line = `${who}$ ${words}`;
	write('\n' + (line.length <= WIDTH ? line : line.replace(/ (?=\S+$)/, ' \\\n    ')));
}

export function answer({ text, code = 0 }) {
	for (const line of text.replace(/\n+$/, '').split('\n'))
		write(fold(line.trimEnd(), { rest: '    ', breaks: /[ ,]/ }));
	if (code !== 0)
		write(`(exit status ${code})`);
}
