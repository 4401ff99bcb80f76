#!/usr/bin/env node
// Starts the coder of this system, which npm installed as an optional package.
'use strict';
const { spawn } = require('child_process');

let program;
try {
	program = require.resolve(`coder-agent-${process.platform}-${process.arch}/bin/coder`);
} catch {
	console.error(`coder: there is no package for ${process.platform} ${process.arch}, or npm was told to leave out optional packages`);
	process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
// The terminal sends its signals to both; the program decides what they mean.
for (const name of ['SIGINT', 'SIGQUIT']) process.on(name, () => {});
for (const name of ['SIGTERM', 'SIGHUP']) process.on(name, () => child.kill(name));
child.on('error', (err) => {
	console.error(`coder: ${err.message}`);
	process.exit(1);
});
child.on('exit', (code, signal) => {
	if (signal) {
		process.removeAllListeners(signal);
		process.kill(process.pid, signal);
	} else {
		process.exit(code);
	}
});
