import { addedRuntimeSchema, strictAddedRuntimeSchema } from "../../../config/index.ts";
import type { Call, Operation } from "../../shared/door.ts";
import { answerJson } from "../../shared/run-response.ts";
import { toRuntimeSettings, toWireRuntime } from "../runtimes.ts";
import { isStrict } from "../strict.ts";
import { root } from "./root.ts";

/** What runs the models (LMSP §4). */
export const runtimeOperations: readonly Operation[] = [
  { name: "runtimes.list", method: "GET", path: `${root}/runtimes`, scope: "manage", handle: listRuntimes },
  { name: "runtimes.add", method: "POST", path: `${root}/runtimes`, scope: "manage", handle: addRuntime },
  { name: "runtimes.remove", method: "DELETE", path: `${root}/runtimes/*`, scope: "manage", handle: removeRuntime },
];

function listRuntimes(call: Call): void {
  const data = call.core.runtimes.list().map(toWireRuntime);
  answerJson(call, 200, { data, next_cursor: null });
}

async function addRuntime(call: Call): Promise<void> {
  const wire = call.json(isStrict(call) ? strictAddedRuntimeSchema : addedRuntimeSchema);
  const runtime = await call.core.runtimes.add(toRuntimeSettings(wire));
  answerJson(call, 201, toWireRuntime(runtime), { location: `${root}/runtimes/${runtime.id}` });
}

async function removeRuntime(call: Call): Promise<void> {
  await call.core.runtimes.remove(call.rest);
  call.responder.start(204, {});
  call.responder.end();
}
