import { basename } from "node:path";
import { CoreError } from "@plenum/core";
import type { EngineFailure } from "./messages.ts";

/** A failure of one request, as the child told it, in the core's words. */
export function requestError(failure: EngineFailure, model: string, cause?: unknown): CoreError {
  const { limit, requested } = failure;
  const numbers = { ...(limit === undefined ? {} : { limit }), ...(requested === undefined ? {} : { requested }) };
  const details = { model, ...numbers };
  const options = cause === undefined ? {} : { cause };
  switch (failure.kind) {
    case "context-length":
      return new CoreError(
        "context-length-exceeded",
        `${failure.message} The context of ${model} holds ${limit ?? "fewer"}, the answer included; shorten the input or let it be truncated.`,
        { ...details, param: "input" },
        options,
      );
    case "empty-prompt":
      return invalid(`${failure.message} Give at least one character.`, "input", details);
    case "bad-grammar":
      return invalid(
        "The output format can't be held by the engine: its grammar is not accepted.",
        "output.format",
        details,
      );
    case "bad-bias":
      return invalid(`${failure.message} Use the model's own token ids.`, "sampling.logit_bias", details);
    case "bad-token":
      return invalid(`${failure.message} Use the model's own token ids, or send text.`, "input", details);
    case "bad-dimensions":
      return invalid(`${failure.message} Ask for at most that many.`, "dimensions", details);
    case "no-infill":
      return new CoreError(
        "unsupported-capability",
        `${model} can't fill in the middle; leave the suffix out or use a model for code completion.`,
        { model, capability: "insert", param: "input.suffix" },
      );
    case "aborted":
    case "engine":
    case "memory":
    case "model-file":
      return new CoreError(
        "backend-error",
        `The engine failed at ${model}: ${sentence(failure.message)}`,
        { model },
        options,
      );
  }
}

/** Why a model could not be loaded; names the file and what to do. */
export function loadError(failure: EngineFailure, model: string, path: string): CoreError {
  const file = basename(path);
  if (failure.kind === "memory") {
    const what = `${model} does not fit into memory; lower its contextTokens or parallel, or unload another model.`;
    return new CoreError("insufficient-memory", what, { model }, { cause: failure.message });
  }
  const what =
    failure.kind === "model-file"
      ? `The engine can't read ${file}: ${sentence(failure.message)} Fetch the file again or remove it.`
      : `The engine could not start for ${file}: ${sentence(failure.message)}`;
  return new CoreError("backend-error", what, { model });
}

export function notFound(model: string): CoreError {
  return new CoreError("model-not-found", `There is no model ${model} here; the list of models tells what there is.`, {
    model,
    param: "model",
  });
}

export function inUse(model: string): CoreError {
  return new CoreError("conflict", `${model} is in use; wait until its responses have ended.`, { model });
}

/** @param capability in the catalog's words @param what what was asked for, as "chat with" */
export function unsupported(model: string, capability: string, what: string): CoreError {
  return new CoreError("unsupported-capability", `${model} can't ${what}; choose a model that can.`, {
    model,
    capability,
  });
}

export function invalid(detail: string, param: string, details: object = {}): CoreError {
  return new CoreError("invalid-request", detail, { ...details, param });
}

/** The child ended under its requests. */
export function engineLost(model: string, how: string, log: string): CoreError {
  return new CoreError(
    "backend-unavailable",
    `The engine process of ${model} ended (${how}); it is started again, so send the request once more.`,
    { model },
    { cause: log },
  );
}

function sentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`;
}
