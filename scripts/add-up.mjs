// Adds up vitest's JSON reports of a folder: one line "N passed, N failed", and exit code 1 when anything failed.
//   node scripts/add-up.mjs FOLDER       with NAME.json and NAME.exit for each part
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

const [folder = "."] = process.argv.slice(2);
const sum = { passed: 0, failed: 0, skipped: 0 };

for (const file of readdirSync(folder).filter((name) => name.endsWith(".exit"))) {
  const name = basename(file, ".exit");
  const hasFailed = readFileSync(join(folder, file), "utf8").trim() !== "0";
  const part = countsOf(join(folder, `${name}.json`));
  // A part that broke without a failed test, such as an install that did not go through, is one failure.
  if (hasFailed && part.failed === 0) part.failed = 1;
  console.log(`${name}: ${part.passed} passed, ${part.failed} failed, ${part.skipped} skipped`);
  for (const key of Object.keys(sum)) sum[key] += part[key];
}

console.log(`${sum.passed} passed, ${sum.failed} failed${sum.skipped > 0 ? `, ${sum.skipped} skipped` : ""}`);
process.exitCode = sum.failed > 0 || sum.passed === 0 ? 1 : 0;

function countsOf(path) {
  if (!existsSync(path)) return { passed: 0, failed: 0, skipped: 0 };
  const report = JSON.parse(readFileSync(path, "utf8"));
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}
