import { createHash } from "node:crypto";
import type { Capabilities, CatalogModel } from "@plenum/core";
import { defaults } from "./defaults.ts";

/** A model in `GET /api/tags`. */
export function toTag(model: CatalogModel) {
  return {
    name: model.id,
    model: model.id,
    modified_at: instant(model.createdAtMs),
    size: model.details.sizeBytes ?? 0,
    digest: digestOf(model),
    details: toDetails(model),
  };
}

/** A loaded model in `GET /api/ps`. */
export function toProcess(model: CatalogModel) {
  return {
    name: model.id,
    model: model.id,
    size: model.memoryBytes ?? model.details.sizeBytes ?? 0,
    digest: digestOf(model),
    details: toDetails(model),
    expires_at: model.expiresAtMs === undefined ? defaults.neverExpires : instant(model.expiresAtMs),
    size_vram: 0,
    context_length: model.limits.contextTokens ?? 0,
  };
}

/**
 * Answer of `POST /api/show`. Templates here are Jinja, not Go's.
 * @param version of this service.
 */
export function toShow(model: CatalogModel, version: string) {
  const { chatTemplate = "" } = model.details;
  const { contextTokens } = model.limits;
  const parameters = contextTokens === undefined ? "" : `${"num_ctx".padEnd(30)} ${contextTokens}`;
  return {
    modelfile: toModelfile(model, version),
    ...(parameters === "" ? {} : { parameters }),
    template: chatTemplate,
    details: toDetails(model),
    model_info: toModelInfo(model),
    capabilities: toCapabilities(model.capabilities),
    modified_at: instant(model.createdAtMs),
  };
}

function toDetails({ details }: CatalogModel) {
  const family = details.family ?? "";
  return {
    parent_model: "",
    format: details.format ?? "",
    family,
    families: family === "" ? [] : [family],
    parameter_size: details.parameters === undefined ? "" : humanNumber(details.parameters),
    quantization_level: details.quantization ?? "",
  };
}

function toModelfile({ id, details, limits }: CatalogModel, version: string): string {
  const lines = [`# Modelfile made by Plenum ${version}`, "", `FROM ${id}`];
  if (details.chatTemplate !== undefined) lines.push(`TEMPLATE """${details.chatTemplate}"""`);
  if (limits.contextTokens !== undefined) lines.push(`PARAMETER num_ctx ${limits.contextTokens}`);
  return `${lines.join("\n")}\n`;
}

/** The file's own header, with what clients look up in it filled in from the catalog. */
function toModelInfo({ details, limits }: CatalogModel): Record<string, unknown> {
  const { metadata = {}, family, parameters, trainedContextTokens } = details;
  const architecture = String(metadata["general.architecture"] ?? family ?? "");
  const known: Record<string, unknown> = {
    "general.architecture": architecture,
    "general.parameter_count": parameters,
  };
  if (architecture !== "") {
    known[`${architecture}.context_length`] = trainedContextTokens ?? limits.contextTokens;
    known[`${architecture}.embedding_length`] = limits.embeddingDimensions;
  }
  const entries = Object.entries({ ...known, ...metadata }).filter(([, value]) => value !== undefined && value !== "");
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function toCapabilities(capabilities: Capabilities): string[] {
  const words: [string, boolean][] = [
    ["completion", capabilities.chat || capabilities.completion],
    ["embedding", capabilities.embeddings],
    ["vision", capabilities.vision],
    ["tools", capabilities.tools],
    ["insert", capabilities.insert],
    ["thinking", capabilities.reasoning],
  ];
  return words.flatMap(([word, isAble]) => (isAble ? [word] : []));
}

const digests = new WeakMap<CatalogModel, string>();

/**
 * Ollama's digest is that of a model's manifest, so two names over the same weights have two. Here it is the SHA-256 of
 * what this door says of the model: its own for each model, and another one when its abilities change (clients keep
 * what they learnt of a model by it).
 */
function digestOf(model: CatalogModel): string {
  let digest = digests.get(model);
  if (digest === undefined) {
    const { id, capabilities, details, createdAtMs } = model;
    const identity = [id, details, toCapabilities(capabilities), details.digest === undefined ? createdAtMs : 0];
    digest = createHash("sha256").update(JSON.stringify(identity)).digest("hex");
    digests.set(model, digest);
  }
  return digest;
}

/** `134.52M`, `7.2B`, as Ollama writes counts. */
export function humanNumber(count: number): string {
  if (count >= 1e9) return `${decimals(count / 1e9, 1)}B`;
  if (count >= 1e6) return `${decimals(count / 1e6, 2)}M`;
  return count >= 1e3 ? `${(count / 1e3).toFixed(0)}K` : String(count);
}

function decimals(value: number, places: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(places);
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}
