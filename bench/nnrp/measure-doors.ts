import { type Memory, Program } from "./asks.ts";
import { startCountingProxy } from "./counting-proxy.ts";
import type { StreamsAsked, StreamsRun } from "./load.ts";
import type { Figures } from "./table.ts";

/** How the load comes: over SSE, or over NNRP with so many streams on a connection. */
export const ways = {
  SSE: { way: "sse", streamsPerConnection: 1 },
  "NNRP, TCP": { way: "tcp", streamsPerConnection: 1 },
  "NNRP, TCP, 32 streams a connection": { way: "tcp", streamsPerConnection: 32 },
  "NNRP, WebSocket": { way: "websocket", streamsPerConnection: 1 },
  "NNRP, IPC": { way: "ipc", streamsPerConnection: 1 },
} as const;
export type WayName = keyof typeof ways;

const loads = {
  paced: { model: "paced", streams: 256, seconds: 0 },
  "flat-out": { model: "flat", streams: 16, seconds: 2 },
} as const;
/** A paced stream's tokens in a second. */
const pacedTokensPerS = 50;
const held = 1000;

/** The service on one core, its clients on another. */
export class Doors {
  readonly #service: Program;
  readonly #load: Program;
  readonly #urls: Readonly<Record<string, string>>;

  private constructor(service: Program, load: Program, urls: Readonly<Record<string, string>>) {
    this.#service = service;
    this.#load = load;
    this.#urls = urls;
  }

  static async start(): Promise<Doors> {
    const service = await Program.start("service.ts", "0");
    return new Doors(service, await Program.start("load.ts", "1"), await service.ask("addresses"));
  }

  async measure(name: WayName): Promise<Figures> {
    const paced = await this.#run(name, "paced");
    const flat = await this.#run(name, "flat-out");
    return {
      "paced: CPU, µs/token": paced.cpuUs / paced.tokens,
      "paced: streams/core": (1e6 * paced.tokens) / (paced.cpuUs * pacedTokensPerS),
      "paced: added, ms, p50": paced.delayMs.p50,
      "paced: added, ms, p99": paced.delayMs.p99,
      "flat-out: CPU, µs/token": flat.cpuUs / flat.tokens,
      "flat-out: tokens/s": flat.tokens / flat.seconds,
    };
  }

  async #run(name: WayName, load: keyof typeof loads): Promise<StreamsRun & { readonly cpuUs: number }> {
    const before = await this.#service.ask<number>("cpu");
    const run = await this.#load.ask<StreamsRun>("streams", this.#asked(name, load));
    return { ...run, cpuUs: (await this.#service.ask<number>("cpu")) - before };
  }

  #asked(name: WayName, load: keyof typeof loads): StreamsAsked {
    return { ...ways[name], ...loads[load], url: this.#urls[ways[name].way] ?? "" };
  }

  /** Bytes of a token's event, and what sessions and open streams hold of the service's memory. For a new service. */
  async measureSizes(name: WayName): Promise<Figures> {
    const { way, url, streamsPerConnection } = this.#asked(name, "paced");
    const sizes = streamsPerConnection > 1 ? {} : await this.#measureMemory(way, url);
    return { "bytes/token": await this.#countBytes(name), ...sizes };
  }

  async #countBytes(name: WayName): Promise<number> {
    const asked = this.#asked(name, "flat-out");
    const proxy = await startCountingProxy(asked.url);
    try {
      const counted = { ...asked, url: proxy.uri, streams: 1, seconds: 1 };
      const { tokens } = await this.#load.ask<StreamsRun>("streams", counted);
      return proxy.bytes / tokens;
    } finally {
      proxy.close();
    }
  }

  async #measureMemory(way: string, url: string): Promise<Figures> {
    // What the first streams bring in is no part of one.
    await this.#open(way, url, 20);
    await this.#release();
    const before = await this.#service.ask<Memory>("memory");
    if (way !== "sse") await this.#load.ask("idle", { url, sessions: held });
    const idle = await this.#service.ask<Memory>("memory");
    await this.#open(way, url, held);
    const open = await this.#service.ask<Memory>("memory");
    await this.#release();
    const each = ({ living }: Memory) => (living - before.living) / held / 1024;
    return { ...(way === "sse" ? {} : { "idle session, KiB": each(idle) }), "open stream, KiB": each(open) };
  }

  async #open(way: string, url: string, streams: number): Promise<void> {
    await this.#load.ask("silent", { way, url, streams });
    await this.#until(streams);
  }

  async #release(): Promise<void> {
    await this.#load.ask("release");
    await this.#until(0);
  }

  async #until(active: number): Promise<void> {
    while ((await this.#service.ask<number>("responses")) !== active) await new Promise((done) => setTimeout(done, 20));
  }

  async stop(): Promise<void> {
    await Promise.all([this.#service.stop(), this.#load.stop()]);
  }
}
