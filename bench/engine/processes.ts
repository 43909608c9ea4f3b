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

/** Resident bytes of these processes together. */
export function residentBytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const status = read(`/proc/${pid}/status`);
    return sum + Number(/^VmRSS:\s+(\d+) kB/m.exec(status ?? "")?.[1] ?? 0) * 1024;
  }, 0);
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
