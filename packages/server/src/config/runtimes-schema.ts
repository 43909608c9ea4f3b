import { parseEndpoint } from "@plenum/nnrp";
import { z } from "zod";
import { list, oneOf, pattern, section, text, wholeNumber } from "./options.ts";

/** Section `runtimes`: servers that run models, by name. */

const name = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/);
const headerName = z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/);

function isServerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && `${username}${password}${search}${hash}` === "";
}

/** An address of NNRP that says where to connect to. */
function isNnrpUrl(text: string): boolean {
  try {
    const endpoint = parseEndpoint(text);
    if (endpoint.kind === "application") return endpoint.application.port !== undefined;
    const { locator } = endpoint;
    return locator.carrier !== "quic" && !(locator.carrier === "websocket" && locator.target.includes("?"));
  } catch {
    return false;
  }
}

const nnrpUrlError =
  "an address such as nnrp://127.0.0.1:7412, nnrps://host:7412, wss://host/nnrp or unix:///run/nnrp.sock, without user, " +
  "password or query (a key goes into api_key_env)";
const urlError = "a URL such as http://127.0.0.1:8000, without user, password or query (a key goes into api_key_env)";

/** Options that a runtime has wherever it is named. */
const runtimeOptions = {
  kind: oneOf("What it speaks; lmsp: another Plenum, or another service of the native interface.", [
    "ollama",
    "openai-compatible",
    "llama-server",
    "vllm",
    "lm-studio",
    "nnrp",
    "lmsp",
  ]),
  url: z
    .string({ error: urlError })
    .describe(
      "Base URL, http or https, without /v1 or /api. For nnrp: its address, nnrp, nnrps, tcp, tls, ws, wss, unix or npipe.",
    ),
  api_key: text("Sent as a bearer token. Absent: none.", "a key").optional(),
  headers: z
    .record(
      headerName,
      pattern("Sent with every request to it.", /^[\t\x20-\x7e\x80-\xff]*$/, "the header's value as one line of text"),
      { error: "a mapping from header name to value" },
    )
    .default({}),
  parallel: wholeNumber(
    "Responses that one of its models runs at once; more wait in the queue. Absent: as its kind has it.",
    1,
    65_536,
  ).optional(),
  head_timeout_ms: wholeNumber(
    "Milliseconds until its answer begins, which may be after it has read the prompt; then backend-error. Absent: 600000.",
    100,
    86_400_000,
  ).optional(),
  silence_timeout_ms: wholeNumber(
    "Milliseconds in which nothing comes of an answer that has begun; then backend-error. Absent: 300000.",
    100,
    86_400_000,
  ).optional(),
  models: list(
    "Its models that are offered, by its own names or patterns with `*`. Absent: every model.",
    text("A name or pattern.", "a model name or a pattern with *"),
    "a list of model names",
  ).optional(),
};

const { kind, url, api_key, ...furtherOptions } = runtimeOptions;

const runtimeSection = section({
  kind,
  url,
  api_key,
  api_key_env: pattern(
    "Name of the environment variable that holds the key; keeps it out of the file.",
    /^[A-Za-z_][A-Za-z0-9_]*$/,
    "the name of an environment variable",
  ).optional(),
  ca: text(
    "PEM file of certificates to trust instead of the platform's, for addresses with TLS of kind nnrp.",
    "a file",
  ).optional(),
  ...furtherOptions,
});

interface Address {
  readonly kind: string;
  readonly url: string;
}

function checkUrl({ kind, url }: Address, context: z.RefinementCtx): void {
  const isNnrp = kind === "nnrp";
  if (isNnrp ? isNnrpUrl(url) : isServerUrl(url)) return;
  context.addIssue({ code: "custom", path: ["url"], message: isNnrp ? nnrpUrlError : urlError });
}

const runtime = runtimeSection.superRefine((value, context) => {
  if (value.ca !== undefined && value.kind !== "nnrp") {
    context.addIssue({ code: "custom", path: ["ca"], message: "no `ca`, which only kind nnrp has" });
  }
  checkUrl(value, context);
});

/**
 * A runtime that is named while the service runs. It names no environment variable and no file: whoever may add a runtime
 * must not read the service's machine by it.
 */
export const addedRuntimeSchema = z.object({ id: name, ...runtimeOptions }).superRefine(checkUrl);
export const strictAddedRuntimeSchema = z.strictObject({ id: name, ...runtimeOptions }).superRefine(checkUrl);

/** A mapping from the runtime's name, which is its id in the catalog. */
export const runtimesSchema = z
  .record(name, runtime, { error: "a mapping from the runtime's name to its settings" })
  .default({});

export type RuntimeFile = z.output<typeof runtime>;
