import { isIP } from "node:net";
import type { ServiceDocument } from "../service.ts";
import { type Multicast, type OpenMulticast, openMulticast } from "./multicast.ts";
import { fetchServiceDocument } from "./service-document.ts";
import { ServiceRecords, type Sighting, serviceType } from "./service-records.ts";

/** A service of the local network that has answered for itself. */
export interface FoundService {
  /** Service id; the same in its record and in its document. It is no proof of who answers. */
  readonly id: string;
  /** Name that people see. */
  readonly name: string;
  /** Base URL at which it answered. */
  readonly baseUrl: string;
  /** LMSP version. */
  readonly version: string;
  readonly auth: "none" | "bearer";
  /** Interfaces that it offers, such as `lmsp` and `openai`. */
  readonly kinds: readonly string[];
  /** IPv4 first. */
  readonly addresses: readonly string[];
  /** Milliseconds since the epoch when it was last asked or announced itself. */
  readonly seenAtMs: number;
  /** It said goodbye, or its records were not renewed. */
  readonly isGone: boolean;
  readonly document: ServiceDocument;
}

export interface WatchServicesOptions {
  /** Id of a service that is never asked or told of: one's own. */
  readonly ownId?: string | undefined;
  /** Told when mDNS can't be used on a network. */
  readonly onFault?: (error: Error) => void;
  /** @default every network of this machine */
  readonly open?: OpenMulticast;
  /** Which addresses are asked. @default those that another machine can have */
  readonly accepts?: (address: string) => boolean;
}

/** Services of the local network as they come and go. */
export interface ServiceWatch {
  /** In order of their names; those that are gone, too. */
  services(): readonly FoundService[];
  /** Calls the listener after each change; the returned function ends that. */
  onChange(listener: () => void): () => void;
  close(): void;
}

/** Listens and asks until it is closed. Does not keep the process alive. */
export function watchServices(options: WatchServicesOptions = {}): ServiceWatch {
  return new Watch(options);
}

type Check =
  | { readonly state: "checking" }
  | { readonly state: "verified"; readonly service: FoundService }
  | { readonly state: "refused"; readonly failures: number; readonly againAtMs: number };

interface Entry {
  /** What the check was of. */
  readonly key: string;
  readonly check: Check;
  /** Kept while changed records are checked. */
  readonly earlier?: FoundService | undefined;
}

/** Milliseconds between two looks at what has become of the records. */
const tickMs = 1_000;
/** The first questions go out so often, then half as often each time. */
const firstAskMs = 1_000;
const longestAskMs = 60_000;
/** Milliseconds between questions after what is missing or old. */
const askMissingMs = 5_000;
/** Services that are asked at once, and addresses of each. */
const mostChecks = 8;
const mostAddresses = 4;
const firstRetryMs = 2_000;
const longestRetryMs = 120_000;
const mostGone = 64;

class Watch implements ServiceWatch {
  readonly #options: WatchServicesOptions;
  readonly #records: ServiceRecords;
  readonly #listeners = new Set<() => void>();
  /** By instance. */
  readonly #entries = new Map<string, Entry>();
  /** By service id. */
  readonly #gone = new Map<string, FoundService>();
  readonly #closed = new AbortController();
  readonly #multicast: Multicast;
  readonly #timer: NodeJS.Timeout;
  #askAtMs = 0;
  #askGapMs = firstAskMs;
  #askMissingAtMs = 0;

  constructor(options: WatchServicesOptions) {
    this.#options = options;
    this.#records = new ServiceRecords(options.accepts);
    this.#multicast = (options.open ?? openMulticast)({
      onResponse: (packet) => {
        this.#records.take(packet, performance.now());
        this.#look();
      },
      onJoined: () => {
        this.#askGapMs = firstAskMs;
        this.#ask(performance.now());
      },
      onFault: (error) => options.onFault?.(error),
    });
    this.#timer = setInterval(() => this.#tick(), tickMs);
    this.#timer.unref();
  }

  services(): readonly FoundService[] {
    const byId = new Map<string, FoundService>();
    for (const { check, earlier } of this.#entries.values()) {
      const service = check.state === "verified" ? check.service : earlier;
      // Whoever was there first stays: a later one with the same id may be a stranger.
      if (service !== undefined && !byId.has(service.id)) byId.set(service.id, service);
    }
    for (const [id, service] of this.#gone) if (!byId.has(id)) byId.set(id, service);
    return [...byId.values()].sort((a, b) => a.name.localeCompare(b.name) || a.id.localeCompare(b.id));
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#closed.abort();
    clearInterval(this.#timer);
    this.#multicast.close();
    this.#listeners.clear();
  }

  #tick(): void {
    const nowMs = performance.now();
    if (nowMs >= this.#askAtMs) this.#ask(nowMs);
    else if (nowMs >= this.#askMissingAtMs) this.#askMissing(nowMs);
    this.#look();
  }

  #ask(nowMs: number): void {
    this.#askAtMs = nowMs + this.#askGapMs;
    this.#askGapMs = Math.min(longestAskMs, this.#askGapMs * 2);
    const answers = [...this.#records.knownAnswers(nowMs)];
    this.#multicast.query({ questions: [{ type: "PTR", name: serviceType }], answers });
  }

  #askMissing(nowMs: number): void {
    const questions = [...this.#records.questions(nowMs)];
    this.#askMissingAtMs = nowMs + askMissingMs;
    if (questions.length > 0) this.#multicast.query({ questions });
  }

  #look(): void {
    const nowMs = performance.now();
    const sightings = this.#records.sightings(nowMs);
    const seen = new Set(sightings.map(({ instance }) => instance));
    for (const [instance, entry] of this.#entries) if (!seen.has(instance)) this.#leave(instance, entry);
    for (const sighting of sightings) {
      if (sighting.txt.id === this.#options.ownId || !this.#isDue(sighting, nowMs)) continue;
      void this.#check(sighting);
    }
  }

  #leave(instance: string, { check, earlier }: Entry): void {
    this.#entries.delete(instance);
    const service = check.state === "verified" ? check.service : earlier;
    if (service === undefined) return;
    this.#gone.set(service.id, { ...service, isGone: true });
    const [oldest] = this.#gone.keys();
    if (this.#gone.size > mostGone && oldest !== undefined) this.#gone.delete(oldest);
    this.#tell();
  }

  #isDue(sighting: Sighting, nowMs: number): boolean {
    const entry = this.#entries.get(sighting.instance);
    if (entry?.check.state === "checking") return false;
    const running = [...this.#entries.values()].filter(({ check }) => check.state === "checking").length;
    if (running >= mostChecks) return false;
    if (entry === undefined || entry.key !== keyOf(sighting)) return true;
    return entry.check.state === "refused" && nowMs >= entry.check.againAtMs;
  }

  /** A record is a stranger's claim: the service itself has to confirm it. */
  async #check(sighting: Sighting): Promise<void> {
    const { instance } = sighting;
    const key = keyOf(sighting);
    const before = this.#entries.get(instance);
    const failures = before?.check.state === "refused" && before.key === key ? before.check.failures : 0;
    const earlier = before?.check.state === "verified" ? before.check.service : before?.earlier;
    this.#entries.set(instance, { key, check: { state: "checking" }, earlier });
    const service = await askService(sighting, this.#closed.signal);
    if (this.#closed.signal.aborted || !this.#entries.has(instance)) return;
    if (service === undefined) {
      const againAtMs = performance.now() + Math.min(longestRetryMs, firstRetryMs * 2 ** failures);
      this.#entries.set(instance, { key, check: { state: "refused", failures: failures + 1, againAtMs } });
      if (earlier !== undefined) this.#tell();
      return;
    }
    this.#entries.set(instance, { key, check: { state: "verified", service } });
    this.#gone.delete(service.id);
    this.#tell();
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

function keyOf({ port, addresses, txt }: Sighting): string {
  return JSON.stringify([port, addresses, txt]);
}

/** Asks the service at each of its addresses; the first answer under the id of the record counts. */
async function askService({ port, addresses, txt }: Sighting, signal: AbortSignal): Promise<FoundService | undefined> {
  const tries = addresses.slice(0, mostAddresses).map(async (address) => {
    const host = isIP(address) === 6 ? `[${address}]` : address;
    const baseUrl = `${txt.tls ? "https" : "http"}://${host}:${port}`;
    const document = await fetchServiceDocument({ baseUrl, signal });
    if (document === undefined || document.service.id !== txt.id) throw new Error("not the service of the record");
    return { baseUrl, document };
  });
  try {
    const { baseUrl, document } = await Promise.any(tries);
    return {
      id: document.service.id,
      name: document.service.name,
      baseUrl,
      version: document.lmsp_version,
      auth: document.auth.required ? "bearer" : "none",
      kinds: [...new Set(document.interfaces.map(({ kind }) => kind))],
      addresses,
      seenAtMs: Date.now(),
      isGone: false,
      document,
    };
  } catch {
    return undefined;
  }
}
