import { messages, packetBytesLimit } from "@plenum/nnrp";
import type { Case } from "./case.ts";
import { compare } from "./expectation.ts";
import type { Observation } from "./observe.ts";
import { toEnvelope } from "./profile-case.ts";
import { type Target, type Visit, visit } from "./visit.ts";

const chat = "chat.completions.create";
const say = (content: string) => [{ role: "user", content }];

/** What a service must do with what is wrong, and what it must never do (wire description §12, §13, §16). */
export function negativeCases(model: string, claims: ReadonlySet<string>): readonly Case[] {
  const body = { model, messages: say("Say hello.") };
  const envelope = (target: Target, members: object): string =>
    JSON.stringify({ ...JSON.parse(toEnvelope(target, chat, body)), ...members });
  const isStreamed = claims.has("api.streaming");
  const needsStream = isStreamed ? {} : { skip: "not claimed: api.streaming" };
  const needsCancel = isStreamed && claims.has("api.cancellation") ? {} : { skip: "not claimed: api.cancellation" };
  return [
    refusal("schema-version", "unsupported_schema_version", (target) =>
      envelope(target, { schema_version: "openai-compatible/0" }),
    ),
    refusal("unknown-operation", "unsupported_operation", (target) =>
      envelope(target, { operation: "conformance.unknown" }),
    ),
    refusal("unsupported-model", "unsupported_model", (target) =>
      toEnvelope(target, chat, { ...body, model: "conformance-no-such-model" }),
    ),
    refusal("missing-model", "missing_model", (target) => toEnvelope(target, chat, { messages: body.messages })),
    refusal("invalid-body", "invalid_body", (target) => toEnvelope(target, chat, [])),
    refusal("invalid-json", "invalid_submit_body", () => '{"schema_version"'),
    { id: "negative.oversized", run: (target) => visit(target, (visited) => sendOversized(visited, target, body)) },
    {
      id: "negative.stream-order",
      ...needsStream,
      run: (target) => visit(target, (visited) => readStream(visited, target, body)),
    },
    {
      id: "negative.late-events",
      ...needsCancel,
      run: (target) => visit(target, (visited) => leaveStream(visited, target, body)),
    },
  ];
}

/** A request that must be answered by this error and nothing else. */
function refusal(name: string, code: string, envelope: (target: Target) => string): Case {
  const events = [{ type: "response.error", minCount: 1, fields: { error: { code } } }];
  return {
    id: `negative.${name}`,
    run: (target) =>
      visit(target, async ({ ask, report }) => {
        const observation = await ask(envelope(target));
        for (const problem of compare({ terminal: "error", events }, observation)) report(problem);
        return observation;
      }),
  };
}

/**
 * A submit that declares more bytes than the protocol allows, and sends none of them: the connection must end at once,
 * and nobody else's.
 */
async function sendOversized({ ask, report, signal }: Visit, target: Target, body: object): Promise<Observation> {
  const judged = await visit(target, async ({ carrier, connection, session, signal: within }) => {
    carrier.send(oversizedHeader(session.id), [40]);
    const ended = await Promise.race([connection.closed.then(() => true), fired(within).then(() => false)]);
    if (!ended) report("A packet over 64 MiB was announced, and the connection stayed open.");
    return { events: [], terminal: "error", faults: [] };
  });
  // Its session could not be closed any more.
  for (const problem of judged.problems) if (!problem.includes("SESSION_CLOSE")) report(problem);
  if (signal.aborted) return judged.observation;
  const observation = await ask(toEnvelope(target, chat, body));
  if (observation.terminal !== "success") report("Another connection was harmed by it.");
  return observation;
}

function oversizedHeader(sessionId: number): Uint8Array {
  const { number, metadata } = messages.FRAME_SUBMIT;
  const header = new Uint8Array(40);
  header.set(new TextEncoder().encode("NNRP"));
  header.set([1, 0, number, header.byteLength], 4);
  const view = new DataView(header.buffer);
  view.setUint32(12, metadata.size, true);
  view.setUint32(16, packetBytesLimit, true);
  view.setUint32(20, sessionId, true);
  view.setUint32(24, 1, true);
  return header;
}

/** The order of the events is checked of every request; here also that the pieces are the answer. */
async function readStream({ ask, report }: Visit, target: Target, body: object): Promise<Observation> {
  const streamed = { ...body, stream: true, stream_options: { include_usage: true } };
  const observation = await ask(toEnvelope(target, chat, streamed));
  if (observation.terminal !== "success") report(`It ended with ${observation.terminal}, not with success.`);
  const pieces = observation.events.flatMap(({ type, index, delta }) =>
    type === "response.output_text.delta" && index === 0 && typeof delta === "string" ? delta : [],
  );
  const content = contentOf(observation.events.at(-1)?.["body"]);
  if (content !== undefined && pieces.join("") !== content) report("The pieces are not the text of the answer.");
  return observation;
}

function contentOf(body: unknown): string | undefined {
  const { choices } = (body ?? {}) as { readonly choices?: unknown };
  const [first] = Array.isArray(choices) ? choices : [];
  const content: unknown = first?.message?.content;
  return typeof content === "string" ? content : undefined;
}

/** A cancelled stream is over: what comes after its end, while another request runs, is a fault of the wire. */
async function leaveStream({ ask, report }: Visit, target: Target, body: object): Promise<Observation> {
  const long = { ...body, messages: say("Give a long answer: count to a thousand."), stream: true };
  const observation = await ask(toEnvelope(target, chat, long), { cancelAfterEvents: 1 });
  if (observation.terminal !== "cancelled") report(`It ended with ${observation.terminal}, not with cancelled.`);
  const next = await ask(toEnvelope(target, chat, { ...body, stream: true }));
  if (next.terminal !== "success") report("The request after a cancelled one was not answered.");
  for (const fault of next.faults) report(fault);
  return observation;
}

function fired(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
