// What `npm start` and `npm test` need before anything else: dependencies and a build. Both are skipped when they are
// current, so that a second start needs no network and no time.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));
const modules = join(root, "node_modules");
const lockFile = join(root, "package-lock.json");
const installStamp = join(modules, ".plenum-install");
const buildStamp = join(modules, ".plenum-build");
const entry = join(root, "packages/cli/dist/main.js");

/** Installs and builds what is not current. Ends the process when it can't. */
export async function prepare() {
  if (!isInstalled()) await install();
  const sources = fingerprintOfSources();
  if (!existsSync(entry) || readStamp(buildStamp) !== sources) await build(sources);
}

function isInstalled() {
  if (!existsSync(modules)) return false;
  const wanted = fingerprintOfLock();
  const stamp = readStamp(installStamp);
  if (stamp !== undefined) return stamp === wanted;
  // Installed by hand: npm leaves its own note, which is newer than the lock file when it followed it.
  const note = join(modules, ".package-lock.json");
  if (!existsSync(note) || statSync(note).mtimeMs < statSync(lockFile).mtimeMs) return false;
  writeFileSync(installStamp, wanted);
  return true;
}

async function install() {
  console.error("Installing the dependencies, once …");
  const flags = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
  const code = await run("npm", flags, { shell: process.platform === "win32" });
  if (code !== 0) fail("The dependencies could not be installed; the lines above tell why. Is the network there?");
  writeFileSync(installStamp, fingerprintOfLock());
}

async function build(sources) {
  console.error("Building …");
  const compiler = join(modules, "typescript/bin/tsc");
  const code = await run(process.execPath, [compiler, "-b", join(root, "packages/cli")]);
  if (code !== 0) fail("The sources could not be built; the lines above tell why.");
  writeFileSync(buildStamp, sources);
}

/** The lock file, and the kind of machine: its packages hold machine code. */
function fingerprintOfLock() {
  const platform = `${process.platform} ${process.arch}`;
  return hash([platform, readFileSync(lockFile, "utf8")]);
}

/** Names, times and sizes of everything that the build reads. */
function fingerprintOfSources() {
  const packages = join(root, "packages");
  const files = [join(root, "tsconfig.base.json")];
  for (const name of readdirSync(packages)) {
    files.push(join(packages, name, "package.json"), join(packages, name, "tsconfig.json"));
    const sources = join(packages, name, "src");
    if (!existsSync(sources)) continue;
    for (const found of readdirSync(sources, { recursive: true, withFileTypes: true })) {
      if (found.isFile() && !/\.test\.ts$/.test(found.name))
        files.push(join(found.parentPath ?? found.path, found.name));
    }
  }
  const facts = files
    .filter((file) => existsSync(file))
    .sort()
    .map((file) => {
      const { mtimeMs, size } = statSync(file);
      return `${file} ${mtimeMs} ${size}`;
    });
  return hash(facts);
}

function hash(texts) {
  const sum = createHash("sha256");
  for (const text of texts) sum.update(text).update("\n");
  return sum.digest("hex");
}

function readStamp(path) {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

/** Runs a command with this process's terminal; resolves to its exit code. A Ctrl-C reaches it by the terminal. */
export function run(command, argv, options = {}) {
  const ignore = () => {};
  process.on("SIGINT", ignore);
  return new Promise((resolve) => {
    const child = spawn(command, argv, { cwd: root, stdio: "inherit", ...options });
    const terminate = () => child.kill("SIGTERM");
    process.on("SIGTERM", terminate);
    const end = (code) => {
      process.off("SIGINT", ignore);
      process.off("SIGTERM", terminate);
      resolve(code);
    };
    child.on("error", (error) => {
      console.error(`${command}: ${error.message}`);
      end(1);
    });
    child.on("exit", (code, signal) => end(code ?? (signal === "SIGINT" ? 130 : 143)));
  });
}

/** Says one sentence and ends. */
function fail(sentence) {
  console.error(`plenum: ${sentence}`);
  process.exit(1);
}
