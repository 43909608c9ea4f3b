import { Closing } from "../closing.ts";
import type { Responder, ResponseHeaders } from "../door.ts";

/** A responder without a socket. */
export class MemoryResponder implements Responder {
  readonly #closing = new Closing();
  #drain: () => void = () => {};
  #resolveEnded: () => void = () => {};
  status = 0;
  headers: ResponseHeaders = {};
  text = "";
  readonly writes: string[] = [];
  hasStarted = false;
  hasEnded = false;
  /** Set to stop taking text, as a slow client does. */
  isFull = false;
  readonly ended: Promise<void>;

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  get isClosed(): boolean {
    return this.#closing.isClosed;
  }

  onClosed(listener: () => void): () => void {
    return this.#closing.onClosed(listener);
  }

  /** The client goes away. */
  close(): void {
    this.#closing.close();
    this.#resolveEnded();
  }

  cut(): void {
    this.close();
  }

  drain(): void {
    this.isFull = false;
    this.#drain();
  }

  start(status: number, headers: ResponseHeaders): void {
    if (this.hasStarted) throw new Error("started twice");
    this.hasStarted = true;
    this.status = status;
    this.headers = headers;
  }

  write(text: string): boolean {
    if (!this.hasStarted || this.hasEnded) throw new Error("written outside of the answer");
    this.text += text;
    this.writes.push(text);
    return !this.isFull;
  }

  onDrain(listener: () => void): void {
    this.#drain = listener;
  }

  end(text = ""): void {
    if (!this.hasStarted || this.hasEnded) throw new Error("ended outside of the answer");
    this.text += text;
    this.hasEnded = true;
    this.#resolveEnded();
  }
}
