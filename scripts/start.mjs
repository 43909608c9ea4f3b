// npm start: installs and builds what is not current, then runs `plenum serve` in this process, so that signals, exit
// code and terminal are its own.
//   npm start -- --port 8080
import "./lib/check-node.mjs";

const { prepare } = await import("./lib/prepare.mjs");
await prepare();
process.argv = [process.argv[0], "plenum", "serve", ...process.argv.slice(2)];
await import("../packages/cli/bin/plenum.mjs");
