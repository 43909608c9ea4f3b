import type { RuntimeSettings } from "./runtime.ts";

/** A runtime as the settings hold it. */
export interface KeptRuntime {
  readonly settings: RuntimeSettings;
  readonly source: "added" | "approved";
  readonly addedAtMs: number;
}

/** What was kept, when it still has the form; a list so that what has not is left out. */
export function readKept(value: unknown): readonly KeptRuntime[] {
  return isKept(value) ? [value] : [];
}

function isKept(value: unknown): value is KeptRuntime {
  if (!isObject(value) || !isObject(value["settings"])) return false;
  const { source, addedAtMs, settings } = value;
  const isComplete = ["id", "kind", "url"].every((name) => typeof settings[name] === "string");
  return isComplete && (source === "added" || source === "approved") && typeof addedAtMs === "number";
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
