import type { Packet, PacketDraft } from "../../codec/packet-types.ts";
import { PayloadKind, StandardProfile } from "../../codec/registries.ts";
import type { ServerLimits } from "../limits.ts";

const version = 1;
const bitOfProfile = (profile: number) => 1 << (profile - 1);
const profiles = bitOfProfile(StandardProfile.tensor) | bitOfProfile(StandardProfile.token);
const payloadKinds = Object.values(PayloadKind).reduce((all, kind) => all | kind, 0);

/** Answers a hello, or says why it is refused; there is no message for that, the connection just ends. */
export function readHello(
  { metadata, body }: Packet<"CLIENT_HELLO">,
  limits: ServerLimits,
  acceptAuthBlocks: boolean,
): { acknowledgement: PacketDraft<"SERVER_HELLO_ACK">; authBlock: Uint8Array | undefined } | string {
  const { minVersionMajor, maxVersionMajor } = metadata;
  if (minVersionMajor > version || maxVersionMajor < version) return "No common version";
  if ((metadata.supportedWireFormatBitmap & 1) === 0) return "No common wire format";
  const acceptedProfileBitmap = metadata.supportedProfileBitmap & profiles;
  if ((acceptedProfileBitmap & bitOfProfile(StandardProfile.token)) === 0) return "No common profile";
  const acceptedPayloadKindBitmap = metadata.supportedPayloadKindBitmap & payloadKinds;
  if (acceptedPayloadKindBitmap === 0) return "No common payload kind";
  if (metadata.controlExtensionBytes > 0) return "Hello extensions are not taken here";
  if (metadata.authBytes > 0 && !acceptAuthBlocks) return "Authentication blocks are not taken here";
  return {
    authBlock: metadata.authBytes > 0 ? body.slice(0, metadata.authBytes) : undefined,
    acknowledgement: {
      type: "SERVER_HELLO_ACK",
      metadata: {
        selectedVersionMajor: version,
        acceptedProfileBitmap,
        acceptedPayloadKindBitmap,
        maxLaneCount: Math.max(metadata.maxLaneCount, 1),
        maxConcurrentFrames: Math.min(limits.operationsPerSession, 0xffff),
        latencyBudgetMs: metadata.latencyBudgetMs,
        maxBodyBytes: limits.frameBytes,
        tokenTtlMs: limits.resumeWindowMs,
      },
    },
  };
}
