import { CoreError } from "@plenum/core";
import { isLoose, type Loose, listOf, textOr } from "../shared/openai/loose.ts";
import { maxProbeBytes, type Upstream } from "../shared/upstream.ts";
import { upstreamError } from "../shared/upstream-errors.ts";
import { type ModelFacts, modelFacts } from "./model-facts.ts";
import type { LmspSettings } from "./options.ts";

/** What a service tells of itself. */
export interface ServiceFacts {
  readonly id: string;
  readonly models: readonly ModelFacts[];
  /** Path of embeddings of its OpenAI interface. Absent: it has none. */
  readonly embeddingsPath?: string;
}

/** Looks at a service again and again; a list that has not changed is not sent again. */
export class Prober {
  readonly #upstream: Upstream;
  readonly #settings: LmspSettings;
  #etag: string | undefined;
  #list: readonly unknown[] = [];
  #listOwner: string | undefined;

  constructor(upstream: Upstream, settings: LmspSettings) {
    this.#upstream = upstream;
    this.#settings = settings;
  }

  /** @throws CoreError backend-unavailable, backend-error and what else the service answers with */
  async look(signal: AbortSignal): Promise<ServiceFacts> {
    const document = await this.#document(signal);
    const id = this.#checkedId(document);
    if (id !== this.#listOwner) this.#etag = undefined;
    this.#listOwner = id;
    const embeddingsPath = embeddingsPathOf(document);
    const context = { ownId: this.#settings.serviceId, id, hasEmbeddings: embeddingsPath !== undefined };
    const models = (await this.#models(signal)).flatMap((entry) => modelFacts(entry, context));
    return { id, models, ...(embeddingsPath === undefined ? {} : { embeddingsPath }) };
  }

  /** Without the token: whoever answers has not been recognised yet. */
  async #document(signal: AbortSignal): Promise<Loose> {
    const answer = await this.#get("/.well-known/lmsp", {}, signal);
    const { body } = answer;
    const isLmsp = answer.status === 200 && isLoose(body) && /^1\.\d+$/.test(textOr(body["lmsp_version"]));
    if (isLmsp) return body;
    if (answer.status >= 500) throw upstreamError(answer);
    throw new CoreError("backend-unavailable", "The runtime's address answers, but not with LMSP 1; correct its url.");
  }

  #checkedId(document: Loose): string {
    const { serviceId, expectedServiceId } = this.#settings;
    const service = document["service"];
    const id = isLoose(service) ? textOr(service["id"]) : "";
    if (!/^[\w.-]{1,64}$/.test(id)) throw new CoreError("backend-error", "The runtime does not tell its service id.");
    if (id === serviceId) {
      throw new CoreError("backend-unavailable", "The runtime is this service itself; remove it, or correct its url.");
    }
    if (expectedServiceId !== undefined && id !== expectedServiceId) {
      const detail = "The runtime's address is another service's now; approve the service again where it is.";
      throw new CoreError("backend-unavailable", detail);
    }
    return id;
  }

  async #models(signal: AbortSignal): Promise<readonly unknown[]> {
    const { authorization } = this.#settings;
    const headers = this.#etag === undefined ? authorization : { ...authorization, "if-none-match": this.#etag };
    const answer = await this.#get("/lmsp/v1/models", headers, signal);
    if (answer.status === 304) return this.#list;
    if (answer.status !== 200) throw upstreamError(answer);
    if (!isLoose(answer.body) || !Array.isArray(answer.body["data"])) {
      throw new CoreError("backend-error", "The runtime's list of models is none; correct its url.");
    }
    this.#list = answer.body["data"];
    this.#etag = answer.headers["etag"];
    return this.#list;
  }

  #get(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal) {
    const all = { accept: "application/json", ...headers };
    return this.#upstream.json({ method: "GET", path, headers: all, signal }, maxProbeBytes);
  }
}

/** The native interface has no embeddings (LMSP §5); its path below the address is looked at, not the host that it names. */
function embeddingsPathOf({ interfaces }: Loose): string | undefined {
  const openai = listOf(interfaces)
    .filter(isLoose)
    .find(({ kind, operations }) => kind === "openai" && listOf(operations).includes("embeddings.create"));
  const url = textOr(openai?.["url"]);
  return URL.canParse(url) ? `${new URL(url).pathname.replace(/\/+$/, "")}/embeddings` : undefined;
}
