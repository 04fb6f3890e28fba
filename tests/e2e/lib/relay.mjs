// relay: standard input and output to a unix socket, as the user who runs it
import { connect } from 'node:net';

const socket = connect(process.argv[2]);
socket.on('error', e => {
	console.error(e.message);
	process.exitCode = 1;
});
socket.on('close', () => process.exit());
process.stdin.pipe(socket).pipe(process.stdout);
