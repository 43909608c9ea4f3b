import { Buffer } from "node:buffer";
import type { RecordPacket } from "../service-records.ts";
import { serviceType } from "../service-records.ts";
import { formatTxt, type ServiceTxt } from "../txt.ts";

type Answer = NonNullable<RecordPacket["answers"]>[number];

/** For tests: what a service announces, as a packet. */
export interface Announced {
  readonly instance?: string;
  readonly host?: string;
  readonly port?: number;
  readonly addresses?: readonly string[];
  readonly txt?: Partial<ServiceTxt>;
  /** Seconds; 0: goodbye. */
  readonly ttl?: number;
}

export const serviceId = "9b1d0000-0000-4000-8000-000000000000";

export function announcement(announced: Announced = {}): RecordPacket & { readonly answers: readonly Answer[] } {
  const { instance = "studio", host = "plenum-1.local", port = 7411, addresses = ["10.0.0.7"], ttl } = announced;
  const name = `${instance}.${serviceType}`;
  const told = { version: "1.0", id: serviceId, tls: false, auth: "none", kinds: ["lmsp"], ...announced.txt } as const;
  const strings = Object.entries(formatTxt(told)).map(([key, value]) => Buffer.from(`${key}=${value}`));
  return {
    answers: [
      { type: "PTR", name: serviceType, ttl: ttl ?? 4500, data: name },
      { type: "SRV", name, ttl: ttl ?? 120, flush: true, data: { port, target: host, priority: 0, weight: 0 } },
      { type: "TXT", name, ttl: ttl ?? 4500, flush: true, data: strings },
      ...addresses.map(
        (data): Answer => ({ type: data.includes(":") ? "AAAA" : "A", name: host, ttl: ttl ?? 120, flush: true, data }),
      ),
    ],
  };
}
