import { type CoreError, type LogReader, toCoreError } from "@plenum/core";
import type { Call } from "../../shared/door.ts";
import { commentIntervalMs } from "../../shared/stream-response.ts";
import { toProblemBody } from "../errors.ts";
import { comment, eventStreamHeaders, renderData } from "../stream.ts";
import type { Topic } from "./topic.ts";

/** Milliseconds between two tellings of one thing: at most 4 a second (LMSP §8). */
const mergeMs = 250;
/** Most entries of a watched response in one write. */
const entriesPerWrite = 256;

/** What was told of the things of one topic. */
interface Told {
  readonly topic: Topic;
  /** JSON text of each thing, by id. */
  readonly things: Map<string, string>;
  /** Ids that changed since; `all`: any may have. */
  readonly dirty: Set<string>;
  isAllDirty: boolean;
}

/**
 * One multiplexed stream of everything that a page or a script watches: a snapshot, then changes, merged. What a slow
 * client has not taken is merged further, so that it costs no more than the things there are.
 */
export class ServiceStream {
  readonly #call: Call;
  readonly #told: readonly Told[];
  readonly #readers = new Map<string, LogReader>();
  readonly #ends: (() => void)[] = [];
  #stopTimer: (() => void) | undefined;
  #isBusy = false;
  #isBlocked = false;
  #hasEnded = false;
  #resolve: () => void = () => {};

  constructor(call: Call, topics: readonly Topic[]) {
    this.#call = call;
    this.#told = topics.map((topic) => ({ topic, things: new Map(), dirty: new Set(), isAllDirty: false }));
  }

  /**
   * Resolves when the client has gone or the service stops.
   * @param watched ids of responses whose own events come along, and the sequence after which they start
   * @throws CoreError not-found, events-expired, invalid-request before the stream has begun.
   */
  async run(watched: ReadonlyMap<string, number>): Promise<void> {
    const { core, caller, responder } = this.#call;
    for (const [id, after] of watched) {
      const reader = await core.responses.events(id, after, caller.principal);
      if (reader !== undefined) this.#readers.set(id, reader);
    }
    if (responder.isClosed) return this.#close();
    responder.start(200, eventStreamHeaders);
    const ended = new Promise<void>((resolve) => {
      this.#resolve = resolve;
    });
    this.#ends.push(
      responder.onClosed(() => this.#close()),
      core.onDrained(() => this.#end()),
    );
    responder.onDrain(() => {
      this.#isBlocked = false;
      this.#pumpReaders();
      this.#flushLater();
    });
    // Watched before it is looked at, so that nothing falls between.
    for (const told of this.#told) this.#watch(told);
    await this.#snapshot();
    for (const reader of this.#readers.values()) reader.onReadable(() => this.#pumpReaders());
    this.#pumpReaders();
    this.#commentLater();
    return ended;
  }

  #watch(told: Told): void {
    const changed = (id?: string): void => {
      if (id === undefined || told.topic.one === undefined) told.isAllDirty = true;
      else told.dirty.add(id);
      this.#flushLater();
    };
    this.#ends.push(told.topic.watch(this.#call, changed));
  }

  async #snapshot(): Promise<void> {
    const members: string[] = [];
    for (const { topic, things } of this.#told) {
      for (const [id, thing] of await topic.all(this.#call)) things.set(id, JSON.stringify(thing));
      members.push(`${JSON.stringify(topic.name)}:[${[...things.values()].join(",")}]`);
    }
    this.#write(`event: snapshot\ndata: {"type":"snapshot",${members.join(",")}}\n\n`);
  }

  #flushLater(): void {
    if (this.#hasEnded || this.#stopTimer !== undefined) return;
    this.#stopTimer = this.#call.core.clock.after(mergeMs, () => {
      this.#stopTimer = undefined;
      void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    if (this.#hasEnded || this.#isBlocked || this.#isBusy) return;
    this.#isBusy = true;
    try {
      for (const told of this.#told) {
        if (told.isAllDirty) await this.#tellAll(told);
        else if (told.dirty.size > 0) await this.#tellDirty(told);
      }
    } catch (error) {
      this.#fail(toCoreError(error));
    } finally {
      this.#isBusy = false;
    }
    if (this.#told.some(({ dirty, isAllDirty }) => isAllDirty || dirty.size > 0)) this.#flushLater();
  }

  async #tellAll(told: Told): Promise<void> {
    told.isAllDirty = false;
    const now = await told.topic.all(this.#call);
    for (const [id, thing] of now) this.#tell(told, id, JSON.stringify(thing));
    for (const id of [...told.things.keys()]) if (!now.has(id)) this.#tell(told, id, undefined);
  }

  async #tellDirty(told: Told): Promise<void> {
    const ids = [...told.dirty];
    told.dirty.clear();
    for (const id of ids) {
      const thing = await told.topic.one?.(this.#call, id);
      this.#tell(told, id, thing === undefined ? undefined : JSON.stringify(thing));
    }
  }

  #tell({ topic, things }: Told, id: string, json: string | undefined): void {
    const before = things.get(id);
    if (json === before) return;
    if (json === undefined) things.delete(id);
    else things.set(id, json);
    const type = topic.event(before === undefined ? "added" : json === undefined ? "removed" : "changed");
    if (type === undefined) return;
    this.#write(`event: ${type}\ndata: {"type":"${type}","${topic.member}":${json ?? before}}\n\n`);
  }

  /** Events of the watched responses, each at its own place; a slow client stops only that. */
  #pumpReaders(): void {
    for (const [id, reader] of this.#readers) {
      try {
        while (!this.#hasEnded && !this.#isBlocked) {
          const entries = reader.take(entriesPerWrite);
          if (entries.length === 0) break;
          const start = `event: response.event\ndata: {"type":"response.event","response_id":"${id}","event":`;
          this.#write(entries.map((entry) => `${start}${renderData(entry)}}\n\n`).join(""));
        }
        if (!reader.ended) continue;
        reader.close();
        this.#readers.delete(id);
      } catch (error) {
        this.#readers.delete(id);
        this.#tellProblem(toCoreError(error), id);
      }
    }
  }

  #tellProblem(error: CoreError, responseId?: string): void {
    const about = responseId === undefined ? {} : { response_id: responseId };
    this.#write(`event: error\ndata: ${JSON.stringify({ ...toProblemBody(error), ...about })}\n\n`);
  }

  #commentLater(): void {
    const again = (): void => {
      if (!this.#isBlocked) this.#write(comment);
      stop = this.#call.core.clock.after(commentIntervalMs, again);
    };
    let stop = this.#call.core.clock.after(commentIntervalMs, again);
    this.#ends.push(() => stop());
  }

  #write(text: string): void {
    if (this.#hasEnded) return;
    if (!this.#call.responder.write(text)) this.#isBlocked = true;
  }

  #fail(error: CoreError): void {
    this.#tellProblem(error);
    this.#end();
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#call.responder.end();
    this.#close();
  }

  #close(): void {
    this.#hasEnded = true;
    this.#stopTimer?.();
    for (const end of this.#ends) end();
    for (const reader of this.#readers.values()) reader.close();
    this.#resolve();
  }
}
