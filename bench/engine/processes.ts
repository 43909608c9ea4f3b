import { readdirSync, readFileSync } from "node:fs";

/** One process of this machine, from Linux' /proc. */
interface ProcessFacts {
  readonly pid: number;
  readonly parent: number;
  /** Milliseconds of processor time. */
  readonly cpuMs: number;
}

/** Linux counts processor time in hundredths of a second. */
const msPerTick = 10;

/** A process and all below it. */
export function treeOf(root: number): number[] {
  const all = readProcesses();
  const found = [root];
  for (const pid of found) for (const other of all) if (other.parent === pid) found.push(other.pid);
  return found;
}

/** Resident bytes of some processes. */
export interface ResidentBytes {
  /** Sum over the processes, as `ps` and `top` show them: a page of a file that two of them map counts twice. */
  readonly sum: number;
  /** The same with each mapped file once, as much of it as one of the processes has. */
  readonly sharedOnce: number;
  /** Pages of no file. */
  readonly anonymous: number;
}

export function residentBytes(pids: readonly number[]): ResidentBytes {
  const files = new Map<string, number>();
  let anonymous = 0;
  let fileBytes = 0;
  for (const pid of pids) {
    for (const [file, bytes] of mappedFiles(pid)) {
      fileBytes += bytes;
      files.set(file, Math.max(bytes, files.get(file) ?? 0));
    }
    anonymous += statusBytes(pid, "RssAnon");
  }
  const sum = pids.reduce((total, pid) => total + statusBytes(pid, "VmRSS"), 0);
  const once = [...files.values()].reduce((total, bytes) => total + bytes, 0);
  return { sum, sharedOnce: sum - fileBytes + once, anonymous };
}

function statusBytes(pid: number, field: string): number {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(read(`/proc/${pid}/status`) ?? "")?.[1];
  return Number(found ?? 0) * 1024;
}

/** Resident bytes of each mapped file that are the file's own, not changed copies. */
function mappedFiles(pid: number): Map<string, number> {
  const found = new Map<string, number>();
  let file: string | undefined;
  let bytes = 0;
  for (const line of (read(`/proc/${pid}/smaps`) ?? "").split("\n")) {
    const mapping = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)$/.exec(line);
    if (mapping !== null) file = mapping[1]?.startsWith("/") ? mapping[1] : undefined;
    const [, field, kB] = /^(Rss|Anonymous): +(\d+) kB/.exec(line) ?? [];
    if (field === "Rss") bytes = Number(kB) * 1024;
    if (field === "Anonymous" && file !== undefined) {
      found.set(file, (found.get(file) ?? 0) + bytes - Number(kB) * 1024);
    }
  }
  return found;
}

/** Processor time so far, in milliseconds. */
export interface CpuReading {
  readonly atMs: number;
  readonly machineMs: number;
  readonly oursMs: number;
}

/** @param roots processes that count, with all below them, as ours */
export function readCpu(roots: readonly number[]): CpuReading {
  const ours = new Set(roots.flatMap(treeOf));
  const oursMs = readProcesses().reduce((sum, { pid, cpuMs }) => (ours.has(pid) ? sum + cpuMs : sum), 0);
  const [, user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0, stolen = 0] =
    read("/proc/stat")?.split("\n", 1)[0]?.split(/ +/).map(Number) ?? [];
  const ticks = user + nice + system + interrupts + softInterrupts + stolen;
  return { atMs: performance.now(), machineMs: ticks * msPerTick, oursMs };
}

/** Cores that others took between two readings: 1 is one whole core. */
export function coresOfOthers(from: CpuReading, to: CpuReading): number {
  const others = to.machineMs - from.machineMs - (to.oursMs - from.oursMs);
  return Math.max(0, others / (to.atMs - from.atMs));
}

function readProcesses(): ProcessFacts[] {
  return readdirSync("/proc").flatMap((name): ProcessFacts[] => {
    const pid = Number(name);
    const stat = Number.isInteger(pid) ? read(`/proc/${pid}/stat`) : undefined;
    if (stat === undefined) return [];
    // The name in parentheses may hold spaces; what follows it does not.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return [{ pid, parent: Number(fields[1]), cpuMs: (Number(fields[11]) + Number(fields[12])) * msPerTick }];
  });
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
