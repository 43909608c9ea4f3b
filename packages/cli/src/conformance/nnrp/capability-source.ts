import { readFile } from "node:fs/promises";
import { parseEndpoint } from "@plenum/nnrp";
import { type CapabilityDocument, readCapabilityDocument } from "@plenum/profile";
import { CommandError } from "../../report-error.ts";
import { toEnvelope } from "./profile-case.ts";
import { type Target, visit } from "./visit.ts";

/** Where services publish the document over HTTP. */
const wellKnownPath = "/.well-known/nnrp-openai-compatible";

/** Longest wait for a page, in milliseconds. */
const pageTimeoutMs = 10_000;

export interface CapabilitySource {
  /** As given: `ws://host:port/path`. */
  readonly endpoint: string;
  readonly target: Target;
  /** A file or an HTTP address. */
  readonly from: string | undefined;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
}

/**
 * The service's capability document: of the file or address that was given, else of the well-known page beside a
 * WebSocket address, else of `models.list`.
 * @throws CommandError when there is none, or it is wrong.
 */
export async function loadCapabilities(source: CapabilitySource): Promise<CapabilityDocument> {
  const { from } = source;
  if (from === undefined) return (await beside(source)) ?? (await listed(source));
  if (!/^https?:\/\//.test(from)) return read(await parsed(await readFile(from, "utf8"), from), from);
  const response = await ask(source, from);
  if (response?.ok) return read(await parsed(await response.text(), from), from);
  throw new CommandError(
    `${from} gives no capability document${response === undefined ? "" : ` (status ${response.status})`}.`,
  );
}

async function beside(source: CapabilitySource): Promise<CapabilityDocument | undefined> {
  const endpoint = parseEndpoint(source.endpoint);
  if (endpoint.kind === "application" || endpoint.locator.carrier !== "websocket") return undefined;
  const url = new URL(wellKnownPath, source.endpoint.replace(/^ws/, "http")).href;
  const response = await ask(source, url);
  return response?.ok ? read(await parsed(await response.text(), url), url) : undefined;
}

async function ask({ fetch, target }: CapabilitySource, url: string): Promise<Response | undefined> {
  const headers = target.token === undefined ? {} : { authorization: `Bearer ${target.token}` };
  try {
    return await fetch(url, { headers, signal: AbortSignal.timeout(pageTimeoutMs) });
  } catch {
    return undefined;
  }
}

async function listed({ target }: CapabilitySource): Promise<CapabilityDocument> {
  const { observation } = await visit(target, ({ ask }) => ask(toEnvelope(target, "models.list", {})));
  const last = observation.events.at(-1);
  const body = last?.["body"];
  const document = typeof body === "object" && body !== null && "nnrp" in body ? body.nnrp : undefined;
  if (document !== undefined) return read(document, "models.list");
  throw new CommandError("The service tells no capability document by models.list: name it with --capabilities.");
}

async function parsed(text: string, from: string): Promise<unknown> {
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandError(`${from} is no JSON.`);
  }
}

function read(value: unknown, from: string): CapabilityDocument {
  const result = readCapabilityDocument(value);
  if (result.ok) return result.document;
  throw new CommandError(`The capability document of ${from} is wrong: ${result.message}`);
}

/** What a document claims, in the suite's tokens. */
export function claimsOf({ compatibility_levels: levels, operations, extensions }: CapabilityDocument): Set<string> {
  const claims = new Set<string>();
  for (const level of levels) claims.add(`api.level${level}`);
  for (const { name, streaming, non_streaming: whole, tool_calls: tools, cancellation } of operations) {
    claims.add(`api.${name}`);
    // The recipes ask these of chats.
    if (name !== "chat.completions.create") continue;
    if (streaming) claims.add("api.streaming");
    if (whole) claims.add("api.non_streaming");
    if (tools) claims.add("api.tool_calls");
    if (cancellation) claims.add("api.cancellation");
  }
  for (const { name } of extensions) claims.add(`api.extension.${name}`);
  return claims;
}
