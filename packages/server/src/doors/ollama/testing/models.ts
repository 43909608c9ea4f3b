import { type BackendEvent, type BackendRequest, type Core, CoreError, type TaskExecutor } from "@plenum/core";
import { createTestCore, type ScriptedAnswer, ScriptedBackend, scriptedModel } from "@plenum/core/testing";

const base = scriptedModel("x").capabilities;
const llama = {
  family: "llama",
  format: "gguf",
  parameters: 134_515_008,
  quantization: "Q4_1",
  sizeBytes: 98_362_432,
  digest: "sha256:b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
  chatTemplate: "{% for message in messages %}{{ message.content }}{% endfor %}",
  trainedContextTokens: 8192,
  metadata: { "general.architecture": "llama", "general.file_type": 3, "llama.block_count": 30 },
};
const minilm = { family: "bert", format: "gguf", parameters: 22_565_376, quantization: "F16", sizeBytes: 45_949_216 };

/** The models of the recordings, with an answer that fills every member. */
export function setUpRecordedModels(): { readonly core: Core; readonly backend: ScriptedBackend } {
  const chat = { ...base, tools: false };
  const models = [
    scriptedModel("smollm2:135m", { capabilities: chat, details: llama, memoryBytes: 190_948_608 }),
    scriptedModel("all-minilm:l6", {
      capabilities: { ...base, chat: false, completion: false, tools: false, embeddings: true },
      details: minilm,
      limits: { contextTokens: 512, embeddingDimensions: 384, parallel: 4 },
      expiresAtMs: 1_700_000_300_000,
    }),
    scriptedModel("tools-model", { capabilities: base, details: { ...llama, digest: "sha256:01" } }),
    scriptedModel("think-model", {
      capabilities: { ...chat, reasoning: true },
      details: { ...llama, digest: "sha256:02" },
    }),
    scriptedModel("fim-model", { capabilities: { ...chat, insert: true }, details: { ...llama, digest: "sha256:03" } }),
    scriptedModel("sys-model", { capabilities: chat, details: { ...llama, digest: "sha256:04" } }),
  ];
  const backend = new ScriptedBackend("scripted", models);
  backend.answer = answer;
  const embed = backend.embed.bind(backend);
  backend.embed = async (request, signal) => {
    if (!request.truncate) refuseLong(request.inputs);
    return embed(request, signal);
  };
  let nowMs = 1_700_000_000_000;
  // Every look at the clock takes a millisecond, so that no duration is zero.
  const clock = { now: () => nowMs++, after: () => () => {} };
  const core = createTestCore({ backends: [backend], clock });
  core.tasks.register(pulls);
  return { core, backend };
}

/** Pulls as without a network; `known` is pulled in steps. */
const pulls: TaskExecutor = {
  kind: "model.pull",
  concurrency: 1,
  accept(request) {
    const { source } = Object(request);
    if (/\s/.test(source)) throw new CoreError("invalid-request", "This names no model.", { param: "source" });
    return { source };
  },
  async run({ request }, { progress, signal }) {
    const { source } = Object(request);
    const digest = `sha256:${"4e".repeat(32)}`;
    if (source === "endless") {
      progress({ done: 1, total: 1000, unit: "bytes", step: "pulling 4e4e4e4e4e4e", digest });
      await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }
    if (source !== "known" && source !== "hf.co/acme/tiny:Q4_K_M") {
      throw new CoreError("backend-unavailable", "Ollama can't reach its registry: no such host.");
    }
    progress({ done: 600, total: 1000, unit: "bytes", step: "pulling 4e4e4e4e4e4e", digest });
    return { models: [source] };
  },
};

const answer: ScriptedAnswer = function* (request) {
  if (request.truncation === "none") refuseLong(request.input);
  yield [{ type: "accepted", inputTokens: 9, loadMs: 2 }];
  yield output(request);
  yield [
    { type: "finish", candidate: 0, finishReason: "stop" },
    {
      type: "usage",
      usage: { inputTokens: 9, outputTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 },
      promptMs: 3.5,
      generationMs: 4.25,
    },
  ];
};

function refuseLong(input: unknown): void {
  const { length } = JSON.stringify(input);
  if (length <= 2_000) return;
  throw new CoreError("context-length-exceeded", `The prompt has ${length} tokens, the context holds 2000.`);
}

function output(request: BackendRequest): BackendEvent[] {
  const { effort } = request.reasoning;
  if (effort !== undefined && effort !== "none") return [{ type: "reasoning", candidate: 0, delta: "Hm" }];
  // The recorded calls were forced by a format.
  if (request.tools.length > 0 && request.output.format.type === "json_schema") {
    return [
      { type: "function_call", candidate: 0, call: 0, name: "get_weather" },
      { type: "function_call_arguments", candidate: 0, call: 0, delta: '{"city":"Paris"}' },
    ];
  }
  const one = { token: "Hi", logprob: -0.5, bytes: [72, 105] };
  const logprobs = request.sampling.logprobs === undefined ? {} : { logprobs: [{ ...one, top: [one] }] };
  return [{ type: "text", candidate: 0, delta: "Hi", ...logprobs }];
}
