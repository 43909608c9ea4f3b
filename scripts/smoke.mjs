// The shortest proof that everything works: `plenum run` starts a service of its own, and the starter model answers.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { root, run } from "./lib/prepare.mjs";
import { starterModelForTests } from "./lib/starter-model.mjs";

const model = await starterModelForTests();
if (model === undefined) process.exit(1);

const home = await mkdtemp(join(tmpdir(), "plenum-smoke-"));
const env = {
  ...process.env,
  PLENUM_HOME: home,
  PLENUM_MODELS: dirname(model),
  // No service of the user's answers there.
  PLENUM_URL: "http://127.0.0.1:1",
};
const argv = ["run", "smollm2:135m", "Say hello.", "--max-tokens", "16", "--temperature", "0", "--verbose"];
console.log(`node ${process.version}: plenum ${argv.join(" ")}`);
process.exitCode = await run(process.execPath, [join(root, "packages/cli/bin/plenum.mjs"), ...argv], { env });
await rm(home, { recursive: true, force: true });
