import type { RuntimeConfig } from "./config.ts";
import type { ConfigPath } from "./config-document.ts";
import type { Environment } from "./overrides.ts";
import type { RuntimeFile } from "./runtimes-schema.ts";

/** What is wrong with a runtime beyond its form. Never holds a key, nor what may be one. */
export interface RuntimeMistake {
  readonly path: ConfigPath;
  readonly detail: string;
}

/** Names that other backends have. */
const takenNames: readonly string[] = ["embedded"];

/** Mistakes that only the environment and the other names tell. */
export function runtimeMistakes(runtimes: Readonly<Record<string, RuntimeFile>>, env: Environment): RuntimeMistake[] {
  return Object.entries(runtimes).flatMap(([name, { api_key, api_key_env }]) => {
    const path = ["runtimes", name];
    if (takenNames.includes(name)) return [{ path, detail: "this name is taken; choose another one" }];
    if (api_key_env === undefined) return [];
    if (api_key !== undefined) {
      return [{ path: [...path, "api_key_env"], detail: "there is an api_key too; keep one of them" }];
    }
    // The name is not repeated: somebody may have put the key itself here.
    if (env[api_key_env]) return [];
    return [{ path: [...path, "api_key_env"], detail: "the environment variable of this name is not set" }];
  });
}

/** In the file's order. */
export function toRuntimes(
  runtimes: Readonly<Record<string, RuntimeFile>>,
  env: Environment,
  pathOf: (path: string) => string,
): RuntimeConfig[] {
  return Object.entries(runtimes).map(([name, runtime]) => {
    const apiKey = runtime.api_key ?? (runtime.api_key_env === undefined ? undefined : env[runtime.api_key_env]);
    return {
      name,
      kind: runtime.kind,
      url: runtime.url.replace(/\/+$/, ""),
      ...(apiKey !== undefined && { apiKey }),
      ...(runtime.ca !== undefined && { ca: pathOf(runtime.ca) }),
      headers: runtime.headers,
      ...(runtime.parallel !== undefined && { parallel: runtime.parallel }),
      ...(runtime.head_timeout_ms !== undefined && { headTimeoutMs: runtime.head_timeout_ms }),
      ...(runtime.silence_timeout_ms !== undefined && { silenceTimeoutMs: runtime.silence_timeout_ms }),
      ...(runtime.models !== undefined && { models: runtime.models }),
    };
  });
}
