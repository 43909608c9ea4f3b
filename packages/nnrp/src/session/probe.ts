import { FrameDecoder, readMessage } from "../codec/decoder.ts";
import type { Frame } from "../codec/frame.ts";
import { decodePacket, encodePacket } from "../codec/packet.ts";
import type { Carrier } from "./carrier.ts";
import type { Clock } from "./clock.ts";

const probes = 3;
const probeBytes = 32 * 1024;

/**
 * Measures a carrier by three TRANSPORT_PROBEs of 32 KiB, one after another, without a hello, and ends it. Answers the
 * round trips in milliseconds, as many as came within `timeoutMs`.
 */
export function probeCarrier(carrier: Carrier, clock: Clock, timeoutMs: number): Promise<readonly number[]> {
  return new Promise((resolve) => {
    const roundTrips: number[] = [];
    const decoder = new FrameDecoder(probeBytes);
    let sentAt = 0;
    let done = false;
    const finish = () => {
      if (done) return;
      done = true;
      cancel();
      carrier.close();
      resolve(roundTrips);
    };
    const cancel = clock.after(timeoutMs, finish);
    const probe = () => {
      const packet = encodePacket({
        type: "TRANSPORT_PROBE",
        metadata: { probeId: roundTrips.length + 1, clientSendTsUs: BigInt(Math.round(clock.now() * 1000)) },
        body: new Uint8Array(probeBytes),
      });
      sentAt = performance.now();
      carrier.send(packet, [packet.byteLength]);
    };
    const take = (frame: Frame): boolean => {
      const packet = decodePacket(frame);
      if (packet.type !== "TRANSPORT_PROBE_ACK" || packet.metadata.probeId !== roundTrips.length + 1) return true;
      roundTrips.push(performance.now() - sentAt);
      if (roundTrips.length === probes) finish();
      else probe();
      return !done;
    };
    carrier.start({
      data(bytes) {
        try {
          if (carrier.framing === "message") take(readMessage(bytes, probeBytes));
          else decoder.push(bytes, take);
        } catch {
          // What answers is no NNRP server: the probe has failed.
          finish();
        }
      },
      drained() {},
      ended: finish,
    });
    probe();
  });
}

/** What round trips say about a route. */
export function probeResult(roundTrips: readonly number[]): {
  readonly successes: number;
  readonly medianBytesPerSecond: number;
  readonly medianRoundTripMs: number;
} {
  const sorted = [...roundTrips].sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? Number.POSITIVE_INFINITY;
  return {
    successes: roundTrips.length,
    medianRoundTripMs: median,
    medianBytesPerSecond: (probeBytes * 1000) / Math.max(median, 0.001),
  };
}
