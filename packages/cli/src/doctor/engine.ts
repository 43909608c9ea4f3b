import { basename } from "node:path";
import type { ModelFit } from "@plenum/server";
import { type Check, sizeText } from "./check.ts";
import type { Places } from "./places.ts";

/** The library of the embedded engine, which must be of one version. */
export async function checkLibrary(): Promise<Check> {
  const { installedVersion, libraryProblem } = await import("@plenum/server");
  const version = installedVersion();
  const problem = libraryProblem(version);
  if (problem !== undefined) {
    return { id: "engine", state: "problem", detail: `Engine: ${problem}`, todo: ["npm ci"] };
  }
  return { id: "engine", state: "ok", detail: `Engine: node-llama-cpp ${version}`, data: { version } };
}

/** The model files, and whether each fits into the memory that is free. */
export async function checkModels({ models, config }: Places): Promise<Check> {
  if (config?.embedded.enabled === false) {
    return { id: "models", state: "note", detail: "Models: the embedded engine is off (embedded.enabled: false)" };
  }
  const { embeddedOptions, findModelFits } = await import("@plenum/server");
  const fits = await findModelFits(config === undefined ? { paths: [models] } : embeddedOptions(config));
  const data = { folder: models, files: fits.map(fitJson) };
  if (fits.length === 0) {
    const todo = ["plenum serve   (fetches a small model, 94 MiB)", `or put a GGUF file into ${models}`];
    return { id: "models", state: "note", detail: `Models: none in ${models}`, todo, data };
  }
  const broken = fits.filter(({ problem }) => problem !== undefined);
  const large = fits.filter((fit) => fit.problem === undefined && !isFitting(fit));
  const todo = [
    ...(broken.length > 0 ? ["fetch the files that can't be used again, or remove them"] : []),
    ...(large.length > 0 ? ["lower embedded.parallel or embedded.context_tokens, or take a smaller quantization"] : []),
  ];
  return {
    id: "models",
    state: broken.length > 0 ? "problem" : large.length > 0 ? "note" : "ok",
    detail: `Models: ${fits.length} in ${models}`,
    lines: fits.map(fitLine),
    ...(todo.length > 0 && { todo }),
    data,
  };
}

function isFitting({ neededBytes, freeBytes }: ModelFit): boolean {
  return neededBytes <= freeBytes;
}

function fitLine(fit: ModelFit): string {
  if (fit.problem !== undefined) return `${fit.name}: ${fit.problem}`;
  const needs = `needs ${sizeText(fit.neededBytes)} with a context of ${fit.contextTokens} tokens`;
  return `${fit.name}: ${needs}, ${isFitting(fit) ? "fits" : `does not fit: ${sizeText(fit.freeBytes)} are free`}`;
}

function fitJson(fit: ModelFit): object {
  return {
    model: fit.name,
    file: basename(fit.path),
    size_bytes: fit.sizeBytes,
    context_tokens: fit.contextTokens,
    needed_bytes: fit.neededBytes,
    fits: fit.problem === undefined && isFitting(fit),
    ...(fit.problem !== undefined && { problem: fit.problem }),
  };
}
