import type { z } from "zod";
import type { ConfigDocument, ConfigPath } from "./config-document.ts";
import { isRecord } from "./config-document.ts";
import { knownKeys } from "./known-options.ts";
import { nearMiss } from "./near-miss.ts";
import type { Override } from "./overrides.ts";

interface Explained {
  readonly document: ConfigDocument | undefined;
  readonly overrides: readonly Override[];
  readonly data: Readonly<Record<string, unknown>>;
}

/** One line for each mistake: where, which option, what is expected, what stands there. */
export function explainIssues(issues: readonly z.core.$ZodIssue[], source: Explained): readonly string[] {
  return issues.flatMap((issue) => {
    const path = issue.path.map((key) => (typeof key === "number" ? key : String(key)));
    if (issue.code === "unrecognized_keys") return issue.keys.map((key) => explainUnknownKey(path, key, source));
    if (issue.code === "invalid_key") return [explainBadName(path, source)];
    const place = placeOf(path, source);
    const found = valueAt(source.data, path);
    if (found === undefined) return [`${place}  ${showPath(path)} is missing: expected ${issue.message}`];
    return [`${place}  ${showPath(path)}: expected ${issue.message}${showFound(path, found)}`];
  });
}

function explainUnknownKey(path: ConfigPath, key: string, source: Explained): string {
  const place = source.document?.placeOfKey(path, key) ?? "configuration";
  const known = knownKeys(path);
  const meant = nearMiss(key, known);
  const help = meant === undefined ? `known here: ${known.join(", ")}` : `did you mean "${meant}"?`;
  return `${place}  ${showPath([...path, key])}: unknown option; ${help}`;
}

/** A key of a mapping whose keys are names; a header's name is shown, since a secret stands in its value. */
function explainBadName(path: ConfigPath, source: Explained): string {
  const place = source.document?.placeOfKey(path.slice(0, -1), String(path.at(-1))) ?? "configuration";
  const expected = path.includes("headers")
    ? "a header's name"
    : "a name of up to 64 letters, digits, . _ - that begins with a letter or digit";
  return `${place}  ${showPath(path)}: expected ${expected}`;
}

function placeOf(path: ConfigPath, source: Explained): string {
  const override = source.overrides.find(
    ({ path: set }) => set.length <= path.length && set.every((key, place) => key === path[place]),
  );
  return override?.origin ?? source.document?.placeOfValue(path) ?? "configuration";
}

/** `auth.tokens[0].scopes` */
export function showPath(path: ConfigPath): string {
  if (path.length === 0) return "the file";
  return path.reduce<string>((shown, key) => {
    if (typeof key === "number") return `${shown}[${key}]`;
    return shown === "" ? key : `${shown}.${key}`;
  }, "");
}

/** Options whose value may be a secret, or hold one, also when it has the wrong form: it is not repeated. */
const secretive: ReadonlySet<string | number> = new Set(["token_sha256", "api_key", "api_key_env", "headers", "url"]);

function showFound(path: ConfigPath, found: unknown): string {
  if (path.some((key) => secretive.has(key)) || (path[0] === "runtimes" && path.length <= 2)) return "";
  const shown = JSON.stringify(found) ?? typeof found;
  return `, got ${shown.length > 60 ? `${shown.slice(0, 57)}…` : shown}`;
}

function valueAt(data: unknown, path: ConfigPath): unknown {
  let value = data;
  for (const key of path) {
    if (Array.isArray(value) && typeof key === "number") value = value[key];
    else if (isRecord(value)) value = value[key];
    else return undefined;
  }
  return value;
}
