import { type Core, isTerminal } from "@plenum/core";
import { createTestCore, ScriptedBackend, scriptedModel, type TestCoreOptions } from "@plenum/core/testing";
import {
  type CarrierKind,
  type ClientConnection,
  type ClientOptions,
  type ClientSession,
  connectCarrier,
  createCarrierPair,
  type OperationEvent,
  type SessionOptions,
} from "@plenum/nnrp";
import { createProfileClient, type JsonObject, type ProfileClient, type ProfileClientOptions } from "@plenum/profile";
import { createNnrpDoor, type NnrpDoor, type NnrpDoorOptions } from "../index.ts";

const { capabilities } = scriptedModel("x");

export interface Bench {
  readonly backend: ScriptedBackend;
  readonly core: Core;
  readonly door: NnrpDoor;
  /** What went wrong, in order: problem codes. */
  readonly problems: string[];
  /** What must not happen: mistakes of the door. */
  readonly faults: unknown[];
  connect(options?: ConnectOptions): Promise<ClientConnection>;
  session(options?: SessionOptions, connecting?: ConnectOptions): Promise<ClientSession>;
  client(options?: ProfileClientOptions): Promise<ProfileClient>;
}

export interface ConnectOptions extends ClientOptions {
  /** As if the carrier were a WebSocket that was opened so. */
  readonly upgrade?: { readonly target: string; readonly headers: Readonly<Record<string, string>> };
}

export interface SetUpOptions extends Omit<TestCoreOptions, "backends"> {
  readonly door?: Omit<NnrpDoorOptions, "core">;
  /** Responses that a model runs at once. @default 64 */
  readonly parallel?: number;
}

/** The door over carriers in memory, with a scripted backend: `m-tiny` chats, `e-tiny` embeds. */
export function setUp({ door: doorOptions, parallel = 64, ...coreOptions }: SetUpOptions = {}): Bench {
  const limits = { contextTokens: 4096, parallel };
  const backend = new ScriptedBackend("scripted", [
    scriptedModel("m-tiny", { aliases: ["tiny"], limits }),
    scriptedModel("e-tiny", { limits, capabilities: { ...capabilities, chat: false, embeddings: true } }),
  ]);
  const core = createTestCore({ ...coreOptions, backends: [backend] });
  const problems: string[] = [];
  const faults: unknown[] = [];
  const door = createNnrpDoor({
    core,
    onProblem: ({ code }) => problems.push(code),
    onFault: (error) => faults.push(error),
    ...doorOptions,
  });
  const connect: Bench["connect"] = ({ upgrade, ...options } = {}) => {
    const [near, far] = createCarrierPair();
    if (upgrade !== undefined) Object.assign(far, { kind: "websocket" satisfies CarrierKind, upgrade });
    door.server.accept(far);
    return connectCarrier(near, options);
  };
  const session: Bench["session"] = async (options, connecting) => (await connect(connecting)).openSession(options);
  return {
    backend,
    core,
    door,
    problems,
    faults,
    connect,
    session,
    client: async (options) => createProfileClient(await session(), options),
  };
}

export const messages = [{ role: "user", content: "Hi" }] as const;

/** A request's JSON, as an application that knows no library writes it. */
export function envelope(operation: string, body: object, further: object = {}): string {
  return JSON.stringify({ schema_version: "openai-compatible/1", operation, body, ...further });
}

export function chat(further: object = {}, nnrp?: object): { readonly event: string } {
  const body = { model: "m-tiny", messages, stream: true, ...further };
  return { event: envelope("chat.completions.create", body, nnrp === undefined ? {} : { nnrp }) };
}

/** What came of an operation: its events as objects, and how it ended on the wire. */
export interface Outcome {
  readonly partials: readonly (JsonObject & { readonly type: string })[];
  /** The event of RESULT_PUSH; undefined where it was dropped. */
  readonly terminal: JsonObject | undefined;
  readonly end: OperationEvent | undefined;
  readonly others: readonly OperationEvent[];
}

export async function read(events: AsyncIterable<OperationEvent>): Promise<Outcome> {
  const partials: (JsonObject & { readonly type: string })[] = [];
  const others: OperationEvent[] = [];
  let end: OperationEvent | undefined;
  for await (const event of events) {
    if (event.type === "partial") partials.push(parse(event.body));
    else if (event.type === "result" || event.type === "dropped" || event.type === "failed") end = event;
    else others.push(event);
  }
  const payload = end?.type === "result" ? end.payloads?.[0]?.bytes : undefined;
  return { partials, terminal: payload && parse(payload), end, others };
}

function parse(bytes: Uint8Array): JsonObject & { readonly type: string } {
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** The response that the core made last. */
export async function lastResponse(core: Core) {
  const { data } = await core.responses.list({ limit: 1 }, { id: "local", scopes: new Set(["admin"]) });
  const [record] = data;
  if (record === undefined) throw new Error("there is no response");
  return { ...record.response, hasEnded: isTerminal(record.response) };
}
