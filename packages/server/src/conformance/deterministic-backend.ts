import {
  type Backend,
  type BackendEmbedding,
  type BackendModel,
  type BackendRequest,
  type BackendSink,
  CoreError,
  type FunctionTool,
  type ResponseInput,
} from "@plenum/core";

const answer = ["Hello", " from", " the", " conformance", " target", "."] as const;

/** A request that says this gets a long answer, so that there is time to cancel it. */
const longAnswerWords = "long answer";
const longAnswerPieces = 400;
const longAnswerPauseMs = 25;

const failingModel = "backend-error";
const modelNames = ["example-model", "reference-model", failingModel];

/**
 * The same answer to the same request, always: one fixed text, or a call of the first tool when there are tools. Asked
 * for a long answer, it takes 10 s for it, a piece every 25 ms. Tokens are words and pieces. `backend-error` fails.
 */
export class DeterministicBackend implements Backend {
  readonly id = "deterministic";
  readonly kind = "deterministic";
  readonly #models = modelNames.map(toModel);

  models(): readonly BackendModel[] {
    return this.#models;
  }

  onChange(): () => void {
    return () => {};
  }

  async respond(request: BackendRequest, sink: BackendSink, signal: AbortSignal): Promise<void> {
    this.#require(request.model);
    signal.throwIfAborted();
    if (request.model === failingModel) throw new CoreError("backend-error", "This model always fails.");
    const inputTokens = countWords(request.input);
    sink([{ type: "accepted", inputTokens }]);
    const [tool] = request.toolChoice === "none" ? [] : request.tools;
    const outputTokens = tool === undefined ? await say(request, sink, signal) : call(tool, sink);
    const finishReason = tool === undefined ? "stop" : "tool_calls";
    sink([
      { type: "finish", candidate: 0, finishReason, rawFinishReason: finishReason },
      { type: "usage", usage: { inputTokens, outputTokens, cachedInputTokens: 0, reasoningTokens: 0 } },
    ]);
  }

  async embed(): Promise<BackendEmbedding> {
    throw new CoreError("unsupported-capability", "No model here makes embeddings.");
  }

  async load(model: string): Promise<void> {
    this.#require(model);
  }

  async unload(): Promise<void> {}

  async close(): Promise<void> {}

  #require(model: string): void {
    if (!modelNames.includes(model)) throw new CoreError("model-not-found", `There is no model '${model}'.`, { model });
  }
}

/** @returns tokens of the answer. */
async function say(request: BackendRequest, sink: BackendSink, signal: AbortSignal): Promise<number> {
  const isLong = textsOf(request.input).some((text) => text.toLowerCase().includes(longAnswerWords));
  const pieces = isLong ? longAnswerPieces : answer.length;
  for (let at = 0; at < pieces; at += 1) {
    const delta = answer[at % answer.length] ?? "";
    sink([{ type: "text", candidate: 0, delta }]);
    if (isLong) await pause(longAnswerPauseMs, signal);
  }
  return pieces;
}

function call({ name }: FunctionTool, sink: BackendSink): number {
  sink([
    { type: "function_call", candidate: 0, call: 0, name, callId: "call_conformance" },
    { type: "function_call_arguments", candidate: 0, call: 0, delta: "{" },
    { type: "function_call_arguments", candidate: 0, call: 0, delta: "}" },
  ]);
  return 2;
}

/** Rejects with the signal's reason. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, ms);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
}

function countWords(input: ResponseInput): number {
  const words = textsOf(input).flatMap((text) => text.split(/\s+/).filter((word) => word !== ""));
  return Math.max(1, words.length);
}

function textsOf(input: ResponseInput): readonly string[] {
  if (input.kind === "completion") return [input.prompt];
  return input.items.flatMap((item) =>
    item.type === "message" ? item.content.flatMap((part) => (part.type === "text" ? part.text : [])) : [],
  );
}

function toModel(name: string): BackendModel {
  return {
    name,
    title: name,
    aliases: [],
    state: "loaded",
    capabilities: {
      chat: true,
      completion: false,
      embeddings: false,
      tools: true,
      structuredOutput: false,
      reasoning: false,
      vision: false,
      logprobs: false,
      insert: false,
    },
    emulated: [],
    limits: { contextTokens: 4096, parallel: 64 },
    details: { family: "deterministic" },
    parameters: {},
    createdAtMs: 0,
  };
}
