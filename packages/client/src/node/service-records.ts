import { isIP } from "node:net";
import type { ResponsePacket } from "multicast-dns";
import { parseTxt, type ServiceTxt } from "./txt.ts";

/** DNS-SD type of LMSP services (LMSP §1). */
export const serviceType = "_lmsp._tcp.local";

/** A service as its records describe it; nobody has asked it yet whether that is true. */
export interface Sighting {
  /** Name of the instance, such as `studio`. */
  readonly instance: string;
  readonly port: number;
  /** IPv4 first. At least one. */
  readonly addresses: readonly string[];
  readonly txt: ServiceTxt;
}

type Answer = NonNullable<ResponsePacket["answers"]>[number];
type Question = NonNullable<ResponsePacket["questions"]>[number];

/** Of a DNS packet, what is looked at. */
export interface RecordPacket {
  readonly answers?: readonly Answer[] | undefined;
  readonly additionals?: readonly Answer[] | undefined;
}

interface Kept<Data> {
  readonly data: Data;
  readonly ttlMs: number;
  readonly receivedAtMs: number;
}

/** One host or network can't fill the memory: what is beyond these is passed over. */
const most = { instances: 256, hosts: 512, addresses: 16, answers: 256 } as const;

/** A record may be kept at most this long, whatever it says. */
const longestTtlS = 4_500;

/** An address that came longer ago than this goes when the host tells its addresses anew (RFC 6762 §10.2). */
const flushAfterMs = 1_000;

/** Part of its life after which a record is asked for again (RFC 6762 §5.2). */
const askAgainAfter = 0.8;

/** The records of one service type as they are known now. Pure: the caller brings packets and the time. */
export class ServiceRecords {
  readonly #accepts: (address: string) => boolean;
  /** By the instance's whole name in lower case, as are the others. */
  readonly #pointers = new Map<string, Kept<string>>();
  readonly #places = new Map<string, Kept<{ readonly port: number; readonly target: string }>>();
  readonly #texts = new Map<string, Kept<ServiceTxt | undefined>>();
  readonly #addresses = new Map<string, Map<string, Kept<string>>>();

  /** @param accepts says which addresses are kept */
  constructor(accepts: (address: string) => boolean = isReachable) {
    this.#accepts = accepts;
  }

  /** Takes the records of a packet; those of other services are passed over. */
  take({ answers: told = [], additionals = [] }: RecordPacket, nowMs: number): void {
    const answers = [...told, ...additionals].slice(0, most.answers);
    // Pointers first, then places: what they lead to may stand before them.
    for (const answer of answers) if (answer.type === "PTR") this.#takePointer(answer, nowMs);
    for (const answer of answers)
      if (answer.type === "SRV" || answer.type === "TXT") this.#takeOfInstance(answer, nowMs);
    const targets = this.#targets();
    for (const answer of answers) if (targets.has(answer.name.toLowerCase())) this.#takeAddress(answer, nowMs);
  }

  /** Services of which everything is known, in order of their names. */
  sightings(nowMs: number): readonly Sighting[] {
    this.#forgetOld(nowMs);
    const complete: Sighting[] = [];
    for (const [name, { data }] of [...this.#pointers].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const place = this.#places.get(name)?.data;
      const txt = this.#texts.get(name)?.data;
      const addresses = place === undefined ? undefined : this.#addresses.get(place.target);
      if (place === undefined || txt === undefined || addresses === undefined || addresses.size === 0) continue;
      const sorted = [...addresses.keys()].sort((a, b) => isIP(a) - isIP(b) || (a < b ? -1 : 1));
      complete.push({ instance: instanceOf(data), port: place.port, addresses: sorted, txt });
    }
    return complete;
  }

  /** What is missing, or near its end. */
  questions(nowMs: number): readonly Question[] {
    const questions: Question[] = [];
    for (const [name, pointer] of this.#pointers) {
      const place = this.#places.get(name);
      if (isStale(place, nowMs)) questions.push({ type: "SRV", name: pointer.data });
      if (isStale(this.#texts.get(name), nowMs)) questions.push({ type: "TXT", name: pointer.data });
      if (place === undefined) continue;
      const addresses = [...(this.#addresses.get(place.data.target)?.values() ?? [undefined])];
      if (addresses.some((address) => isStale(address, nowMs))) {
        questions.push({ type: "A", name: place.data.target }, { type: "AAAA", name: place.data.target });
      }
    }
    return questions.slice(0, mostQuestions);
  }

  /** Pointers that have more than half of their life left: nobody needs to send them again (RFC 6762 §7.1). */
  knownAnswers(nowMs: number): readonly Answer[] {
    const known: Answer[] = [];
    for (const { data, ttlMs, receivedAtMs } of this.#pointers.values()) {
      const leftMs = receivedAtMs + ttlMs - nowMs;
      if (leftMs > ttlMs / 2) known.push({ type: "PTR", name: serviceType, ttl: Math.floor(leftMs / 1_000), data });
    }
    return known.slice(0, mostKnownAnswers);
  }

  #takePointer(answer: Extract<Answer, { data: string }>, nowMs: number): void {
    if (answer.name.toLowerCase() !== serviceType || !isInstanceName(answer.data)) return;
    const name = answer.data.toLowerCase();
    if (answer.ttl === 0) this.#pointers.delete(name);
    else if (this.#pointers.has(name) || this.#pointers.size < most.instances) {
      this.#pointers.set(name, keep(answer.data, answer.ttl, nowMs));
    }
  }

  #takeOfInstance(answer: Answer, nowMs: number): void {
    const name = answer.name.toLowerCase();
    if (!this.#pointers.has(name)) return;
    if (answer.type === "SRV") {
      const { port, target } = answer.data;
      if (answer.ttl === 0) this.#places.delete(name);
      else if (port > 0) this.#places.set(name, keep({ port, target: target.toLowerCase() }, answer.ttl, nowMs));
    } else if (answer.type === "TXT") {
      if (answer.ttl === 0) this.#texts.delete(name);
      else this.#texts.set(name, keep(parseTxt(bytesOf(answer.data)), answer.ttl, nowMs));
    }
  }

  #takeAddress(answer: Answer, nowMs: number): void {
    if (answer.type !== "A" && answer.type !== "AAAA") return;
    const host = answer.name.toLowerCase();
    const addresses = this.#addresses.get(host) ?? new Map<string, Kept<string>>();
    if (answer.flush === true && this.#accepts(answer.data)) {
      for (const [address, { receivedAtMs }] of addresses) {
        if (isIP(address) === isIP(answer.data) && nowMs - receivedAtMs > flushAfterMs) addresses.delete(address);
      }
    }
    if (answer.ttl === 0) addresses.delete(answer.data);
    else if (this.#accepts(answer.data) && (addresses.has(answer.data) || addresses.size < most.addresses)) {
      addresses.set(answer.data, keep(answer.data, answer.ttl, nowMs));
    }
    if (this.#addresses.has(host) || this.#addresses.size < most.hosts) this.#addresses.set(host, addresses);
  }

  /** Hosts that a known service is on. */
  #targets(): ReadonlySet<string> {
    return new Set([...this.#places.values()].map(({ data }) => data.target));
  }

  #forgetOld(nowMs: number): void {
    for (const kept of [this.#pointers, this.#places, this.#texts]) dropOld(kept, nowMs);
    const targets = this.#targets();
    for (const [host, addresses] of this.#addresses) {
      dropOld(addresses, nowMs);
      if (!targets.has(host)) this.#addresses.delete(host);
    }
  }
}

/** A packet with all of them still fits into one frame. */
const mostQuestions = 32;

/** A packet with all of them still fits into one frame. */
const mostKnownAnswers = 16;

function keep<Data>(data: Data, ttlS: number | undefined, nowMs: number): Kept<Data> {
  const seconds = Math.min(longestTtlS, ttlS ?? 120);
  return { data, ttlMs: seconds * 1_000, receivedAtMs: nowMs };
}

function isStale(kept: Kept<unknown> | undefined, nowMs: number): boolean {
  return kept === undefined || nowMs - kept.receivedAtMs > kept.ttlMs * askAgainAfter;
}

function dropOld(records: Map<string, Kept<unknown>>, nowMs: number): void {
  for (const [key, { receivedAtMs, ttlMs }] of records) if (nowMs - receivedAtMs >= ttlMs) records.delete(key);
}

function isInstanceName(name: string): boolean {
  return name.length <= 255 && name.length > serviceType.length + 1 && name.toLowerCase().endsWith(`.${serviceType}`);
}

/** Name as people read it: a stranger's control characters would reach terminals. */
function instanceOf(name: string): string {
  return name.slice(0, -serviceType.length - 1).replace(/\p{Cc}/gu, "");
}

/** Nobody else's loopback is reached from here, and addresses within one link need a zone that records do not tell. */
function isReachable(address: string): boolean {
  if (isIP(address) === 0) return false;
  return !/^(127\.|0\.|22[4-9]\.|23\d\.|2[45]\d\.|::1?$|::ffff:|fe[89ab]|ff)/i.test(address);
}

function bytesOf(data: unknown): readonly Uint8Array[] {
  const strings = Array.isArray(data) ? data : [data];
  return strings.flatMap((each) => (each instanceof Uint8Array ? [each] : []));
}
