// npm start: installs and builds what is not current, then runs `plenum serve` in this process, so that signals, exit
// code and terminal are its own.
//   npm start -- --port 8080
import "./lib/check-node.mjs";

const { prepare } = await import("./lib/prepare.mjs");
await prepare();
if (process.env.npm_lifecycle_event === "start") stopWithNpm();
process.argv = [process.argv[0], "plenum", "serve", ...process.argv.slice(2)];
await import("../packages/cli/bin/plenum.mjs");

/** npm passes a SIGTERM on to its shell only, which dies without telling this process: then its parent is another one. */
function stopWithNpm() {
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    process.kill(process.pid, "SIGTERM");
  }, 250);
  watch.unref();
}
