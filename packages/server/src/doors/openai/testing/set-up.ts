import type { BackendModel, Core } from "@plenum/core";
import { createTestCore, ScriptedBackend, scriptedModel, type TestCoreOptions } from "@plenum/core/testing";
import { callDoor, type TestRequest } from "../../shared/testing/call-door.ts";
import type { MemoryResponder } from "../../shared/testing/memory-responder.ts";
import { createOpenaiDoor } from "../index.ts";

export const door = createOpenaiDoor();

const { capabilities } = scriptedModel("x");

/** `m-tiny` does all but embed, `e-tiny` and `e-small` embed, `t-tiny` chats about text, can't
 * call tools, and makes nothing of two fields. */
export const models: readonly BackendModel[] = [
  scriptedModel("m-tiny", { aliases: ["tiny"], capabilities: { ...capabilities, insert: true, vision: true } }),
  scriptedModel("e-tiny", { capabilities: { ...capabilities, chat: false, embeddings: true } }),
  scriptedModel("e-small", { capabilities: { ...capabilities, chat: false, embeddings: true } }),
  scriptedModel("t-tiny", {
    capabilities: { ...capabilities, tools: false },
    parameters: { reasoning_effort: "without_effect", top_k: "without_effect" },
  }),
  scriptedModel("acme/tiny:q4"),
];

export interface Bench {
  readonly backend: ScriptedBackend;
  readonly core: Core;
  request(request: TestRequest): Promise<MemoryResponder>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<MemoryResponder>;
  get(path: string, headers?: Record<string, string>): Promise<MemoryResponder>;
}

export function setUp(options: Omit<TestCoreOptions, "backends"> = {}): Bench {
  const backend = new ScriptedBackend("scripted", models);
  const core = createTestCore({ ...options, backends: [backend] });
  return {
    backend,
    core,
    request: (request) => callDoor(door, core, request),
    post: (path, body, headers = {}) => callDoor(door, core, { method: "POST", path, body, headers }),
    get: (path, headers = {}) => callDoor(door, core, { method: "GET", path, headers }),
  };
}

/** A clock and an id source that give the same answer every time. */
export function fixedIds(): NonNullable<TestCoreOptions["ids"]> {
  let count = 0;
  return {
    unique() {
      count += 1;
      return `${"0".repeat(23)}${count}`;
    },
  };
}

/** The error object of an answer. */
export function errorOf(answer: MemoryResponder): {
  message: string;
  type: string;
  param: string | null;
  code: string | null;
} {
  return JSON.parse(answer.text).error;
}
