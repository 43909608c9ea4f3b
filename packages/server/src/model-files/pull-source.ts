import { isAbsolute } from "node:path";
import { fileURLToPath } from "node:url";
import { CoreError } from "@plenum/core";
import { isAllowedUrl } from "./remote-file.ts";

/** Where a model comes from, as `model.pull` and `plenum pull` name it. */
export type PullSource =
  /** Repository of the hub. `variant`: a quantization or a file's name; absent: the one that suits most. */
  | { readonly kind: "hub"; readonly owner: string; readonly repository: string; readonly variant?: string }
  /** By the name that an Ollama runtime gives it. */
  | { readonly kind: "ollama"; readonly name: string }
  /** `sha256`: one for each file of a split model, in order; empty: nothing is expected. */
  | { readonly kind: "url"; readonly url: string; readonly sha256: readonly string[] }
  /** A file or a folder of this machine, absolute. */
  | { readonly kind: "local"; readonly path: string }
  | { readonly kind: "starter" }
  /** A bare name: whatever can provide it. */
  | { readonly kind: "name"; readonly name: string };

const longestSource = 4096;
const hubPart = /^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/;
const variantForm = /^[A-Za-z0-9][A-Za-z0-9._+/-]{0,255}$/;
const modelName = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}$/;
const digest = /^[0-9a-f]{64}$/;

const forms =
  "hf:owner/repository[:quantization], ollama:name, an https URL of a .gguf file, an absolute path of a .gguf file or a folder, or starter";

/**
 * @param sha256 expected digests beside the source's own, comma-separated for a split model. Absent: none
 * @throws CoreError invalid-request with `param`
 */
export function parsePullSource(source: string, sha256?: string): PullSource {
  const parsed = parseText(source.trim());
  if (sha256 === undefined) return parsed;
  if (parsed.kind !== "url")
    throw invalid("sha256 is for https sources; the others have hashes of their own.", "sha256");
  const digests = digestsOf(sha256, "sha256");
  if (parsed.sha256.length > 0 && parsed.sha256.join() !== digests.join()) {
    throw invalid("sha256 differs from the one that the source has.", "sha256");
  }
  return { ...parsed, sha256: digests };
}

function parseText(text: string): PullSource {
  if (text.length > longestSource) throw invalid(`A source has at most ${longestSource} characters.`);
  if (text === "starter") return { kind: "starter" };
  if (text.startsWith("hf:")) return parseHub(text.slice(3));
  const hosted = /^(?:hf\.co|huggingface\.co)\/(.+)$/.exec(text)?.[1];
  if (hosted !== undefined) return parseHub(hosted);
  if (text.startsWith("ollama:")) return { kind: "ollama", name: requireName(text.slice(7)) };
  if (/^https?:\/\//i.test(text)) return parseUrl(text);
  if (text.startsWith("file:")) return { kind: "local", path: pathOf(text) };
  if (isAbsolute(text)) return { kind: "local", path: requirePath(text) };
  if (/^[.~]/.test(text) || /\.gguf$/i.test(text) || text.includes("\\")) {
    throw invalid("Give an absolute path: the service has a working folder of its own.");
  }
  return { kind: "name", name: requireName(text) };
}

function parseHub(text: string): PullSource {
  const [, owner = "", repository = "", variant] = /^([^/:]*)\/([^/:]*)(?::(.*))?$/.exec(text) ?? [];
  const isRepository = hubPart.test(owner) && hubPart.test(repository) && !`${owner}${repository}`.includes("..");
  if (!isRepository)
    throw invalid("A hub source is hf:owner/repository[:quantization], such as hf:bartowski/Qwen3-4B-GGUF:Q4_K_M.");
  if (variant === undefined) return { kind: "hub", owner, repository };
  if (!variantForm.test(variant) || variant.includes("..")) {
    throw invalid("What stands behind the repository is a quantization (Q4_K_M) or the name of a .gguf file.");
  }
  return { kind: "hub", owner, repository, variant };
}

function parseUrl(text: string): PullSource {
  if (!URL.canParse(text)) throw invalid("This is no URL.");
  const url = new URL(text);
  if (!isAllowedUrl(url)) throw invalid("Only https addresses are asked, or http on this machine.");
  if (url.username !== "" || url.password !== "") throw invalid("Leave user and password out of the URL.");
  const fragment = url.hash;
  url.hash = "";
  if (fragment === "") return { kind: "url", url: url.href, sha256: [] };
  const written = /^#sha256[=:](.*)$/.exec(fragment)?.[1];
  if (written === undefined) throw invalid("Behind # stands sha256= and 64 hex digits.");
  return { kind: "url", url: url.href, sha256: digestsOf(written, "source") };
}

function digestsOf(text: string, param: string): readonly string[] {
  const digests = text
    .toLowerCase()
    .split(",")
    .map((one) => one.trim());
  if (digests.every((one) => digest.test(one))) return digests;
  throw invalid("A sha256 has 64 hex digits; a split model has one for each file, separated by commas.", param);
}

function pathOf(text: string): string {
  try {
    return requirePath(fileURLToPath(text));
  } catch (error) {
    if (error instanceof CoreError) throw error;
    throw invalid("A file URL is file:/// and an absolute path of this machine.");
  }
}

function requirePath(path: string): string {
  if (path.includes("\0")) throw invalid("A path has no zero bytes.");
  return path;
}

function requireName(name: string): string {
  if (modelName.test(name) && !name.includes("..")) return name;
  throw invalid(`This names no model. A source is ${forms}.`);
}

function invalid(detail: string, param = "source"): CoreError {
  return new CoreError("invalid-request", detail, { param });
}

/** The same text for the same source, without what may be secret: two pulls of one are one. */
export function keyOfSource(source: PullSource): string {
  switch (source.kind) {
    case "hub":
      return `hf:${source.owner}/${source.repository}${source.variant === undefined ? "" : `:${source.variant}`}`.toLowerCase();
    case "url":
      return source.url;
    case "local":
      return source.path;
    case "starter":
      return "starter";
    case "ollama":
    case "name":
      return `${source.kind}:${source.name}`;
  }
}
