/** What the measurement needs and the product does not: built and installed once, into `.cache/bench`. */
import { execFile } from "node:child_process";
import { access, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Builds the load harness. @returns the folder of its programs @throws Error without Go */
export async function buildHarness(root: string): Promise<string> {
  const folder = join(root, ".cache/bench/bin");
  await mkdir(folder, { recursive: true });
  try {
    await run("go", ["build", "-o", `${folder}/`, "./cmd/..."], { cwd: join(root, "bench/harness") });
  } catch (error) {
    throw new Error("The load harness could not be built; it needs Go 1.22 or newer on the PATH.", { cause: error });
  }
  return folder;
}

/** With a newer @hono/node-server, this gateway answers every stream with status 500. */
const gateway = {
  private: true,
  dependencies: { "@portkey-ai/gateway": "1.15.2" },
  overrides: { "@hono/node-server": "1.3.3" },
};

/** Installs the gateway that the service is compared with. @returns its folder */
export async function installPortkey(root: string): Promise<string> {
  const folder = join(root, ".cache/bench/portkey");
  await mkdir(folder, { recursive: true });
  if (await isThere(join(folder, "node_modules/@portkey-ai/gateway"))) return folder;
  await writeFile(join(folder, "package.json"), JSON.stringify(gateway));
  await run("npm", ["install", "--no-audit", "--no-fund"], { cwd: folder });
  return folder;
}

export async function hasProgram(name: string): Promise<boolean> {
  try {
    await run(name, ["-v"]);
    return true;
  } catch {
    return false;
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}
