import { access, constants, statfs } from "node:fs/promises";
import { availableParallelism, cpus, freemem, totalmem } from "node:os";
import { dirname } from "node:path";
import { type Check, sizeText } from "./check.ts";

/** Least version of Node, as package.json has it. */
const leastNode = [20, 19] as const;
/** Below it hardly any model loads. */
const littleMemoryBytes = 1e9;
/** Below these the next model, or even state of a few bytes, finds no room. */
const littleDiskBytes = 5e9;
const noDiskBytes = 2e8;

export function checkNode(version: string, node: string = process.versions.node): Check {
  const [major = 0, minor = 0] = node.split(".").map(Number);
  const isNew = major > leastNode[0] || (major === leastNode[0] && minor >= leastNode[1]);
  const detail = `Plenum ${version} on Node ${node}, ${process.platform} ${process.arch}`;
  const data = { plenum: version, node, platform: process.platform, arch: process.arch };
  if (isNew) return { id: "node", state: "ok", detail, data };
  const todo = [`install Node ${leastNode.join(".")} or newer from https://nodejs.org`];
  return { id: "node", state: "problem", detail: `${detail}: too old`, todo, data };
}

export function checkProcessor(): Check {
  const model = cpus()[0]?.model.trim() || "unknown processor";
  const cores = availableParallelism();
  const totalBytes = totalmem();
  const freeBytes = process.availableMemory?.() ?? freemem();
  const isLittle = freeBytes < littleMemoryBytes;
  return {
    id: "processor",
    state: isLittle ? "note" : "ok",
    detail: `Processor: ${model}, cores: ${cores}; memory: ${sizeText(freeBytes)} free of ${sizeText(totalBytes)}`,
    ...(isLittle && { todo: ["end programs that take memory before a model is loaded"] }),
    data: { model, cores, memory_bytes: totalBytes, free_memory_bytes: freeBytes },
  };
}

/** Room where the state is kept, or will be. */
export async function checkDisk(home: string): Promise<Check> {
  const folder = await nearestFolder(home);
  const { bavail, bsize } = await statfs(folder);
  const freeBytes = bavail * bsize;
  const data = { home, free_bytes: freeBytes };
  const isWritable = await access(folder, constants.W_OK).then(
    () => true,
    () => false,
  );
  const detail = `State: ${home}, ${sizeText(freeBytes)} free`;
  if (!isWritable) {
    const todo = [`plenum serve --home FOLDER   (a folder that this user may write; ${folder} is not)`];
    return { id: "disk", state: "problem", detail: `${detail}, but ${folder} may not be written`, todo, data };
  }
  if (freeBytes >= littleDiskBytes) return { id: "disk", state: "ok", detail, data };
  const state = freeBytes < noDiskBytes ? "problem" : "note";
  return { id: "disk", state, detail, todo: ["make room, or use another disk: plenum serve --home FOLDER"], data };
}

async function nearestFolder(path: string): Promise<string> {
  const isThere = await access(path).then(
    () => true,
    () => false,
  );
  return isThere || dirname(path) === path ? path : nearestFolder(dirname(path));
}
