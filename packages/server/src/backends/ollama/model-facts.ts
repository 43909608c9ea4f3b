import type { ModelDetails } from "@plenum/core";
import { instantOf, listOf, member, numberOf, textOf } from "./json-fields.ts";

/** One entry of `/api/tags`. */
export interface ListedModel {
  readonly name: string;
  /** Of Ollama's manifest: changes with weights, template and parameters. */
  readonly manifestDigest: string;
  readonly sizeBytes?: number;
  readonly modifiedAtMs: number;
}

/** What `/api/show` says of a model. */
export interface ShownModel {
  readonly title?: string;
  /** `completion`, `tools`, `thinking`, `vision`, `embedding`, `insert`. */
  readonly capabilities: ReadonlySet<string>;
  /** `general.architecture`, else the family. */
  readonly architecture: string;
  /** Stop texts of its Modelfile. */
  readonly stop: readonly string[];
  /** `num_ctx` of its Modelfile. */
  readonly contextTokens?: number;
  readonly embeddingDimensions?: number;
  readonly details: Omit<ModelDetails, "sizeBytes">;
}

/** One entry of `/api/ps`. */
export interface LoadedModel {
  readonly name: string;
  readonly memoryBytes?: number;
  readonly contextTokens?: number;
  readonly expiresAtMs?: number;
}

export function readTags(body: unknown): readonly ListedModel[] {
  return listOf(body, "models").flatMap((entry) => {
    const name = textOf(entry, "model") ?? textOf(entry, "name");
    if (name === undefined || name === "") return [];
    const sizeBytes = numberOf(entry, "size");
    return {
      name,
      manifestDigest: textOf(entry, "digest") ?? "",
      modifiedAtMs: instantOf(entry, "modified_at") ?? 0,
      ...(sizeBytes === undefined ? {} : { sizeBytes }),
    };
  });
}

/** Ollama writes "for ever" as an instant some centuries away. */
const foreverMs = 50 * 365 * 86_400_000;

/** @param nowMs milliseconds since the epoch */
export function readPs(body: unknown, nowMs: number): readonly LoadedModel[] {
  return listOf(body, "models").flatMap((entry) => {
    const name = textOf(entry, "model") ?? textOf(entry, "name");
    if (name === undefined) return [];
    const memoryBytes = numberOf(entry, "size");
    const contextTokens = numberOf(entry, "context_length");
    const expiresAtMs = instantOf(entry, "expires_at");
    return {
      name,
      ...(memoryBytes === undefined ? {} : { memoryBytes }),
      ...(contextTokens === undefined || contextTokens <= 0 ? {} : { contextTokens }),
      ...(expiresAtMs === undefined || expiresAtMs - nowMs > foreverMs ? {} : { expiresAtMs }),
    };
  });
}

export function readShow(body: unknown): ShownModel {
  const info = member(body, "model_info");
  const family = textOf(member(body, "details"), "family");
  const architecture = textOf(info, "general.architecture") ?? family ?? "";
  const title = textOf(info, "general.name");
  const contextTokens = Number(parameterValues(body, "num_ctx").at(-1));
  const dimensions = numberOf(info, `${architecture}.embedding_length`);
  return {
    capabilities: capabilitiesOf(body, architecture),
    architecture,
    stop: parameterValues(body, "stop").map(unquoted),
    details: detailsOf(body, architecture),
    ...(title === undefined ? {} : { title }),
    ...(contextTokens > 0 ? { contextTokens } : {}),
    ...(dimensions === undefined ? {} : { embeddingDimensions: dimensions }),
  };
}

/** Ollama before 0.6.4 tells no capabilities: what its template and architecture say stands for them. */
function capabilitiesOf(body: unknown, architecture: string): ReadonlySet<string> {
  const told = listOf(body, "capabilities").filter((entry) => typeof entry === "string");
  if (told.length > 0) return new Set(told);
  if (architecture.includes("bert")) return new Set(["embedding"]);
  const template = textOf(body, "template") ?? "";
  const places = { tools: ".Tools", thinking: ".Thinking", insert: ".Suffix" };
  const found = Object.entries(places).flatMap(([capability, place]) => (template.includes(place) ? [capability] : []));
  return new Set(["completion", ...found]);
}

function detailsOf(body: unknown, architecture: string): ShownModel["details"] {
  const shown = member(body, "details");
  const info = member(body, "model_info");
  const facts = {
    family: textOf(shown, "family"),
    parameters: numberOf(info, "general.parameter_count"),
    quantization: textOf(shown, "quantization_level"),
    format: textOf(shown, "format"),
    digest: weightsDigest(body),
    chatTemplate: textOf(body, "template"),
    trainedContextTokens: numberOf(info, `${architecture}.context_length`),
    metadata: metadataOf(info),
  };
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined && value !== ""));
}

/**
 * Digest of the weights file, which the Modelfile names. A model that was made from another one, or has a system text,
 * messages or an adapter of its own, answers otherwise than its bare weights: it has none, so that it stays an entry
 * of its own in the catalog.
 */
function weightsDigest(body: unknown): string | undefined {
  const parent = textOf(member(body, "details"), "parent_model") ?? "";
  const isDerived = parent !== "" && !parent.includes("sha256-");
  const hasOwnText = Boolean(textOf(body, "system")) || listOf(body, "messages").length > 0;
  const modelfile = textOf(body, "modelfile") ?? "";
  const weights = [...modelfile.matchAll(/^FROM .*sha256-([0-9a-f]{64})\s*$/gm)];
  if (isDerived || hasOwnText || weights.length !== 1 || /^ADAPTER /m.test(modelfile)) return undefined;
  return `sha256:${weights[0]?.[1]}`;
}

function metadataOf(info: unknown): ModelDetails["metadata"] {
  if (typeof info !== "object" || info === null) return undefined;
  const kept = Object.entries(info).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value));
  return Object.fromEntries(kept);
}

/** Values of one name in the lines of `parameters`. */
function parameterValues(body: unknown, name: string): readonly string[] {
  return (textOf(body, "parameters") ?? "").split("\n").flatMap((line) => {
    const [, key, value] = /^(\S+)\s+(.*)$/.exec(line) ?? [];
    return key === name && value !== undefined ? [value.trim()] : [];
  });
}

function unquoted(value: string): string {
  try {
    const parsed: unknown = JSON.parse(value);
    return typeof parsed === "string" ? parsed : value;
  } catch {
    // Go's quotes have escapes that JSON has not; older versions quote nothing.
    return value.replace(/^"(.*)"$/, "$1");
  }
}
