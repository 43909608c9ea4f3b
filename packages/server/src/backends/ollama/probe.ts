import { CoreError } from "@plenum/core";
import { maxProbeBytes, type Upstream } from "../shared/upstream.ts";
import { upstreamError } from "../shared/upstream-errors.ts";
import type { KnownModel } from "./describe-model.ts";
import { textOf } from "./json-fields.ts";
import { type ListedModel, readPs, readShow, readTags, type ShownModel } from "./model-facts.ts";

export interface ProbeResult {
  /** In the server's order. */
  readonly models: readonly KnownModel[];
  readonly hasLogprobs: boolean;
}

/** Descriptions that are asked for at once. */
const showsAtOnce = 4;

/** Asks a server what it has; remembers descriptions, which change with a model's digest only. */
export class Prober {
  readonly #upstream: Upstream;
  readonly #isOffered: (name: string) => boolean;
  #shown = new Map<string, ShownModel>();

  /** @param isOffered says which of the server's models are looked at */
  constructor(upstream: Upstream, isOffered: (name: string) => boolean) {
    this.#upstream = upstream;
    this.#isOffered = isOffered;
  }

  /**
   * @param onAnswer told of each answer on the way
   * @throws CoreError backend-unavailable, backend-error; the signal's reason
   */
  async probe(signal: AbortSignal, onAnswer: () => void): Promise<ProbeResult> {
    const [tags, ps, version] = await Promise.all([
      this.#get("/api/tags", signal),
      this.#get("/api/ps", signal),
      this.#get("/api/version", signal),
    ]);
    const listed = readTags(tags).filter(({ name }) => this.#isOffered(name));
    onAnswer();
    await this.#describe(listed, signal, onAnswer);
    const loaded = new Map(readPs(ps, Date.now()).map((model) => [model.name, model]));
    return {
      models: listed.map((model) => ({
        listed: model,
        shown: this.#shown.get(keyOf(model)),
        loaded: loaded.get(model.name),
      })),
      hasLogprobs: hasLogprobs(textOf(version, "version")),
    };
  }

  async #get(path: string, signal: AbortSignal): Promise<unknown> {
    const answer = await this.#upstream.json({ method: "GET", path, signal }, maxProbeBytes);
    if (answer.status !== 200) throw upstreamError(answer);
    if (answer.body === undefined)
      throw new CoreError("backend-error", "The runtime's answer is not JSON; correct its address.");
    return answer.body;
  }

  async #describe(listed: readonly ListedModel[], signal: AbortSignal, onAnswer: () => void): Promise<void> {
    const known = this.#shown;
    this.#shown = new Map();
    const missing: ListedModel[] = [];
    for (const model of listed) {
      const shown = known.get(keyOf(model));
      if (shown === undefined) missing.push(model);
      else this.#shown.set(keyOf(model), shown);
    }
    const work = async (): Promise<void> => {
      for (let model = missing.shift(); model !== undefined; model = missing.shift()) {
        await this.#show(model, signal);
        onAnswer();
      }
    };
    await Promise.all(Array.from({ length: showsAtOnce }, work));
  }

  /** A model that the server can't describe stays without a description; the others are served. */
  async #show(model: ListedModel, signal: AbortSignal): Promise<void> {
    const call = { method: "POST", path: "/api/show", body: { model: model.name }, signal } as const;
    const answer = await this.#upstream.json(call, maxProbeBytes);
    if (answer.status === 200) this.#shown.set(keyOf(model), readShow(answer.body));
  }
}

function keyOf({ name, manifestDigest }: ListedModel): string {
  return `${manifestDigest} ${name}`;
}

/** Version from which `/api/chat` tells log probabilities; older ones ignore the field without a word. */
const logprobsSince = [0, 12, 11] as const;

/** @param version `0.0.0`: built from its sources, so a new one */
function hasLogprobs(version: string | undefined): boolean {
  const parts = /^v?(\d+)\.(\d+)\.(\d+)/
    .exec(version ?? "")
    ?.slice(1)
    .map(Number);
  if (parts === undefined) return false;
  if (parts.every((part) => part === 0)) return true;
  for (const [place, least] of logprobsSince.entries()) {
    const part = parts[place] ?? 0;
    if (part !== least) return part > least;
  }
  return true;
}
