import type { PrincipalRecord, TokenRecord, TokenRights } from "@plenum/core";
import { scopes } from "@plenum/core";
import { z } from "zod";
import { list } from "../shared/bounded.ts";
import { compact } from "../shared/compact.ts";
import { toInstant } from "./response.ts";

/** Principals and tokens on the wire (LMSP §2). Null is the same as absent. */

type ObjectOf = typeof z.object | typeof z.strictObject;

const number = z.number().nullish();

function makeSchemas(object: ObjectOf) {
  return {
    principal: object({ id: z.string(), name: z.string().nullish() }),
    token: object({
      principal: z.string(),
      name: z.string().nullish(),
      scopes: list(z.enum(scopes)),
      models: list(z.string()).nullish(),
      expires_at: z.iso.datetime({ offset: true }).nullish(),
      limits: object({
        requests_per_minute: number,
        tokens_per_minute: number,
        concurrency: number,
        top_priority: number,
      }).nullish(),
    }),
    rotation: object({ grace_s: number }),
  };
}

export const accessSchemas = makeSchemas(z.object);
export const strictAccessSchemas = makeSchemas(z.strictObject);

type WireToken = z.output<typeof accessSchemas.token>;

export function toTokenRights({ principal, name, scopes, models, expires_at, limits }: WireToken): TokenRights {
  return {
    principal,
    scopes: [...new Set(scopes)],
    ...compact({
      name,
      models,
      expiresAtMs: expires_at == null ? undefined : Date.parse(expires_at),
      requestsPerMinute: limits?.requests_per_minute,
      tokensPerMinute: limits?.tokens_per_minute,
      concurrency: limits?.concurrency,
      topPriority: limits?.top_priority,
    }),
  };
}

export function toWirePrincipal({ id, name, createdAt }: Partial<PrincipalRecord>): Record<string, unknown> {
  return compact({ id, object: "principal", name, created_at: toInstant(createdAt) });
}

/** Never the token itself. */
export function toWireToken(record: TokenRecord): Record<string, unknown> {
  const { createdAt } = record;
  return compact({
    id: record.id,
    object: "token",
    principal: record.principal,
    name: record.name,
    scopes: record.scopes,
    models: record.models,
    expires_at: toInstant(record.expiresAtMs),
    limits: compact({
      requests_per_minute: record.requestsPerMinute,
      tokens_per_minute: record.tokensPerMinute,
      concurrency: record.concurrency,
      top_priority: record.topPriority,
    }),
    // One of the configuration has been there from the start.
    created_at: createdAt === 0 ? undefined : toInstant(createdAt),
    last_used_at: toInstant(record.lastUsedAt),
  });
}
