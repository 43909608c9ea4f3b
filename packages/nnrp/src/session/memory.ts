import type { Carrier, CarrierReceiver } from "./carrier.ts";

/** Two ends of a carrier in one process: what one sends, the other receives, asynchronously and in order. */
export function createCarrierPair(framing: "stream" | "message" = "stream"): [Carrier, Carrier] {
  const left = new MemoryCarrier(framing);
  const right = new MemoryCarrier(framing);
  left.other = right;
  right.other = left;
  return [left, right];
}

class MemoryCarrier implements Carrier {
  readonly kind = "memory";
  readonly secure = false;
  readonly remote = "";
  readonly framing: "stream" | "message";
  other: MemoryCarrier | undefined;
  #receiver: CarrierReceiver | undefined;
  #inbox: Uint8Array[] = [];
  #paused = false;
  #scheduled = false;
  #ended = false;
  #endAfterInbox = false;

  constructor(framing: "stream" | "message") {
    this.framing = framing;
  }

  get bufferedBytes(): number {
    return this.other?.inboxBytes ?? 0;
  }

  get inboxBytes(): number {
    return this.#inbox.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  start(receiver: CarrierReceiver): void {
    this.#receiver = receiver;
    this.#schedule();
  }

  send(bytes: Uint8Array, ends: readonly number[]): void {
    if (this.#ended) return;
    if (this.framing === "stream") this.other?.take(bytes);
    let from = 0;
    if (this.framing === "message") {
      for (const end of ends) {
        this.other?.take(bytes.subarray(from, end));
        from = end;
      }
    }
  }

  take(bytes: Uint8Array): void {
    this.#inbox.push(bytes);
    this.#schedule();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#schedule();
  }

  close(): void {
    if (this.#ended) return;
    this.other?.endAfterInbox();
    this.#end();
  }

  destroy(): void {
    this.close();
  }

  endAfterInbox(): void {
    this.#endAfterInbox = true;
    this.#paused = false;
    this.#schedule();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#inbox = [];
    queueMicrotask(() => this.#receiver?.ended());
  }

  #schedule(): void {
    if (this.#scheduled || this.#receiver === undefined) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#deliver();
    });
  }

  #deliver(): void {
    let delivered = false;
    while (!this.#paused && !this.#ended) {
      const bytes = this.#inbox.shift();
      if (bytes === undefined) break;
      delivered = true;
      this.#receiver?.data(bytes);
    }
    if (delivered && this.#inbox.length === 0) this.other?.noteDrained();
    if (this.#endAfterInbox && this.#inbox.length === 0) this.#end();
  }

  noteDrained(): void {
    if (!this.#ended) this.#receiver?.drained();
  }
}
