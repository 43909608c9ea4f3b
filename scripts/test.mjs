// npm test: installs and builds what is not current, sees to the starter model, then runs the unit and end-to-end tests.
// Further words go to vitest; --only names one project (unit, e2e, clients, peers):
//   npm test -- packages/client
//   npm test -- --only clients
import "./lib/check-node.mjs";

const { prepare, root, run } = await import("./lib/prepare.mjs");
await prepare();

const words = process.argv.slice(2);
const only = words.indexOf("--only");
const projects = only === -1 ? ["unit", "e2e"] : words.splice(only, 2).slice(1);

const { starterModelForTests } = await import("./lib/starter-model.mjs");
const model = await starterModelForTests();
// Tests that need the model skip themselves when it can't be had.
const env = { ...process.env, ...(model === undefined ? {} : { PLENUM_TEST_STARTER_MODEL: model }) };
const vitest = `${root}/node_modules/vitest/vitest.mjs`;
const flags = projects.flatMap((project) => ["--project", project]);
process.exitCode = await run(process.execPath, [vitest, "run", ...flags, ...words], { env });
