import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { waitFor } from "./service.ts";

/**
 * Services in two network namespaces with a cable between them. The first namespace belongs to a user namespace in which
 * this process is root, so that no right is needed outside.
 */
class Networks {
  readonly #processes: ChildProcess[] = [];
  readonly first: number;
  readonly second: number;

  private constructor(first: number, second: number, processes: readonly ChildProcess[]) {
    this.first = first;
    this.second = second;
    this.#processes.push(...processes);
  }

  /** @throws Error with why this machine does not allow it */
  static async open(): Promise<Networks> {
    const first = await hold(["unshare", "--user", "--map-root-user", "--net"]);
    const processes = [first.process];
    try {
      const second = await hold([...enter(first.pid), "unshare", "--net"]);
      processes.push(second.process);
      const networks = new Networks(first.pid, second.pid, processes);
      networks.run(first.pid, "ip", "link", "add", "cable0", "type", "veth", "peer", "name", "cable1");
      networks.run(first.pid, "ip", "link", "set", "cable1", "netns", String(second.pid));
      for (const [place, cable, address] of [
        [first.pid, "cable0", "10.77.0.1/24"],
        [second.pid, "cable1", "10.77.0.2/24"],
      ] as const) {
        networks.run(place, "ip", "link", "set", "lo", "up");
        networks.run(place, "ip", "addr", "add", address, "dev", cable);
        networks.run(place, "ip", "link", "set", cable, "up");
      }
      return networks;
    } catch (error) {
      for (const process of processes) process.kill("SIGKILL");
      throw error;
    }
  }

  run(place: number, command: string, ...args: readonly string[]): void {
    const [program = "", ...others] = [...enter(place), command, ...args];
    const { status, stderr, error } = spawnSync(program, others, { encoding: "utf8" });
    if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${error?.message ?? stderr.trim()}`);
  }

  close(): void {
    for (const process of this.#processes) process.kill("SIGKILL");
  }
}

function enter(pid: number): readonly string[] {
  return ["nsenter", "--target", String(pid), "--user", "--net", "--preserve-credentials"];
}

/** Keeps a namespace alive by a process in it. */
async function hold(command: readonly string[]): Promise<{ readonly process: ChildProcess; readonly pid: number }> {
  const [program = "", ...args] = command;
  const held = spawn(program, [...args, "sh", "-c", "echo $$; exec sleep 600"], { stdio: ["ignore", "pipe", "pipe"] });
  return await new Promise((resolve, reject) => {
    let said = "";
    held.stderr.on("data", (data) => {
      said += data;
    });
    held.stdout.once("data", (data) => resolve({ process: held, pid: Number(String(data)) }));
    held.once("error", reject);
    held.once("exit", () => reject(new Error(said.trim() || "the namespace could not be made")));
  });
}

interface Nearby {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly state: string;
}

/** A service in a namespace. */
class Networked {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #number = 0;
  output = "";

  constructor(place: number, name: string, model: string, home: string) {
    const script = fileURLToPath(new URL("processes/networked.ts", import.meta.url));
    const node = [process.execPath, "--conditions=@plenum/source", "--import", "tsx", script];
    const [program = "", ...args] = [...enter(place), ...node];
    this.#process = spawn(program, args, {
      env: { ...process.env, PLENUM_TEST_NAME: name, PLENUM_TEST_HOME: home, PLENUM_TEST_MODEL: model },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on("data", (data) => {
        this.output += data;
      });
    }
    this.#process.on("message", ({ number, value, error }: { number: number; value?: unknown; error?: string }) => {
      const waiting = this.#waiting.get(number);
      this.#waiting.delete(number);
      if (error === undefined) waiting?.resolve(value);
      else waiting?.reject(new Error(error));
    });
    this.#process.once("exit", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`the service ended: ${this.output}`));
    });
  }

  /** Resolves when it listens. */
  readonly started = (): Promise<unknown> =>
    new Promise((resolve, reject) => this.#waiting.set(0, { resolve, reject }));

  async call<Value>(call: string, argument = ""): Promise<Value> {
    this.#number += 1;
    const number = this.#number;
    const answer = new Promise<unknown>((resolve, reject) => this.#waiting.set(number, { resolve, reject }));
    this.#process.send({ call, argument, number });
    return (await answer) as Value;
  }

  /** Its neighbour with this id, once it is in this state. */
  async neighbour(id: string, state: string, isSo: (nearby: Nearby) => boolean = () => true): Promise<Nearby> {
    const before = performance.now();
    for (;;) {
      const found = (await this.call<readonly Nearby[]>("nearby")).find((each) => each.id === id);
      if (found?.state === state && isSo(found)) return found;
      if (performance.now() - before > 60_000)
        throw new Error(`not ${state}: ${JSON.stringify(found)}\n${this.output}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }
}

let networks: Networks | undefined;
let skipReason: string | undefined;
try {
  networks = await Networks.open();
} catch (error) {
  skipReason = error instanceof Error ? error.message : String(error);
  console.error(`!!! TESTS OF THE LOCAL NETWORK ARE SKIPPED: no network namespaces here: ${skipReason}`);
}

const home = mkdtemp(join(tmpdir(), "plenum-network-"));
const services: Networked[] = [];
let studio: Networked;
let laptop: Networked;
let studioId = "";
let laptopId = "";

async function start(place: number, name: string, model: string, folder: string): Promise<Networked> {
  const service = new Networked(place, name, model, join(await home, folder));
  services.push(service);
  await service.started();
  return service;
}

beforeAll(async () => {
  if (networks === undefined) return;
  [studio, laptop] = await Promise.all([
    start(networks.first, "studio", "x", "a"),
    start(networks.second, "laptop", "y", "b"),
  ]);
  [studioId, laptopId] = [await studio.call<string>("id"), await laptop.call<string>("id")];
});

afterAll(async () => {
  for (const service of services) service.kill();
  networks?.close();
  await rm(await home, { recursive: true, force: true });
});

const measured = (what: string, sinceMs: number): void =>
  void process.stdout.write(`measured: ${what}: ${Math.round(performance.now() - sinceMs)} ms\n`);

it.skipIf(networks === undefined)("two services in two networks' ends find each other", async () => {
  const before = performance.now();
  const [seenLaptop, seenStudio] = await Promise.all([
    studio.neighbour(laptopId, "seen"),
    laptop.neighbour(studioId, "seen"),
  ]);
  measured("both were seen after they listened", before);
  expect(seenLaptop).toMatchObject({ name: "laptop", auth: "none", version: "1.0" });
  expect(seenLaptop.url).toMatch(/^http:\/\/10\.77\.0\.2:\d+$/);
  expect(seenStudio.url).toMatch(/^http:\/\/10\.77\.0\.1:\d+$/);
  const found = await studio.call<readonly { readonly id: string }[]>("discover");
  expect(found.map(({ id }) => id).sort()).toEqual([studioId, laptopId].sort());
});

it.skipIf(networks === undefined)("and serve each other's models once a person has approved it", async () => {
  expect(await studio.call("models")).toEqual(["x"]);
  expect(await studio.call("approve", laptopId)).toMatchObject({ id: "laptop", kind: "lmsp", source: "approved" });
  expect(await laptop.call("approve", studioId)).toMatchObject({ id: "studio", state: "healthy" });
  await studio.neighbour(laptopId, "approved");
  await waitFor(async () => ((await studio.call<readonly string[]>("models")).length === 2 ? true : undefined), 40_000);
  await waitFor(async () => ((await laptop.call<readonly string[]>("models")).length === 2 ? true : undefined), 40_000);
  expect(await studio.call("ask", "y")).toBe("laptop answers");
  expect(await laptop.call("ask", "x")).toBe("studio answers");
  expect(await studio.call("models")).toEqual(["x", "y"]);
});

it.skipIf(networks === undefined)("a third one under a name that is taken gets another, and says goodbye", async () => {
  const third = await start(networks?.second ?? 0, "studio", "z", "c");
  const thirdId = await third.call<string>("id");
  const seen = await studio.neighbour(thirdId, "seen");
  expect(seen.name).toBe("studio");
  await waitFor(() => (third.output.includes("studio (2)") ? true : undefined), 20_000);
  await laptop.neighbour(thirdId, "seen");
  const before = performance.now();
  await third.call("close");
  await studio.neighbour(thirdId, "gone");
  measured("closing to gone at the neighbour", before);
});

it.skipIf(networks === undefined)("a changed address is announced again, and must be approved again", async () => {
  if (networks === undefined) return;
  const before = performance.now();
  networks.run(networks.second, "ip", "addr", "del", "10.77.0.2/24", "dev", "cable1");
  networks.run(networks.second, "ip", "addr", "add", "10.77.0.3/24", "dev", "cable1");
  const moved = await studio.neighbour(laptopId, "seen", ({ url }) => url.includes("10.77.0.3"));
  measured("changed address to seen there", before);
  await studio.call("approve", laptopId);
  await waitFor(async () => ((await studio.call<readonly string[]>("models")).length === 2 ? true : undefined), 40_000);
  expect(await studio.call("ask", "y")).toBe("laptop answers");
  const runtimes = await studio.call<readonly { readonly id: string; readonly url: string }[]>("runtimes");
  expect(runtimes.filter(({ id }) => id === "laptop").map(({ url }) => url)).toEqual([moved.url]);
});
