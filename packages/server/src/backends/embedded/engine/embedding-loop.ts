import { setImmediate } from "node:timers/promises";
import type { EmbedMessage, EngineEvent } from "../messages.ts";
import { EngineError, toFailure } from "./engine-error.ts";
import type { LoadedModel } from "./model.ts";
import { embeddingTokens } from "./prompt-tokens.ts";

/** Inputs tokenised before messages are looked at again. */
const inputsPerTurn = 16;

/** Works through embedding requests one input after the other; requests take turns after each input. */
export class EmbeddingLoop {
  readonly #model: LoadedModel;
  readonly #emit: (events: EngineEvent[]) => void;
  readonly #aborted = new Set<number>();
  readonly #running = new Set<number>();
  #last: Promise<void> = Promise.resolve();

  constructor(model: LoadedModel, emit: (events: EngineEvent[]) => void) {
    this.#model = model;
    this.#emit = emit;
  }

  async submit(message: EmbedMessage): Promise<void> {
    const { id } = message;
    this.#running.add(id);
    try {
      const { vectors, inputTokens } = await this.#embed(message);
      this.#emit([{ type: "embedded", id, vectors, inputTokens }]);
    } catch (error) {
      this.#emit([{ type: "failed", id, failure: toFailure(error) }]);
    } finally {
      this.#running.delete(id);
      this.#aborted.delete(id);
    }
  }

  /** Heard between two inputs. Always answered: a request that has just ended is `failed` too. */
  abort(id: number): void {
    if (this.#running.has(id)) this.#aborted.add(id);
    else this.#emit([{ type: "failed", id, failure: toFailure(new EngineError("aborted", "aborted")) }]);
  }

  async #embed(message: EmbedMessage): Promise<{ vectors: Float32Array[]; inputTokens: number }> {
    const inputs: (readonly number[])[] = [];
    for (const [index, input] of message.inputs.entries()) {
      if (index % inputsPerTurn === 0) await this.#yield(message.id);
      inputs.push(this.#readInput(input, index, message.truncate));
    }
    const accepted = inputs.reduce((sum, tokens) => sum + tokens.length, 0);
    this.#emit([{ type: "accepted", id: message.id, inputTokens: accepted }]);
    const vectors: Float32Array[] = [];
    for (const tokens of inputs) {
      const turn = this.#last.then(async () => {
        await this.#yield(message.id);
        vectors.push(await this.#vectorOf(tokens, message.dimensions));
      });
      this.#last = turn.catch(() => undefined);
      await turn;
    }
    return { vectors, inputTokens: accepted };
  }

  /** Lets messages in. @throws EngineError aborted */
  async #yield(id: number): Promise<void> {
    await setImmediate();
    if (this.#aborted.has(id)) throw new EngineError("aborted", "aborted");
  }

  #readInput(input: string | readonly number[], index: number, truncate: boolean): number[] {
    const { config, tokenizer } = this.#model;
    const unknown = typeof input === "string" ? undefined : input.find((token) => !this.#isToken(token));
    if (unknown !== undefined)
      throw new EngineError("bad-token", `Input ${index} holds ${unknown}, which is no token.`);
    const { head, body, tail } = embeddingTokens(input, tokenizer, config.contextTokens, truncate);
    const total = head.length + body.length + tail.length;
    const room = config.contextTokens - head.length - tail.length;
    if (total > config.contextTokens && !truncate) {
      const numbers = { limit: config.contextTokens, requested: total };
      throw new EngineError("context-length", `Input ${index} has ${total} tokens.`, numbers);
    }
    if (total === 0) throw new EngineError("empty-prompt", `Input ${index} is empty.`);
    return [...head, ...body.slice(0, room), ...tail];
  }

  #isToken(token: number): boolean {
    return Number.isInteger(token) && token >= 0 && token < this.#model.config.vocabularySize;
  }

  async #vectorOf(tokens: readonly number[], dimensions: number | undefined): Promise<Float32Array> {
    const { context } = this.#model;
    context.disposeSequence(0);
    context.initBatch(tokens.length);
    context.addToBatch(0, 0, Uint32Array.from(tokens), Uint32Array.of(tokens.length - 1));
    await context.decodeBatch();
    const vector = context.getEmbedding(tokens.length);
    if (dimensions !== undefined && dimensions > vector.length) {
      const numbers = { limit: vector.length, requested: dimensions };
      throw new EngineError("bad-dimensions", `The model's vectors have ${vector.length} dimensions.`, numbers);
    }
    return normalised(vector.subarray(0, dimensions ?? vector.length));
  }
}

/** The vector with length 1; a vector of zeros stays one. */
function normalised(vector: Float64Array): Float32Array {
  let sum = 0;
  for (const value of vector) sum += value * value;
  const scale = sum > 0 ? 1 / Math.sqrt(sum) : 0;
  return Float32Array.from(vector, (value) => value * scale);
}
