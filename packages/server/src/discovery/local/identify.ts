import { type ProbeAnswer, probeGet } from "./probe-get.ts";

export type LocalRuntimeKind = "ollama" | "llama-server" | "vllm" | "lm-studio" | "jan" | "openai-compatible";

type Ask = (path: string) => Promise<ProbeAnswer | undefined>;

/**
 * What answers on a loopback port. A program that is no model server gets two requests and no more.
 * @returns undefined when it is none, another Plenum, one that wants a key, or did not answer before the signal
 */
export async function identify(port: number, signal: AbortSignal): Promise<LocalRuntimeKind | undefined> {
  const ask: Ask = (path) => probeGet(port, path, signal);
  const document = await ask("/.well-known/lmsp");
  if (document === undefined || isPlenum(document)) return undefined;
  if (isLlamaServer(document)) return "llama-server";
  const models = await ask("/v1/models");
  const owners = ownersOf(models);
  if (owners === undefined) return undefined;
  if (owners.includes("vllm")) return "vllm";
  return (await isOllama(ask)) ? "ollama" : await isApp(ask);
}

function isPlenum({ status, body }: ProbeAnswer): boolean {
  return status === 200 && hasText(body, "lmsp_version");
}

/** Its header stands in every answer, also while the model loads. */
function isLlamaServer({ headers }: ProbeAnswer): boolean {
  return typeof headers["server"] === "string" && headers["server"].startsWith("llama.cpp");
}

async function isOllama(ask: Ask): Promise<boolean> {
  const version = await ask("/api/version");
  if (version?.status !== 200 || !hasText(version.body, "version")) return false;
  return (await ask("/"))?.text.trim() === "Ollama is running";
}

/** Desktop programs, told by what only they have. */
async function isApp(ask: Ask): Promise<LocalRuntimeKind> {
  const own = await ask("/api/v0/models");
  if (own?.status === 200 && ownersOf(own) !== undefined) return "lm-studio";
  const description = await ask("/openapi.json");
  const info = description?.status === 200 ? member(description.body, "info") : undefined;
  const title = member(info, "title");
  return typeof title === "string" && /^jan\b/i.test(title) ? "jan" : "openai-compatible";
}

/** Who owns the models of a list in OpenAI's form; undefined: it is none. */
function ownersOf(answer: ProbeAnswer | undefined): readonly string[] | undefined {
  if (answer?.status !== 200) return undefined;
  const data = member(answer.body, "data");
  // Ollama says null when it has no model.
  const list = data === null && member(answer.body, "object") === "list" ? [] : data;
  if (!Array.isArray(list)) return undefined;
  const entries: readonly unknown[] = list;
  if (!entries.every((entry) => hasText(entry, "id"))) return undefined;
  return entries.map((entry) => String(member(entry, "owned_by")));
}

function hasText(value: unknown, name: string): boolean {
  return typeof member(value, name) === "string";
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? new Map(Object.entries(value)).get(name) : undefined;
}
