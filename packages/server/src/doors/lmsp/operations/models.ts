import { findUsable, usableModels } from "@plenum/core";
import type { Call, Operation } from "../../shared/door.ts";
import { answerJson } from "../../shared/run-response.ts";
import { toWireModel } from "../response.ts";
import { root } from "./root.ts";

/** The catalog (LMSP §4). @param instance of the service, which its versions count in */
export function modelOperations(instance: string): readonly Operation[] {
  return [
    {
      name: "models.list",
      method: "GET",
      path: `${root}/models`,
      scope: "read",
      handle: (call) => listModels(call, instance),
    },
    { name: "models.get", method: "GET", path: `${root}/models/*`, scope: "read", handle: getModel },
  ];
}

function listModels(call: Call, instance: string): void {
  const { core, caller, request, responder } = call;
  // Versions count from anew in each process, and tokens see different models.
  const etag = `"${instance}-${core.catalog.version.toString(36)}-${encodeURIComponent(caller.principal.id)}"`;
  if (request.headers["if-none-match"] === etag) {
    responder.start(304, { etag });
    responder.end();
    return;
  }
  const models = usableModels(core.catalog, caller.principal);
  answerJson(call, 200, { data: models.map(toWireModel), next_cursor: null }, { etag });
}

function getModel(call: Call): void {
  answerJson(call, 200, toWireModel(findUsable(call.core.catalog, call.rest, call.caller.principal)));
}
