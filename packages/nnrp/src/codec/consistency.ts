import type { AnyPacket } from "./packet-types.ts";
import { FlowFlags, FlowScopeKind, PayloadKind, SubmitMode } from "./registries.ts";

/** What must hold between the fields of a packet, beyond each field alone (sections 4.7 to 4.20). */
export function checkPacket(packet: AnyPacket, problem: (message: string, field: string) => Error): void {
  switch (packet.type) {
    case "FRAME_SUBMIT": {
      const { metadata } = packet;
      if (metadata.submitMode === SubmitMode.inline && metadata.objectRefMask !== 0) {
        throw problem("an inline submit has no object references", "objectRefMask");
      }
      if ((metadata.payloadKindBitmap & PayloadKind.tensor) !== 0) return;
      for (const field of tensorFields) {
        if (metadata[field] !== 0) throw problem(`${field} is for tensors only`, field);
      }
      return;
    }
    case "PARTIAL_RESULT":
      if (packet.body.byteLength === 0 && packet.metadata.objectId === 0n) {
        throw problem("a partial result without an object needs a body", "bodyBytes");
      }
      return;
    case "TRACE_CONTEXT":
      if (packet.traceId !== 0n && packet.traceId !== packet.metadata.traceId) {
        throw problem("the header's trace_id is another one", "traceId");
      }
      return;
    case "FLOW_UPDATE": {
      const { scopeKind, connectionCredit, sessionCredit, operationCredit, operationId, retryAfterMs, flowFlags } =
        packet.metadata;
      if ((packet.sessionId === 0) !== (scopeKind === FlowScopeKind.connection)) {
        throw problem("the header's session_id does not fit the scope", "scopeKind");
      }
      if ((operationId !== 0n) !== (scopeKind === FlowScopeKind.operation)) {
        throw problem("an operation id belongs to the operation scope", "operationId");
      }
      const credits = [connectionCredit, sessionCredit, operationCredit];
      if (credits.some((credit, scope) => credit !== 0 && scope !== scopeKind)) {
        throw problem("credit of another scope is set", "scopeKind");
      }
      if (retryAfterMs !== 0 && (flowFlags & FlowFlags.retryAfterValid) === 0) {
        throw problem("retry_after_ms needs its flag", "retryAfterMs");
      }
      return;
    }
    default:
      return;
  }
}

const tensorFields = [
  "srcWidth",
  "srcHeight",
  "tileWidth",
  "tileHeight",
  "tileCount",
  "sectionCount",
  "tileBaseId",
  "cameraBytes",
  "tileIndexBytes",
] as const;
