import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { median } from "../statistics.ts";
import { type Memory, Program } from "./asks.ts";
import { startCountingProxy } from "./counting-proxy.ts";
import type { Load } from "./pair.ts";
import { Peer } from "./peer.ts";
import type { Figures } from "./table.ts";

const folder = mkdtempSync(join(tmpdir(), "plenum-bench-"));
let sockets = 0;

/** Addresses to listen on, by carrier. */
export const carriers = {
  tcp: () => "tcp://127.0.0.1:0",
  websocket: () => "ws://127.0.0.1:0",
  ipc: () => `unix://${folder}/${sockets++}.sock`,
} as const;
export type CarrierName = keyof typeof carriers;

const requests = 1000;
/** A stream of either side lasts about a second; so many are also counted in bytes. */
const events = { plenum: 200_000, peer: 20_000, counted: 10_000 };
/** Connections with a session each, and sessions of one connection. */
const held = { plenum: 1000, peer: 50, shared: 64 };

function toFigures({ roundTripsUs, events: received, seconds, iteratedSeconds }: Load): Figures {
  // The first tenth warms up.
  const warm = roundTripsUs.slice(roundTripsUs.length / 10);
  return {
    "events/s": received / seconds,
    ...(iteratedSeconds === undefined ? {} : { "events/s, iterated": received / iteratedSeconds }),
    "round trip, µs": median(warm),
  };
}

export async function measureOurs(carrier: CarrierName): Promise<Figures> {
  const [server, client] = [await Program.start("pair.ts"), await Program.start("pair.ts")];
  try {
    const uri = await server.ask<string>("listen", carriers[carrier]());
    const load = await client.ask<Load>("load", { uri, requests, events: events.plenum });
    return toFigures(load);
  } finally {
    await Promise.all([server.stop(), client.stop()]);
  }
}

export async function measurePeers(carrier: CarrierName): Promise<Figures> {
  const server = new Peer("serve", carriers[carrier](), "1");
  try {
    const { url } = await server.next<{ url: string }>();
    const client = new Peer("load", url, String(requests), String(events.peer));
    return toFigures(await client.next<Load>());
  } finally {
    await server.stop();
  }
}

/** Bytes that the server sends for each event, and what sessions and streams hold of its memory. Once: no noise in it. */
export async function measureOurSizes(carrier: CarrierName): Promise<Figures> {
  const [server, client] = [await Program.start("pair.ts"), await Program.start("pair.ts")];
  try {
    const uri = await server.ask<string>("listen", carriers[carrier]());
    const proxy = await startCountingProxy(uri);
    await client.ask<Load>("load", { uri: proxy.uri, requests: 0, events: events.counted });
    proxy.close();
    const memory = () => server.ask<Memory>("memory");
    // What the first connections bring in is no part of a session.
    await client.ask("hold", { uri, connections: 20, each: 1 });
    await client.ask("release");
    const before = await memory();
    await client.ask("hold", { uri, connections: held.plenum, each: 1 });
    const idle = await memory();
    await client.ask("submit");
    while ((await server.ask<number>("operations")) < held.plenum);
    const streaming = await memory();
    await client.ask("release");
    const released = await memory();
    await client.ask("hold", { uri, connections: 10, each: held.shared - 1 });
    const shared = await memory();
    const each = (from: Memory, to: Memory, what: keyof Memory, of: number) => (to[what] - from[what]) / of / 1024;
    return {
      "bytes/event": proxy.bytes / events.counted / 2,
      "idle session, KiB": each(before, idle, "living", held.plenum),
      "idle session, KiB resident": each(before, idle, "resident", held.plenum),
      "further session of a connection, KiB": each(released, shared, "living", 10 * (held.shared - 1)),
      "open stream, KiB": each(before, streaming, "living", held.plenum),
      "open stream, KiB resident": each(before, streaming, "resident", held.plenum),
    };
  } finally {
    await Promise.all([server.stop(), client.stop()]);
  }
}

/** A native runtime tells only its resident memory. */
export async function measurePeerSizes(carrier: CarrierName): Promise<Figures> {
  const counted = new Peer("serve", carriers[carrier](), "1");
  const { url } = await counted.next<{ url: string }>();
  const proxy = await startCountingProxy(url);
  const reader = new Peer("load", proxy.uri, "0", String(events.counted));
  await reader.next();
  await Promise.all([counted.stop(), reader.stop()]);
  proxy.close();

  const server = new Peer("serve", carriers[carrier](), String(held.peer));
  const { url: uri } = await server.next<{ url: string }>();
  const before = await server.ask<{ resident: number }>();
  const client = new Peer("hold", uri, String(held.peer));
  try {
    await client.next();
    const idle = await server.ask<{ resident: number }>();
    await client.ask();
    const streaming = await server.ask<{ resident: number }>();
    const each = (to: { resident: number }) => (to.resident - before.resident) / held.peer / 1024;
    return {
      "bytes/event": proxy.bytes / events.counted,
      "idle session, KiB resident": each(idle),
      "open stream, KiB resident": each(streaming),
    };
  } finally {
    await Promise.all([server.stop(), client.stop()]);
  }
}
