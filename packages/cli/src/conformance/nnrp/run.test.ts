import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AnyPacket, type Carrier, type Packet, parseEndpoint } from "@plenum/nnrp";
import { openCarrier } from "@plenum/nnrp/node";
import { type CapabilityDocument, createCapabilityDocument } from "@plenum/profile";
import { createConformanceService } from "@plenum/server/conformance";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runProgram } from "../../program.ts";
import { fakeSurroundings, json } from "../../testing/fake-surroundings.ts";
import { toResult } from "./case-result.ts";
import { casesFor } from "./cases.ts";
import { eventOf, partial, result, type Tamper, tampered } from "./testing/tamper.ts";

const service = createConformanceService();
const fullService = createConformanceService({ level: 3 });
let folder = "";
let address = "";
let fullAddress = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plenum-conformance-"));
  address = await service.listen("tcp://127.0.0.1:0");
  fullAddress = await fullService.listen("tcp://127.0.0.1:0");
});
afterAll(async () => {
  await Promise.all([service.close(), fullService.close()]);
  await rm(folder, { recursive: true, force: true });
});

const document: CapabilityDocument = createCapabilityDocument({
  compatibility_levels: [1],
  operations: [
    { name: "chat.completions.create", streaming: true, non_streaming: true, tool_calls: true, cancellation: true },
  ],
  models: ["example-model", "backend-error"].map((id) => ({ id, owned_by: "deterministic" })),
  extensions: [],
});

const none: Tamper = (packet) => [packet];

async function open(signal: AbortSignal): Promise<Carrier> {
  const endpoint = parseEndpoint(address);
  if (endpoint.kind === "application") throw new Error("an address without a carrier");
  return openCarrier(endpoint.locator, { signal });
}

async function judge(id: string, tamper: Tamper, hears?: (bytes: Uint8Array) => boolean) {
  const found = casesFor(document, {}).find((each) => each.id.endsWith(id));
  if (found === undefined || found.skip !== undefined) throw new Error(`${id} is not run`);
  // A service that answers nothing takes the whole time of a case.
  const target = { open: async (signal: AbortSignal) => tampered(await open(signal), tamper, hears), timeoutMs: 1500 };
  return toResult(id, await found.run(target));
}

const everyCase = casesFor(document, {}).map(({ id }) => id);

test.each(everyCase)("%s passes against a good service", async (id) => {
  expect(await judge(id, none)).toMatchObject({ outcome: "passed", message: "" });
});

/** Changes the packets of one type. */
function on<N extends AnyPacket["type"]>(
  type: N,
  change: (packet: Extract<AnyPacket, { type: N }>) => ReturnType<Tamper>,
): Tamper {
  return (packet) => (packet.type === type ? change(packet as Extract<AnyPacket, { type: N }>) : [packet]);
}

/** Events of a type become others, or none. */
function instead(type: string, change: (event: object) => readonly object[]): Tamper {
  return (packet) => {
    const event = eventOf(packet);
    if (event.type !== type) return [packet];
    if (packet.type === "PARTIAL_RESULT") return change(event).map((each) => partial(packet, each));
    return packet.type === "RESULT_PUSH" ? change(event).map((each) => result(packet, each)) : [packet];
  };
}

const error = (code: string) =>
  instead("response.error", () => [{ type: "response.error", error: { type: "server_error", code, message: "" } }]);

/** The first partial once more after the end. */
function late(): Tamper {
  let first: Packet<"PARTIAL_RESULT"> | undefined;
  return (packet) => {
    if (packet.type === "PARTIAL_RESULT") first ??= packet;
    const isEnd = packet.type === "RESULT_PUSH" || packet.type === "RESULT_DROP_REASON";
    return isEnd && first !== undefined ? [packet, first] : [packet];
  };
}

const faults: readonly (readonly [name: string, id: string, tamper: Tamper, message: RegExp])[] = [
  // Recipes
  ["no text", "chat.streaming-text", instead("response.output_text.delta", () => []), /delta came 0 times/],
  [
    "no end but an error",
    "chat.non-streaming",
    instead("response.completed", () => [{ type: "response.error", error: {} }]),
    /ended with error/,
  ],
  [
    "another code for no messages",
    "chat.invalid-body",
    error("invalid_body"),
    /error.code is "invalid_body", not "missing_messages"/,
  ],
  ["another code for an operation", "chat.unsupported-operation", error("invalid_body"), /not "unsupported_operation"/],
  ["no usage", "chat.usage", instead("response.usage", () => []), /usage came 0 times/],
  ["another code for a backend", "chat.backend-error", error("internal_error"), /not "backend_error"/],
  [
    "no pieces of a call",
    "chat.tool-call-delta",
    instead("response.tool_call.delta", () => []),
    /tool_call.delta came 0 times/,
  ],
  [
    "a cancel that ends in success",
    "chat.cancellation",
    on("RESULT_DROP_REASON", (packet) => [{ ...packet, metadata: { ...packet.metadata, dropReasonCode: 4 } }]),
    /ended with error/,
  ],
  ["a cancel without an end", "chat.cancellation", on("RESULT_DROP_REASON", () => []), /did not end/],
  // Diagnostics
  ["no diagnostics", "diagnostics.reported", instead("response.diagnostics", () => []), /diagnostics came 0 times/],
  [
    "diagnostics of a wrong form",
    "diagnostics.reported",
    instead("response.diagnostics", () => [
      { type: "response.diagnostics", diagnostics: { ttft_ms: "soon", more: 1 } },
    ]),
    /ttft_ms is of no form/,
  ],
  [
    "diagnostics for nobody",
    "diagnostics.unrequested",
    instead("response.usage", (event) => [event, { type: "response.diagnostics", diagnostics: {} }]),
    /nobody asked/,
  ],
  ["another code for a policy", "diagnostics.malformed", error("invalid_body"), /not "invalid_nnrp_policy"/],
  // Wrong requests
  ...["schema-version", "unknown-operation", "unsupported-model", "missing-model", "invalid-body", "invalid-json"].map(
    (name) => [`another code for ${name}`, `negative.${name}`, error("other"), /error.code is "other"/] as const,
  ),
  // Streams
  [
    "usage before the text",
    "negative.stream-order",
    instead("response.output_text.delta", (event) => [{ type: "response.usage", usage: {} }, event]),
    /Output follows response.usage/,
  ],
  [
    "pieces of another text",
    "negative.stream-order",
    instead("response.output_text.delta", (event) => [{ ...event, delta: "x" }]),
    /not the text of the answer/,
  ],
  [
    "a call that is never closed",
    "chat.tool-call-delta",
    instead("response.tool_call.completed", () => []),
    /still open/,
  ],
  ["an event after the end of a cancelled one", "negative.late-events", late(), /PARTIAL_RESULT after the end/],
  ["an event after the end", "chat.streaming-text", late(), /PARTIAL_RESULT after the end/],
  // The wire
  ["two ends", "chat.non-streaming", on("RESULT_PUSH", (packet) => [packet, packet]), /RESULT_PUSH after the end/],
  [
    "a frame that nobody submitted",
    "chat.streaming-text",
    on("PARTIAL_RESULT", (packet) => [packet, { ...packet, frameId: 77 }]),
    /frame 77 .* never submitted/,
  ],
  [
    "a wrong pair",
    "chat.streaming-text",
    on("PARTIAL_RESULT", (packet) => [packet, { ...packet, metadata: { ...packet.metadata, operationId: 99n } }]),
    /names operation 99/,
  ],
  [
    "sequences that stand still",
    "chat.streaming-text",
    on("PARTIAL_RESULT", (packet) => [{ ...packet, metadata: { ...packet.metadata, resultSequence: 1n } }]),
    /1 follows 1/,
  ],
  [
    "lines of server-sent events",
    "chat.streaming-text",
    on("PARTIAL_RESULT", (packet) => [partial(packet, `data: ${Buffer.from(packet.body)}\n\n`)]),
    /not one bare JSON event/,
  ],
  [
    "an event without a type",
    "chat.streaming-text",
    instead("response.output_text.delta", () => [{ index: 0, delta: "x" }]),
    /no type/,
  ],
  [
    "a bare result",
    "chat.non-streaming",
    on("RESULT_PUSH", (packet) => [{ ...packet, body: packet.body.subarray(56) }]),
    /not laid out/,
  ],
  [
    "an end that is no end",
    "chat.non-streaming",
    instead("response.completed", () => [{ type: "response.usage", usage: {} }]),
    /not terminal/,
  ],
  [
    "bytes that are no packet",
    "chat.streaming-text",
    on("RESULT_PUSH", () => [Buffer.from("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")]),
    /can't be read/,
  ],
  ["a close without an answer", "chat.non-streaming", on("SESSION_CLOSE_ACK", () => []), /not acknowledged/],
];

describe("a faulty service fails", () => {
  test.each(faults)("%s: %s", { timeout: 20_000 }, async (_name, id, tamper, message) => {
    const judged = await judge(id, tamper);
    expect(judged.outcome).toBe("failed");
    expect(judged.message).toMatch(message);
  });

  test("one that waits for what is too large", { timeout: 20_000 }, async () => {
    const isOversized = (bytes: Uint8Array) => bytes.byteLength === 40;
    const judged = await judge("negative.oversized", none, (bytes) => !isOversized(bytes));
    expect(judged).toMatchObject({ outcome: "failed", message: expect.stringContaining("stayed open") });
  });
});

async function run(...words: readonly string[]) {
  const around = fakeSurroundings({ service: { "GET /capabilities.json": json(document) } });
  const code = await runProgram(["conformance", "nnrp", ...words], around);
  return { code, ...around.written };
}

const caseA = { id: "a", operation: "models.list", request: { body: {} }, expect: { events: [], terminal: "error" } };

describe("the command", () => {
  test("asks the service what it can, and tells what was skipped", { timeout: 30_000 }, async () => {
    const { code, output } = await run("--target", fullAddress.replace("tcp:", "nnrp:"));
    expect(output).toContain(
      "skipped  openai-compatible.chat.unsupported-operation  the service offers responses.create",
    );
    expect(output).toContain("19 passed, 0 failed, 1 skipped");
    expect(code).toBe(0);
  });

  test("takes the document from a file or a page; writes report and vectors, without the token", {
    timeout: 60_000,
  }, async () => {
    const [capabilities, report, vectors] = ["c.json", "r.json", "v.json"].map((name) => join(folder, name));
    await writeFile(capabilities ?? "", JSON.stringify(document));
    const files = ["--output", report ?? "", "--emit-vectors", vectors ?? ""];
    const first = await run(
      "--target",
      address,
      "--capabilities",
      capabilities ?? "",
      "--token",
      "s3cret-t0ken",
      ...files,
    );
    expect(first.code).toBe(0);
    const told = JSON.parse(await readFile(report ?? "", "utf8"));
    expect(told).toMatchObject({ target: address, summary: { passed: everyCase.length, failed: 0, skipped: 0 } });
    const text = await readFile(vectors ?? "", "utf8");
    expect(text).not.toContain(Buffer.from("s3cret-t0ken").toString("hex"));
    const written = JSON.parse(text);
    expect(written.vectors.map(({ id }: { readonly id: string }) => id)).toEqual(everyCase);
    expect(written.vectors[0].packets.map(({ message }: { readonly message: string }) => message).slice(0, 5)).toEqual([
      "CLIENT_HELLO",
      "SERVER_HELLO_ACK",
      "SESSION_OPEN",
      "SESSION_OPEN_ACK",
      "FRAME_SUBMIT",
    ]);
    const second = await run("--target", address, "--capabilities", "http://127.0.0.1/capabilities.json", "--json");
    expect(JSON.parse(second.output).summary).toEqual(told.summary);
  });

  test("ends with 1 when something failed", { timeout: 30_000 }, async () => {
    const path = join(folder, "claims.json");
    await writeFile(path, JSON.stringify({ ...document, models: [{ id: "nobody", owned_by: "x" }] }));
    const { code, output } = await run("--target", address, "--capabilities", path);
    expect(code).toBe(1);
    expect(output).toMatch(/FAILED +openai-compatible.chat.streaming-text +.*unsupported_model/);
  });

  test.each<[string, readonly string[], number, string]>([
    ["nobody", ["--target", "tcp://127.0.0.1:1"], 3, "No NNRP service answers at tcp://127.0.0.1:1"],
    ["no address", ["--target", "http://127.0.0.1:1"], 2, "--target: "],
    ["no target", [], 2, "--target <address>"],
    ["a plan that is nowhere", ["api-profile"], 2, "NNRP_CONFORMANCE_ADAPTER_PLAN"],
    ["no role", ["wire-target", "--ready-output", "x"], 2, "--role <role>"],
    [
      "a carrier that has no scenario",
      ["wire-target", "--role", "client", "--ready-output", "x", "--transports", "ipc"],
      2,
      "server on ipc",
    ],
    [
      "a carrier that is none",
      ["wire-target", "--role", "server", "--ready-output", "x", "--transports", "quic"],
      2,
      "no list such as",
    ],
  ])("%s", async (_name, words, code, message) => {
    const ended = await run(...words);
    expect(ended.errors).toContain(message);
    expect(ended.code).toBe(code);
  });

  test("a service that tells nothing is asked for by name", async () => {
    const { code, errors } = await run("--target", address);
    expect([code, errors]).toEqual([1, expect.stringContaining("name it with --capabilities")]);
  });

  test.each<[string, unknown, string]>([
    ["no object", [], "The plan must be an object."],
    ["another profile", { profile: "x" }, "profile must be openai-compatible."],
    ["a case without an operation", planOf({ id: "a" }), "cases[0].request must be an object."],
    [
      "a wrong count",
      planOf({ ...caseA, request: { body: {}, nnrp: { cancel_after_events: -1 } } }),
      "cases[0].request.nnrp.cancel_after_events",
    ],
    ["a wrong end", planOf({ ...caseA, expect: { events: [], terminal: "x" } }), "cases[0].expect.terminal must be"],
  ])("a plan with %s is refused by its member", async (_name, plan, message) => {
    const path = join(folder, "plan.json");
    await writeFile(path, JSON.stringify(plan));
    const { code, errors } = await run("api-profile", "--plan", path, "--output", join(folder, "results.json"));
    expect([code, errors]).toEqual([2, expect.stringContaining(message)]);
  });
});

function planOf(each: object): object {
  return { profile: "openai-compatible", schema_version: "openai-compatible/1", adapter: "x", cases: [each] };
}
