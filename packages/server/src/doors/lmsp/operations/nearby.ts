import type { Call, Operation } from "../../shared/door.ts";
import { answerJson } from "../../shared/run-response.ts";
import { approvalSchema, strictApprovalSchema, toWireNearby, toWireRuntime } from "../runtimes.ts";
import { isStrict } from "../strict.ts";
import { root } from "./root.ts";

/** Services of the local network, and the approval that makes one a runtime (LMSP §8). */
export const nearbyOperations: readonly Operation[] = [
  { name: "nearby.list", method: "GET", path: `${root}/nearby`, scope: "manage", handle: listNearby },
  { name: "nearby.approve", method: "POST", path: `${root}/nearby/*/approve`, scope: "manage", handle: approve },
];

function listNearby(call: Call): void {
  const data = call.core.nearby.list().map(toWireNearby);
  answerJson(call, 200, { data, next_cursor: null });
}

async function approve(call: Call): Promise<void> {
  const { request, rest, core } = call;
  // Most services need no token: then there is nothing to say.
  const wire = request.body.length === 0 ? {} : call.json(isStrict(call) ? strictApprovalSchema : approvalSchema);
  const runtime = await core.nearby.approve(rest, wire.api_key ? { apiKey: wire.api_key } : {});
  answerJson(call, 200, toWireRuntime(runtime));
}
