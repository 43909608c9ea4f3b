/** A load client of the service in a process of its own, over SSE or NNRP. It reads the time that each token carries. */
import { Agent, type ClientRequest, request as httpRequest } from "node:http";
import type { ClientConnection, ClientSession } from "@plenum/nnrp";
import { connect } from "@plenum/nnrp/node";
import { percentile } from "../statistics.ts";
import { answerAsks } from "./asks.ts";

export interface StreamsAsked {
  readonly way: string;
  readonly url: string;
  readonly model: "paced" | "flat";
  /** At once. */
  readonly streams: number;
  /** Over NNRP; an HTTP/1 connection has one. */
  readonly streamsPerConnection: number;
  /** Starts again what has ended, for so long. 0: each stream runs once. */
  readonly seconds: number;
}

export interface StreamsRun {
  readonly tokens: number;
  readonly seconds: number;
  /** From the backend's event to the client's callback, milliseconds. */
  readonly delayMs: { readonly p50: number; readonly p99: number };
}

interface Way {
  /** Runs one stream; `token` hears each text. Resolves at its end. */
  run(model: string, token: (atUs: number) => void): Promise<void>;
  close(): Promise<void>;
}

const chat = (model: string) => ({ model, messages: [{ role: "user", content: "Hi" }], stream: true });

const agent = new Agent({ keepAlive: true, noDelay: true });
const open = new Set<ClientRequest>();

function overSse(url: string): Way {
  return {
    run: (model, token) =>
      new Promise((resolve, reject) => {
        const headers = { "content-type": "application/json" };
        const asked = httpRequest(url, { method: "POST", headers, agent }, (answer) => {
          let rest = "";
          if (answer.statusCode !== 200) reject(new Error(`status ${answer.statusCode}`));
          answer.setEncoding("latin1");
          answer.on("data", (chunk: string) => {
            rest = readTokens(rest + chunk, token);
          });
          answer.on("end", resolve);
        });
        open.add(asked);
        asked.on("close", () => open.delete(asked));
        asked.on("error", reject);
        asked.end(JSON.stringify(chat(model)));
      }),
    close: async () => {
      for (const asked of open) asked.destroy();
      agent.destroy();
    },
  };
}

/** @returns what may be the beginning of a token */
function readTokens(text: string, token: (atUs: number) => void): string {
  let from = 0;
  for (;;) {
    const at = text.indexOf("@", from);
    if (at < 0) return "";
    const end = text.indexOf(";", at);
    if (end < 0) return text.slice(at);
    token(Number(text.slice(at + 1, end)));
    from = end;
  }
}

async function overNnrp(url: string, connections: number): Promise<Way> {
  const opened: ClientConnection[] = [];
  const sessions: ClientSession[] = [];
  for (let number = 0; number < connections; number += 1) {
    const connection = await connect(url);
    opened.push(connection);
    sessions.push(await connection.openSession({ maxInFlight: 64 }));
  }
  let next = 0;
  return {
    run: (model, token) =>
      new Promise((resolve, reject) => {
        const session = sessions[next++ % sessions.length];
        const operation = "chat.completions.create";
        const envelope = { schema_version: "openai-compatible/1", operation, body: chat(model) };
        session?.submit({ body: { event: JSON.stringify(envelope) } }, (event) => {
          if (event.type === "partial") readTokens(Buffer.from(event.body).toString("latin1"), token);
          else if (event.type === "result" && event.status === 200) resolve();
          else
            reject(new Error(JSON.stringify(event, (_, value) => (typeof value === "bigint" ? String(value) : value))));
        });
      }),
    close: async () => void (await Promise.all(opened.map((connection) => connection.close()))),
  };
}

const openWay = async (way: string, url: string, connections: number): Promise<Way> =>
  way === "sse" ? overSse(url) : overNnrp(url, connections);

async function streams(asked: StreamsAsked): Promise<StreamsRun> {
  const way = await openWay(asked.way, asked.url, Math.ceil(asked.streams / asked.streamsPerConnection));
  const delays: number[] = [];
  const token = (atUs: number): void => void delays.push(Number(process.hrtime.bigint() / 1000n) - atUs);
  const startedAt = performance.now();
  const until = startedAt + asked.seconds * 1000;
  const one = async (): Promise<void> => {
    do await way.run(asked.model, token);
    while (performance.now() < until);
  };
  await Promise.all(Array.from({ length: asked.streams }, one));
  const seconds = (performance.now() - startedAt) / 1000;
  await way.close();
  const delayMs = { p50: percentile(delays, 0.5) / 1000, p99: percentile(delays, 0.99) / 1000 };
  return { tokens: delays.length, seconds, delayMs };
}

let held: Way | undefined;

answerAsks({
  streams,
  /** Opens connections with a session each, which stay idle. */
  idle: async ({ url, sessions }: { url: string; sessions: number }) => {
    held = await overNnrp(url, sessions);
  },
  /** Opens streams in which nothing comes. */
  silent: async ({ way, url, streams: wanted }: { way: string; url: string; streams: number }) => {
    held ??= await openWay(way, url, wanted);
    for (let number = 0; number < wanted; number += 1) held.run("silent", () => {}).catch(() => {});
  },
  release: async () => {
    await held?.close();
    held = undefined;
  },
});
