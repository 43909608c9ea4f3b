/** One half of our own pair, in a process of its own: the library without the profile, as the peer's half is. */
import {
  type ClientConnection,
  type ClientSession,
  createServer,
  type ServerOperation,
  type SubmitRequest,
} from "@plenum/nnrp";
import { connect, listen } from "@plenum/nnrp/node";
import { answerAsks, memoryNow } from "./asks.ts";

/** What the peer's half sends, too. */
const delta = new TextEncoder().encode('{"type":"response.output_text.delta","index":0,"delta":"token "}');
const completed =
  '{"type":"response.completed","body":{"id":"chatcmpl_bench","object":"chat.completion","choices":[{"index":0,' +
  '"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}}';
const silent = -1;

interface LoadAsked {
  readonly uri: string;
  /** Round trips of one request without a stream, one after another. */
  readonly requests: number;
  /** Events of the one stream after them. */
  readonly events: number;
}

export interface Load {
  readonly roundTripsUs: readonly number[];
  readonly events: number;
  readonly seconds: number;
  /** The same stream read by `for await`; the peer has no such figure in this mode. */
  readonly iteratedSeconds?: number;
}

function serve(operation: ServerOperation): { drain?(): void } {
  const payload = operation.payloads?.[0]?.bytes ?? new Uint8Array();
  const { body } = JSON.parse(new TextDecoder().decode(payload)) as { readonly body: { readonly events: number } };
  if (body.events === silent) return {};
  let left = body.events;
  const pump = (): void => {
    while (left > 0 && operation.writable) {
      left -= 1;
      operation.partial(delta);
    }
    if (left === 0) operation.result({ event: completed });
  };
  queueMicrotask(pump);
  return { drain: pump };
}

function request(events: number): SubmitRequest {
  const messages = [{ role: "user", content: "Say hello." }];
  const body = { model: "example-model", messages, events, stream: events > 0 };
  const envelope = { schema_version: "openai-compatible/1", operation: "chat.completions.create", body };
  return { body: { event: JSON.stringify(envelope) } };
}

async function load({ uri, requests, events }: LoadAsked): Promise<Load> {
  const connection = await connect(uri);
  const session = await connection.openSession();
  const roundTripsUs: number[] = [];
  for (let number = 0; number < requests; number += 1) {
    const startedAt = performance.now();
    await new Promise<void>((resolve) => {
      session.submit(request(0), (event) => {
        if (event.type === "result") resolve();
      });
    });
    roundTripsUs.push((performance.now() - startedAt) * 1000);
  }
  const startedAt = performance.now();
  const received = await receive(session, events);
  const endedAt = performance.now();
  let iterated = 0;
  for await (const event of session.submit(request(events))) if (event.type === "partial") iterated += 1;
  const iteratedSeconds = (performance.now() - endedAt) / 1000;
  await connection.close();
  if (iterated !== received) throw new Error(`${received} events by a function, ${iterated} by iteration`);
  return { roundTripsUs, events: received, seconds: (endedAt - startedAt) / 1000, iteratedSeconds };
}

function receive(session: ClientSession, events: number): Promise<number> {
  let received = 0;
  return new Promise((resolve) => {
    session.submit(request(events), (event) => {
      if (event.type === "partial") received += 1;
      else resolve(received);
    });
  });
}

const server = createServer({ operation: serve });
let held: ClientConnection[] = [];
let sessions: ClientSession[] = [];

answerAsks({
  listen: async (uri: string) => (await listen(server, uri)).endpoint,
  memory: memoryNow,
  load,
  /** Sessions that stay open, each on a connection of its own or many on one. */
  hold: async ({ uri, connections, each }: { uri: string; connections: number; each: number }) => {
    for (let number = 0; number < connections; number += 1) {
      const connection = await connect(uri);
      held.push(connection);
      for (let session = 0; session < each; session += 1) sessions.push(await connection.openSession());
    }
  },
  /** A silent operation in each session. */
  submit: () => {
    for (const session of sessions) session.submit(request(silent));
  },
  /** Of the server. */
  operations: () => server.operations,
  release: async () => {
    await Promise.all(held.map((connection) => connection.close()));
    held = [];
    sessions = [];
  },
});
