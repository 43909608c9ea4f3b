import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { storages } from "./testing/fixtures.ts";

const { file: freshFile, open } = storages();
const running = new Set<ChildProcess>();
afterAll(() => {
  for (const child of running) child.kill("SIGKILL");
});

function startWriter(file: string, prefix: string): { readonly child: ChildProcess; readonly lines: Interface } {
  const loader = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  const program = fileURLToPath(new URL("./testing/writer-process.ts", import.meta.url));
  const child = spawn(process.execPath, ["--conditions=@plenum/source", "--import", loader, program, file, prefix], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  return { child, lines: createInterface({ input: child.stdout }) };
}

/** Lines of a writer that is killed when it has said so many. */
async function killAfter(file: string, prefix: string, count: number): Promise<string[]> {
  const { child, lines } = startWriter(file, prefix);
  const said: string[] = [];
  for await (const line of lines) {
    said.push(line);
    if (said.length === count) child.kill("SIGKILL");
  }
  return said;
}

/** In a process of its own, which then lets go of the file. */
function integrityOf(file: string): string {
  const program = `
    const { DatabaseSync } = process.getBuiltinModule?.("node:sqlite") ?? require("@photostructure/sqlite");
    const row = new DatabaseSync(process.argv[1]).prepare("PRAGMA integrity_check").get();
    process.stdout.write(String(Object.values(row)[0]));`;
  const cwd = fileURLToPath(new URL(".", import.meta.url));
  return execFileSync(process.execPath, ["--no-warnings", "-e", program, file], { cwd, encoding: "utf8" });
}

it("keeps every promise over kill -9 at random moments", { timeout: 600_000 }, async () => {
  const file = await freshFile();
  const promised: string[] = [];
  for (let round = 0; round < 10; round += 1) {
    const said = await killAfter(file, `r${round}`, 1 + Math.floor(Math.random() * 300));
    promised.push(...said);
    expect(integrityOf(file)).toBe("ok");
  }
  expect(promised.length).toBeGreaterThan(100);
  const { tasks, responses, log } = await open({ file });
  let streamed = 0;
  for (const line of promised) {
    const [kind, id = "", number = ""] = line.split(" ");
    if (kind === "task") expect(await tasks.get(`task_${id}`), line).toBeDefined();
    if (kind === "progress")
      expect((await tasks.events(`task_${id}`, 0)).length, line).toBeGreaterThanOrEqual(Number(number));
    if (kind === "line") expect(await tasks.finishedLines(`task_${id}`), line).toContain(Number(number));
    if (kind === "response") expect((await responses.get(`resp_${id}`))?.request.background, line).toBe(true);
    if (kind === "ended") expect((await responses.get(`resp_${id}`))?.response.status, line).toBe("completed");
    if (kind === "event") {
      expect(await log.recall(`resp_${id}`), line).toBe(true);
      expect(log.extent(`resp_${id}`)?.last, line).toBeGreaterThanOrEqual(Number(number));
    }
    if (kind === "stream") streamed += 1;
    expect(kind).not.toBe("refused");
  }
  process.stdout.write(`measured: ${promised.length} promises over 10 kills kept, ${streamed} marks of streams\n`);
});

/** A file system of 6 MiB. Undefined: this user may not mount one. */
async function smallDisk(): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "plenum-disk-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=6m", "tmpfs", folder], { stdio: "ignore" });
  } catch {
    await rm(folder, { recursive: true });
    return undefined;
  }
  onTestFinished(async () => {
    execFileSync("umount", [folder]);
    await rm(folder, { recursive: true });
  });
  return folder;
}

it("a full disk refuses what is new, streams go on, and all is well when there is room again", {
  timeout: 120_000,
}, async (test) => {
  const folder = await smallDisk();
  if (folder === undefined) return test.skip("needs the right to mount a tmpfs");
  const { child, lines } = startWriter(join(folder, "plenum.db"), "full");
  const seen = { refused: 0, streamed: 0, recovered: 0 };
  const filler = join(folder, "filler");
  const promised: string[] = [];
  for await (const line of lines) {
    if (line.startsWith("task full_0_2")) fill(filler);
    if (line.startsWith("refused")) {
      expect(line).toContain("can't be written");
      seen.refused += 1;
    }
    if (line.startsWith("stream") && seen.refused > 0) {
      seen.streamed += 1;
      rmSync(filler, { force: true });
    }
    if (line === "fault none") seen.recovered += 1;
    if (line.startsWith("ended")) promised.push(line.split(" ")[1] ?? "");
    if (seen.recovered > 0 && line.startsWith("ended")) child.kill("SIGKILL");
  }
  expect(seen.refused).toBeGreaterThan(0);
  expect(seen.streamed).toBeGreaterThan(0);
  const storage = await open({ file: join(folder, "plenum.db") });
  for (const id of promised) expect((await storage.responses.get(`resp_${id}`))?.response.status).toBe("completed");
  await storage.close();
});

/** Takes every byte that is left. */
function fill(file: string): void {
  for (const size of [65_536, 4096]) {
    try {
      for (;;) writeFileSync(file, Buffer.alloc(size), { flag: "a" });
    } catch {
      // It is full for pieces of this size.
    }
  }
}
