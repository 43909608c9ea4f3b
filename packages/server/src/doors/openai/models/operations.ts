import { CoreError, mayUseModel } from "@plenum/core";
import type { Call, Operation } from "../../shared/door.ts";
import { toWireModel } from "../../shared/openai/models/response.ts";
import { answerJson } from "../../shared/run-response.ts";

export const modelOperations: readonly Operation[] = [
  { name: "models.list", method: "GET", path: "/v1/models", scope: "read", handle: listModels },
  { name: "models.retrieve", method: "GET", path: "/v1/models/*", scope: "read", handle: getModel },
];

function listModels(call: Call): void {
  const { core, caller } = call;
  const models = core.catalog.list().filter(({ id }) => mayUseModel(caller.principal, id));
  answerJson(call, 200, { object: "list", data: models.map(toWireModel) });
}

/** The rest of the path is the id, slashes and colons included; a model that the token may not use does not exist. */
function getModel(call: Call): void {
  const { core, caller, rest } = call;
  const found = core.catalog.find(rest);
  if (found === undefined || !mayUseModel(caller.principal, found.model.id)) {
    throw new CoreError("model-not-found", `There is no model '${rest}'; GET /v1/models lists what there is.`, {
      model: rest,
      param: "model",
    });
  }
  answerJson(call, 200, toWireModel(found.model));
}
