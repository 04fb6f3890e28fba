// zhost: hostile cases (not kept)
import { Rig } from './rig.mjs';
import { asCase } from './named.mjs';
import { pathToFileURL } from 'node:url';
const { cases, settings } = await import(pathToFileURL(process.argv[2]));
const only = process.argv[3];
const rig = await Rig.start({ settings });
for (const [name, c] of Object.entries(cases)) {
	if (only && !name.includes(only)) continue;
	try {
		const x = await rig.run(asCase({ rollback: false, ...c }));
		const h = x.shown?.head;
		console.log(`${x.faults.length ? 'FAULT' : 'ok   '} ${name}: ${JSON.stringify(x.tally)} ${h ? JSON.stringify(h.reasons.filter(r => /INCOMPL|HIDDEN|DEFER|OUTSIDE|TRIGGERS/.test(r.code)).map(r => r.code + ': ' + r.text)) : ''}`);
		if (x.faults.length || only) console.log('   ', x.faults.join('\n    '));
		if (only) console.log(JSON.stringify(x.shown, null, 1), rig.daemon.log.text().slice(-3000));
	} catch (e) {
		console.log(`EXC   ${name}: ${e.stack.slice(0, 700)}`);
	}
	if (!rig.daemon.running) { console.log('DAEMON DEAD', rig.daemon.log.text().slice(-3000)); break; }
}
await rig.stop();
