import { profileName, schemaVersion } from "@plenum/profile";
import type { CaseResult } from "./case-result.ts";
import { partsOf, type RecordedPacket } from "./recording.ts";

/** A run as bytes: what was sent and received in each case, in order, and what came of it. */
export interface VectorFile {
  readonly format: "plenum-nnrp-vectors/1";
  readonly profile: string;
  readonly schema_version: string;
  readonly vectors: readonly Vector[];
}

interface Vector extends CaseResult {
  readonly packets: readonly {
    readonly direction: "client->server" | "server->client";
    /** Empty where it could not be read. */
    readonly message: string;
    readonly header_hex: string;
    readonly metadata_hex: string;
    readonly body_hex: string;
  }[];
}

export interface Run {
  readonly result: CaseResult;
  readonly packets: readonly RecordedPacket[];
}

/** Secrets are overwritten in the recording already. */
export function toVectors(runs: readonly Run[]): VectorFile {
  return {
    format: "plenum-nnrp-vectors/1",
    profile: profileName,
    schema_version: schemaVersion,
    vectors: runs.map(({ result, packets }) => ({ ...result, packets: packets.map(toVectorPacket) })),
  };
}

function toVectorPacket({ direction, packet, bytes }: RecordedPacket): Vector["packets"][number] {
  const [header, metadata, body] = partsOf(bytes).map((part) => Buffer.from(part).toString("hex"));
  return {
    direction: direction === "sent" ? "client->server" : "server->client",
    message: packet?.type ?? "",
    header_hex: header ?? "",
    metadata_hex: metadata ?? "",
    body_hex: body ?? "",
  };
}
