import type { ServiceDocument } from "../service.ts";

/** Bytes of a document; what is longer is none. */
const mostBytes = 65_536;

export interface DocumentOptions {
  /** `http://10.0.0.7:7411` */
  readonly baseUrl: string;
  /** Milliseconds that all of it may take. Default 3000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Fetches the document of a service that nobody knows yet: no redirect is followed, nothing long or slow is waited for,
 * and no token is sent.
 * @returns undefined for everything that is no document of LMSP 1. Never rejects.
 */
export async function fetchServiceDocument(options: DocumentOptions): Promise<ServiceDocument | undefined> {
  const { baseUrl, timeoutMs = 3_000, signal } = options;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const answer = await fetch(`${baseUrl}/.well-known/lmsp`, {
      headers: { accept: "application/json" },
      redirect: "error",
      signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
    });
    const text = await readText(answer);
    return text === undefined ? undefined : parseDocument(text);
  } catch {
    // Nobody is there, or it is no service: both are answered by finding none.
    return undefined;
  }
}

async function readText(answer: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  if (answer.status !== 200 || answer.body === null) {
    await answer.body?.cancel();
    return undefined;
  }
  for await (const chunk of answer.body) {
    bytes += chunk.byteLength;
    if (bytes > mostBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** What is used of the document is looked at; the rest is as the service says. */
function parseDocument(text: string): ServiceDocument | undefined {
  const value: unknown = JSON.parse(text);
  if (!isObject(value) || !isObject(value["service"]) || !isObject(value["auth"])) return undefined;
  const { lmsp_version: version, service, auth, interfaces } = value;
  if (typeof version !== "string" || !/^1\.\d+$/.test(version) || !Array.isArray(interfaces)) return undefined;
  const { id, name } = service;
  if (typeof id !== "string" || typeof name !== "string" || typeof auth["required"] !== "boolean") return undefined;
  const entries = interfaces.filter((entry): entry is ServiceDocument["interfaces"][number] => {
    return isObject(entry) && typeof entry["kind"] === "string" && typeof entry["url"] === "string";
  });
  if (!entries.some(({ kind }) => kind === "lmsp")) return undefined;
  const software = isObject(service["software"]) ? service["software"] : {};
  return {
    lmsp_version: version,
    service: {
      id,
      name: readable(name),
      software: { name: readable(String(software["name"])), version: readable(String(software["version"])) },
    },
    auth: { required: auth["required"], schemes: ["bearer"] },
    interfaces: entries.slice(0, mostInterfaces),
  };
}

const mostInterfaces = 64;

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A stranger's text as terminals and lists may show it. */
function readable(text: string): string {
  return text.replace(/\p{Cc}/gu, "").slice(0, 100);
}
