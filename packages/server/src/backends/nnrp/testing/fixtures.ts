/** For tests: a backend of a service over memory carriers that answers by a script, and short ways to run requests. */
import { type Backend, type BackendEvent, type BackendRequest, requestDefaults } from "@plenum/core";
import { exchange } from "../../../../../profile/src/testing/fixtures.ts";
import {
  type Answer,
  replay,
  type Script,
  ScriptedService,
  type ServiceOptions,
} from "../../../../../profile/src/testing/scripted-service.ts";
import { createNnrpBackend, type NnrpOptions } from "../index.ts";

export { recordedStream } from "../../../../../profile/src/testing/fixtures.ts";
export type { Answer, Script };

export interface Setup {
  readonly service: ScriptedService;
  readonly backend: Backend;
  close(): Promise<void>;
}

/** Answers by operation; what is not named is refused, as services of level 1 do. */
export function scripts(byOperation: Readonly<Record<string, Script>>): Script {
  return (answer) => (byOperation[answer.envelope.operation] ?? unsupported)(answer);
}

const unsupported = replay(exchange("error-operation"));

/** Plays a recorded exchange of two real peers. */
export const recorded = (scenario: string): Script => replay(exchange(scenario));

/** Answers with a list of these models; a member `nnrp` is the capability document. */
export function models(...entries: readonly object[]): Script {
  return ({ end, writer }) => end(writer.completed({ object: "list", data: entries }));
}

export function setUp(
  script: Script,
  options: Partial<NnrpOptions> & { readonly limits?: ServiceOptions } = {},
): Setup {
  const { limits, ...others } = options;
  const service = new ScriptedService(limits);
  service.script = script;
  const backend = createNnrpBackend({ id: "far", url: "tcp://127.0.0.1:1", connect: service.connect, ...others });
  return {
    service,
    backend,
    async close() {
      await backend.close();
      await service.close();
    },
  };
}

export function requestOf(changes: Partial<BackendRequest> = {}): BackendRequest {
  const content = [{ type: "text", text: "Hi" }] as const;
  return {
    ...requestDefaults,
    model: "m",
    input: { kind: "items", items: [{ type: "message", role: "user", content }] },
    ...changes,
  };
}

export async function run(
  backend: Backend,
  changes: Partial<BackendRequest> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<BackendEvent[]> {
  await backend.ready;
  const events: BackendEvent[] = [];
  await backend.respond(requestOf(changes), (batch) => events.push(...batch), signal);
  return events;
}

/** The text of a candidate. */
export function textOf(events: readonly BackendEvent[], candidate = 0): string {
  return events.map((event) => (event.type === "text" && event.candidate === candidate ? event.delta : "")).join("");
}

/** What a promise was rejected with. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => new Error("did not fail"),
    (reason: unknown) => reason,
  );
}

/** Resolves when the backend's models are as wanted. */
export async function until(backend: Backend, isSo: () => boolean): Promise<void> {
  if (isSo()) return;
  await new Promise<void>((resolve) => {
    const leave = backend.onChange(() => {
      if (!isSo()) return;
      leave();
      resolve();
    });
  });
}
