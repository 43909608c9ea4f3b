import { basename } from "node:path";
import { type Capability, CoreError, type ModelDetails, toCoreError } from "@plenum/core";
import { createChatFormat } from "./chat-format/index.ts";
import { type GgufHeader, readGgufHeader } from "./gguf/header.ts";
import { GgufFormatError } from "./gguf/header-reader.ts";
import { type ModelFacts, modelFacts } from "./gguf/model-facts.ts";
import type { ModelFile } from "./model-files.ts";

/** A model file after its header was read. */
export interface InspectedModel {
  readonly file: ModelFile;
  /** Undefined when the file can't be used; `problem` then says why. */
  readonly facts: ModelFacts | undefined;
  readonly problem: string | undefined;
  readonly details: ModelDetails;
  readonly format: { readonly tools: boolean; readonly toolsEmulated: boolean; readonly reasoning: boolean };
  readonly hasInfillTokens: boolean;
}

/** Metadata values longer than this are left out of the catalog; the chat template has a field of its own. */
const longestMetadataText = 1_024;

/** Reads what the catalog shows of a file. Never throws: a file that can't be used is a model with a problem. */
export async function inspectModel(file: ModelFile): Promise<InspectedModel> {
  try {
    const header = await readWholeHeader(file);
    const facts = modelFacts(header);
    const problem =
      facts.use === "reranking"
        ? `${basename(file.path)} is a model for reranking, which Plenum does not run.`
        : undefined;
    return {
      file,
      facts,
      problem,
      details: detailsOf(header, facts, file),
      format: formatOf(facts),
      hasInfillTokens: header.hasInfillTokens,
    };
  } catch (error) {
    const format = { tools: false, toolsEmulated: false, reasoning: false };
    const details = { format: "gguf", sizeBytes: file.sizeBytes };
    return { file, facts: undefined, problem: problemOf(file.path, error), details, format, hasInfillTokens: false };
  }
}

/** The first file's header with the weights of all parts counted. */
async function readWholeHeader({ path, furtherPaths = [], missingParts = [] }: ModelFile): Promise<GgufHeader> {
  const header = await readGgufHeader(path);
  if (missingParts.length > 0) {
    throw new GgufFormatError(`is part of a split model of which ${missingParts.join(", ")} is missing`);
  }
  let { parameters } = header;
  for (const further of furtherPaths) parameters += (await readGgufHeader(further)).parameters;
  return { ...header, parameters };
}

/** Capabilities that are not the model's own but made by this backend. */
export function emulatedBy({ format }: InspectedModel): readonly Capability[] {
  return format.tools && format.toolsEmulated ? ["tools"] : [];
}

function formatOf(facts: ModelFacts): InspectedModel["format"] {
  if (facts.use !== "text") return { tools: false, toolsEmulated: false, reasoning: false };
  const { chatTemplate } = facts;
  return createChatFormat({
    ...(chatTemplate === undefined ? {} : { template: chatTemplate }),
    specialTokens: [],
  }).capabilities;
}

function detailsOf(header: GgufHeader, facts: ModelFacts, file: ModelFile): ModelDetails {
  const short = [...header.metadata].filter(([key, value]) => {
    return key !== "tokenizer.chat_template" && !(typeof value === "string" && value.length > longestMetadataText);
  });
  const { chatTemplate, trainedContextTokens } = facts;
  return {
    family: facts.architecture,
    parameters: header.parameters,
    format: "gguf",
    sizeBytes: file.sizeBytes,
    metadata: Object.fromEntries(short),
    ...(header.quantization === undefined ? {} : { quantization: header.quantization }),
    ...(chatTemplate === undefined ? {} : { chatTemplate }),
    ...(trainedContextTokens === undefined ? {} : { trainedContextTokens }),
  };
}

function problemOf(path: string, error: unknown): string {
  const name = basename(path);
  if (error instanceof GgufFormatError) return `${name} ${error.message}. Fetch it again or remove it.`;
  if (error instanceof CoreError) return `${name} can't be used: ${error.message}`;
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT") return `${name} is missing; put the file back or take it out of the configuration.`;
  if (code === "EACCES") return `${name} may not be read by this service; change its permissions.`;
  return `${name} can't be read: ${toCoreError(error).message}`;
}
