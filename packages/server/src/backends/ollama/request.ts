import type { BackendRequest, EmbeddingRequest, FunctionTool, OutputFormat, Sampling } from "@plenum/core";
import { invalid } from "./errors.ts";
import { toMessages } from "./messages.ts";
import type { ShownModel } from "./model-facts.ts";
import { hasThinkLevels } from "./parameters.ts";

/** What is known of the model that a request goes to. */
export interface RequestContext {
  readonly shown: Pick<ShownModel, "architecture" | "capabilities" | "stop"> | undefined;
  /** For requests that say nothing. Absent: the server's own. */
  readonly keepAliveMs?: number;
  /** Number of the answer: each further one gets a further seed. @default 0 */
  readonly candidate?: number;
}

export interface OllamaCall {
  readonly path: "/api/chat" | "/api/generate";
  readonly body: Readonly<Record<string, unknown>>;
}

/** @throws CoreError invalid-request for what Ollama can't be asked */
export function toCall(request: BackendRequest, context: RequestContext): OllamaCall {
  const shared = {
    model: request.model,
    stream: true,
    // A prompt that does not fit is an error, and a full context ends the answer, unless the client asks to cut.
    truncate: request.truncation === "oldest",
    shift: false,
    ...present("think", thinkOf(request, context)),
    ...keepAlive(request.keepAliveMs ?? context.keepAliveMs),
    ...logprobFields(request.sampling),
    ...present("options", optionsOf(request, context)),
  };
  const { input } = request;
  if (input.kind === "completion") return { path: "/api/generate", body: { ...shared, ...completionFields(request) } };
  return { path: "/api/chat", body: { ...shared, ...chatFields(request) } };
}

function chatFields(request: BackendRequest): object {
  const items = request.input.kind === "items" ? request.input.items : [];
  const system = request.instructions ? [{ role: "system", content: request.instructions }] : [];
  const messages = [...system, ...toMessages(items)];
  if (messages.length === 0) throw invalid("input needs at least one message.", "input");
  const tools = request.toolChoice === "none" ? [] : request.tools;
  return {
    messages,
    ...(tools.length === 0 ? {} : { tools: tools.map(toTool) }),
    ...present("format", formatOf(request.output.format)),
  };
}

function completionFields({ input, instructions, tools, toolChoice, output }: BackendRequest): object {
  if (input.kind !== "completion") return {};
  const { prompt, suffix, raw } = input;
  if (prompt === "" && !suffix) throw invalid("The prompt is empty; give at least one character.", "input");
  if (tools.length > 0 && toolChoice !== "none") throw invalid("A completion calls no tools; send messages.", "tools");
  if (raw && instructions) throw invalid("A raw prompt takes no instructions; put them into it.", "instructions");
  return {
    prompt,
    raw,
    ...(suffix ? { suffix } : {}),
    ...(instructions ? { system: instructions } : {}),
    ...present("format", formatOf(output.format)),
  };
}

function toTool({ name, description, parameters }: FunctionTool): object {
  const schema = typeof parameters === "object" ? parameters : { type: "object", properties: {} };
  return { type: "function", function: { name, description: description ?? "", parameters: schema } };
}

function formatOf(format: OutputFormat): unknown {
  switch (format.type) {
    case "text":
      return undefined;
    case "json":
      return "json";
    case "json_schema":
      if (format.schema === false) throw invalid("No answer fits the schema `false`.", "output.format");
      return format.schema === true ? "json" : format.schema;
  }
}

/** Levels go to models that have them; the others think or don't. Without the capability nothing is sent. */
function thinkOf({ reasoning: { effort } }: BackendRequest, { shown }: RequestContext): boolean | string | undefined {
  if (effort === undefined || shown?.capabilities.has("thinking") !== true) return undefined;
  if (effort === "none") return false;
  if (!hasThinkLevels(shown.architecture)) return true;
  return effort === "minimal" ? "low" : effort;
}

/** Every sampling field that Ollama has, over what `runtimeOptions.ollama` says; `num_ctx` comes from there alone. */
function optionsOf(
  { sampling, output, runtimeOptions }: BackendRequest,
  { shown, candidate = 0 }: RequestContext,
): object | undefined {
  if (sampling.logitBias !== undefined) throw invalid("Ollama has no logit_bias; leave it out.", "sampling.logit_bias");
  const { stop } = sampling;
  const fields = {
    num_predict: output.maxTokens,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    min_p: sampling.minP,
    typical_p: sampling.typicalP,
    seed: sampling.seed === undefined ? undefined : sampling.seed + candidate,
    // A request's stop texts take the place of the model's own in Ollama.
    stop: stop === undefined || stop.length === 0 ? undefined : [...new Set([...stop, ...(shown?.stop ?? [])])],
    presence_penalty: sampling.presencePenalty,
    frequency_penalty: sampling.frequencyPenalty,
    repeat_penalty: sampling.repeatPenalty,
    repeat_last_n: sampling.repeatLastN,
  };
  const set = Object.entries(fields).filter(([, value]) => value !== undefined);
  const options = { ...runtimeOptions["ollama"], ...Object.fromEntries(set) };
  return Object.keys(options).length === 0 ? undefined : options;
}

function logprobFields({ logprobs }: Sampling): object {
  return logprobs === undefined ? {} : { logprobs: true, top_logprobs: logprobs };
}

/** @throws CoreError invalid-request for token ids, which Ollama does not take */
export function toEmbedBody(request: EmbeddingRequest, context: RequestContext): Readonly<Record<string, unknown>> {
  const input = request.inputs.map((entry) => {
    if (typeof entry === "string") return entry;
    throw invalid("Ollama takes texts, no token ids; send texts.", "input");
  });
  return {
    model: request.model,
    input,
    truncate: request.truncate,
    ...present("dimensions", request.dimensions),
    ...keepAlive(request.keepAliveMs ?? context.keepAliveMs),
    ...present("options", request.runtimeOptions["ollama"]),
  };
}

/** Milliseconds as Ollama reads them: a duration, or -1 for ever. Absent: the server's own default. */
export function keepAlive(ms: number | undefined): { readonly keep_alive?: string | number } {
  if (ms === undefined) return {};
  return { keep_alive: ms < 0 ? -1 : `${ms}ms` };
}

function present(name: string, value: unknown): Readonly<Record<string, unknown>> {
  return value === undefined ? {} : { [name]: value };
}
