import type { NearbyEntry, RuntimeSettings, RuntimeStatus } from "@plenum/core";
import { z } from "zod";
import type { addedRuntimeSchema } from "../../config/index.ts";
import { compact } from "../shared/compact.ts";

/** A runtime in the native interface's words (LMSP §4), without its secrets. */
export function toWireRuntime(runtime: RuntimeStatus): Record<string, unknown> {
  return compact({
    id: runtime.id,
    kind: runtime.kind,
    url: runtime.url,
    state: runtime.state,
    reason: runtime.reason,
    models: runtime.models,
    running: runtime.running,
    capacity: runtime.capacity,
    source: runtime.source,
  });
}

/** A service of the local network in the native interface's words (LMSP §8). */
export function toWireNearby(service: NearbyEntry): Record<string, unknown> {
  return {
    id: service.id,
    name: service.name,
    url: service.url,
    version: service.version,
    auth: service.auth,
    kinds: service.kinds,
    addresses: service.addresses,
    seen_at: new Date(service.seenAtMs).toISOString(),
    state: service.state,
  };
}

/** Of a request to add a runtime. */
export function toRuntimeSettings(wire: z.output<typeof addedRuntimeSchema>): RuntimeSettings {
  return {
    id: wire.id,
    kind: wire.kind,
    url: wire.url.replace(/\/+$/, ""),
    headers: wire.headers,
    ...compact({
      apiKey: wire.api_key,
      parallel: wire.parallel,
      headTimeoutMs: wire.head_timeout_ms,
      silenceTimeoutMs: wire.silence_timeout_ms,
      models: wire.models,
    }),
  };
}

const apiKey = z.string().min(1).max(4096).nullish();

/** What may be said with an approval. */
export const approvalSchema = z.object({ api_key: apiKey });
export const strictApprovalSchema = z.strictObject({ api_key: apiKey });
