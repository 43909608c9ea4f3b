/**
 * `npm run bench -- PART [flags]`: speed, as ratios beside rivals in the same run. Parts: `service` (the default),
 * `engine`, `micro`, `nnrp`, `lmsp`; `report` writes docs/performance.md anew from `bench/results`.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const source = ["--conditions=@plenum/source", "--import", "tsx"];
const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const parts: Readonly<Record<string, readonly string[]>> = {
  service: [...source, at("service/main.ts")],
  engine: [...source, at("engine/main.ts")],
  micro: [...source, at("micro/main.ts")],
  nnrp: [...source, at("nnrp/main.ts")],
  lmsp: [...source, at("lmsp/main.ts")],
  report: [...source, at("report.ts")],
};

const [first = "service", ...rest] = process.argv.slice(2);
const part = parts[first];
if (part === undefined) {
  console.error(`There is no part '${first}'; choose ${Object.keys(parts).join(", ")}.`);
  process.exit(1);
}
const child = spawn(process.execPath, [...part, ...rest], { stdio: "inherit" });
child.on("exit", (code) => process.exit(code ?? 1));
