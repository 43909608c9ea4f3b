import type { NewToken } from "@plenum/core";
import type { Call, Operation } from "../../shared/door.ts";
import { answerJson } from "../../shared/run-response.ts";
import { isStrict } from "../strict.ts";
import { accessSchemas, strictAccessSchemas, toTokenRights, toWireToken } from "../tokens.ts";
import { root } from "./root.ts";

/** What speaks for principals (LMSP §2). */
export const tokenOperations: readonly Operation[] = [
  { name: "tokens.list", method: "GET", path: `${root}/tokens`, scope: "admin", handle: listTokens },
  { name: "tokens.create", method: "POST", path: `${root}/tokens`, scope: "admin", handle: createToken },
  { name: "tokens.rotate", method: "POST", path: `${root}/tokens/*/rotate`, scope: "admin", handle: rotateToken },
  { name: "tokens.revoke", method: "DELETE", path: `${root}/tokens/*`, scope: "admin", handle: revokeToken },
];

async function listTokens(call: Call): Promise<void> {
  const { core, request } = call;
  const principal = request.query.get("principal");
  const all = await core.tokens.list();
  const data = all.filter((record) => principal === null || record.principal === principal).map(toWireToken);
  answerJson(call, 200, { data, next_cursor: null });
}

async function createToken(call: Call): Promise<void> {
  const rights = toTokenRights(call.json(isStrict(call) ? strictAccessSchemas.token : accessSchemas.token));
  answerOnce(call, await call.core.tokens.create(rights));
}

async function rotateToken(call: Call): Promise<void> {
  const schemas = isStrict(call) ? strictAccessSchemas : accessSchemas;
  const { grace_s } = call.request.body.length === 0 ? { grace_s: 0 } : call.json(schemas.rotation);
  answerOnce(call, await call.core.tokens.rotate(call.rest, (grace_s ?? 0) * 1_000));
}

/** The one time that the token itself is told: no cache may keep it. */
function answerOnce(call: Call, { token, record }: NewToken): void {
  answerJson(
    call,
    201,
    { ...toWireToken(record), token },
    {
      location: `${root}/tokens/${record.id}`,
      "cache-control": "no-store",
    },
  );
}

async function revokeToken(call: Call): Promise<void> {
  await call.core.tokens.revoke(call.rest);
  call.responder.start(204, {});
  call.responder.end();
}
