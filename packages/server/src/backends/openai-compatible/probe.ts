import { CoreError } from "@plenum/core";
import { listedModels, type ModelFacts, namedModels } from "../shared/openai/listed-model.ts";
import { countOf, isLoose, type Loose, listOf, textOr } from "../shared/openai/loose.ts";
import { maxProbeBytes, type Upstream } from "../shared/upstream.ts";
import { upstreamError } from "../shared/upstream-errors.ts";
import type { Dialect, Probe } from "./dialects.ts";
import type { OpenaiCompatibleSettings } from "./options.ts";

export interface ProbeOptions {
  readonly upstream: Upstream;
  readonly settings: OpenaiCompatibleSettings;
  readonly dialect: Dialect;
  readonly signal: AbortSignal;
  /** What was learnt with a request that the server writes into its log; kept until it goes away. */
  readonly remembered: Map<Probe, Learn>;
}

/** What a probe adds to a model. */
export type Learn = (facts: ModelFacts) => ModelFacts;

/**
 * Asks a server what it serves. Costs it no inference.
 * @throws CoreError backend-unavailable, backend-error, model-loading and what else the list of models is answered with
 */
export async function lookAt(options: ProbeOptions): Promise<readonly ModelFacts[]> {
  const { dialect } = options;
  const listed = await listModels(options);
  const more = await Promise.all(dialect.probes.map((probe) => probes[probe](options)));
  return listed.map((facts) => more.reduce((known, learn) => learn(known), facts));
}

async function listModels({ upstream, settings, dialect, signal }: ProbeOptions): Promise<readonly ModelFacts[]> {
  const answer = await upstream.json({ method: "GET", path: "/v1/models", signal }, maxProbeBytes);
  const named = namedModels(settings.models);
  if ((answer.status === 404 || answer.status === 405) && named.length > 0) return named;
  if (answer.status !== 200) throw upstreamError(answer);
  const { body } = answer;
  const listed = listedModels(body, settings.models, dialect.probes.includes("embeddings"));
  if (listed === undefined) {
    throw new CoreError("backend-error", "The server at baseUrl has no list of models; correct its baseUrl.");
  }
  return listed;
}

const unchanged: Learn = (facts) => facts;

const probes: Readonly<Record<Probe, (options: ProbeOptions) => Promise<Learn>>> = {
  props: async (options) => propsOf(await ask(options, "/props")),
  "lm-studio": async (options) => lmStudioOf(await ask(options, "/api/v0/models")),
  embeddings: async (options) => {
    const { remembered } = options;
    const learn = remembered.get("embeddings") ?? (await probeEmbeddings(options));
    if (learn !== unchanged) remembered.set("embeddings", learn);
    return learn;
  },
};

/** A page that may be missing, or be another one; then nothing is learnt. */
async function ask({ upstream, signal }: ProbeOptions, path: string): Promise<Loose> {
  try {
    const { status, body } = await upstream.json({ method: "GET", path, signal }, maxProbeBytes);
    return status === 200 && isLoose(body) ? body : {};
  } catch (error) {
    if (error instanceof CoreError && error.code === "backend-error" && !signal.aborted) return {};
    throw error;
  }
}

/** llama-server's `/props`: slots and their context, the chat template and what it can. */
function propsOf(props: Loose): Learn {
  const { total_slots, modalities, chat_template, chat_template_caps, default_generation_settings: generation } = props;
  if (countOf(total_slots) === undefined) return unchanged;
  const contextTokens = isLoose(generation) ? countOf(generation["n_ctx"]) : undefined;
  const caps = isLoose(chat_template_caps) ? chat_template_caps : {};
  const template = textOr(chat_template);
  const thinks = /<think|enable_thinking|reasoning_content|reasoning_effort/.test(template);
  return (facts) => ({
    ...facts,
    parallel: Math.min(4096, Math.max(1, Math.floor(Number(total_slots)))),
    ...(contextTokens === undefined ? {} : { contextTokens }),
    capabilities: {
      ...facts.capabilities,
      vision: isLoose(modalities) && modalities["vision"] === true,
      reasoning: thinks,
    },
    toolsEmulated: caps["supports_tools"] === false,
    hasEffort: thinks || caps["supports_reasoning_effort"] === true,
    details: { ...facts.details, ...(template === "" ? {} : { chatTemplate: template }) },
  });
}

/** A request without input: 404 or 501 where there is no such route or it is off, another refusal where there is one. */
async function probeEmbeddings({ upstream, signal }: ProbeOptions): Promise<Learn> {
  const call = { method: "POST", path: "/v1/embeddings", body: {}, signal } as const;
  const { status } = await upstream.json(call, maxProbeBytes);
  if (status === 401 || status === 403 || status === 429 || status === 503) return unchanged;
  const embeddings = status !== 404 && status !== 405 && status !== 501;
  return (facts) => {
    const { embeddingDimensions, ...rest } = facts;
    const length = embeddings && embeddingDimensions !== undefined ? { embeddingDimensions } : {};
    return { ...rest, ...length, capabilities: { ...facts.capabilities, embeddings } };
  };
}

/** LM Studio's own list: kind, context and whether the model is loaded. */
function lmStudioOf({ data }: Loose): Learn {
  const byName = new Map(
    listOf(data)
      .filter(isLoose)
      .map((entry) => [textOr(entry["id"]), entry]),
  );
  return (facts) => {
    const entry = byName.get(facts.name);
    if (entry === undefined) return facts;
    const { type, arch, quantization, state, capabilities, compatibility_type: format } = entry;
    const contextTokens = countOf(entry["loaded_context_length"]) ?? countOf(entry["max_context_length"]);
    return {
      ...facts,
      ...(contextTokens === undefined ? {} : { contextTokens }),
      capabilities: { ...facts.capabilities, embeddings: type === "embeddings", vision: type === "vlm" },
      toolsEmulated: !listOf(capabilities).includes("tool_use"),
      isLoaded: state === "loaded",
      details: {
        ...facts.details,
        ...(textOr(arch) === "" ? {} : { family: textOr(arch) }),
        ...(textOr(quantization) === "" ? {} : { quantization: textOr(quantization) }),
        ...(textOr(format) === "" ? {} : { format: textOr(format) }),
      },
    };
  };
}
