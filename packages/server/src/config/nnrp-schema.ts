import { type Locator, parseEndpoint } from "@plenum/nnrp";
import { z } from "zod";
import { list, section, wholeNumber } from "./options.ts";

/** Section `nnrp`: where else NNRP is spoken, and its limits. */

/** The place that an address names; undefined when nothing can listen there. */
export function listenPlace(address: string): Exclude<Locator, { carrier: "quic" }> | undefined {
  try {
    const endpoint = parseEndpoint(address);
    if (endpoint.kind === "application" || endpoint.locator.carrier === "quic") return undefined;
    return endpoint.locator;
  } catch {
    return undefined;
  }
}

const addressError = "an address such as tcp://127.0.0.1:7412, ws://127.0.0.1:7413/nnrp or unix:///run/plenum.sock";

export const nnrpSchema = section({
  listen: list(
    "Further addresses to listen on for NNRP; WebSocket at /nnrp of the HTTP port is always there.",
    z
      .string({ error: addressError })
      .refine((address) => listenPlace(address) !== undefined, { error: addressError })
      .describe(
        "tcp://HOST:PORT, ws://HOST:PORT/PATH, unix:///PATH or npipe://NAME; tls:// and wss:// with the files of `tls`. " +
          "Port 0: any free one.",
      ),
    "a list of addresses",
  ).default([]),
  connections: wholeNumber("Connections at once; more are closed at once.", 1, 1_000_000).default(1024),
  sessions_per_connection: wholeNumber("Sessions of one connection; more are refused.", 1, 65_536).default(64),
  operations_per_session: wholeNumber("Operations of one session in flight; more are refused.", 1, 65_535).default(64),
  frame_bytes: wholeNumber(
    "Bytes of a received packet; a larger one ends its connection.",
    131_072,
    67_108_864,
  ).default(16_777_216),
  handshake_timeout_ms: wholeNumber("Milliseconds from connecting to the hello.", 100).default(10_000),
  idle_timeout_ms: wholeNumber(
    "Milliseconds that a connection may stay without a packet and without an operation. 0: for ever.",
    0,
  ).default(600_000),
});
