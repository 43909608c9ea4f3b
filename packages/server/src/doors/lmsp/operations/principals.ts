import type { Call, Operation } from "../../shared/door.ts";
import { answerJson } from "../../shared/run-response.ts";
import { isStrict } from "../strict.ts";
import { accessSchemas, strictAccessSchemas, toWirePrincipal } from "../tokens.ts";
import { root } from "./root.ts";

/** Who owns what is made here (LMSP §2). */
export const principalOperations: readonly Operation[] = [
  { name: "principals.list", method: "GET", path: `${root}/principals`, scope: "admin", handle: listPrincipals },
  { name: "principals.create", method: "POST", path: `${root}/principals`, scope: "admin", handle: createPrincipal },
  {
    name: "principals.delete",
    method: "DELETE",
    path: `${root}/principals/*`,
    scope: "admin",
    handle: deletePrincipal,
  },
];

async function listPrincipals(call: Call): Promise<void> {
  const data = (await call.core.tokens.principals()).map(toWirePrincipal);
  answerJson(call, 200, { data, next_cursor: null });
}

async function createPrincipal(call: Call): Promise<void> {
  const { id, name } = call.json(isStrict(call) ? strictAccessSchemas.principal : accessSchemas.principal);
  const principal = await call.core.tokens.createPrincipal(id, name ?? id);
  answerJson(call, 201, toWirePrincipal(principal), { location: `${root}/principals/${encodeURIComponent(id)}` });
}

async function deletePrincipal(call: Call): Promise<void> {
  await call.core.tokens.deletePrincipal(call.rest);
  call.responder.start(204, {});
  call.responder.end();
}
