/** Carriers of the outside suite's frame scenarios. */
export const wireTransports = ["tcp", "ipc", "websocket"] as const;

export type WireTransport = (typeof wireTransports)[number];

export interface WireTargetFlags {
  readonly role: "server" | "client";
  readonly readyOutput: string;
  /** Absent: all that the role has scenarios for. */
  readonly transports?: readonly WireTransport[];
  readonly tls?: string;
  /** Seconds. */
  readonly wait: number;
  readonly json?: boolean;
}
