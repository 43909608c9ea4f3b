import { findUsable, type Scope, usableModels } from "@plenum/core";
import type { Call, Operation } from "../shared/door.ts";
import { answerJson } from "../shared/run-response.ts";
import { jsonType, requireName, withoutEffectHeader } from "./answer.ts";
import { defaults } from "./defaults.ts";
import { embed, embedOne } from "./embeddings.ts";
import { copy, pull, remove } from "./manage.ts";
import { toProcess, toShow, toTag } from "./models.ts";
import { chat, generate } from "./run.ts";
import { nameOf, showSchema } from "./schema.ts";
import { catalogName } from "./settle.ts";

/** @param version of this service. */
export function createOperations(version: string): readonly Operation[] {
  const running = (): Answer => ({ type: "text/plain; charset=utf-8", body: "Ollama is running" });
  return [
    ...readable("root", "/", null, running),
    ...readable("version", "/api/version", null, tellVersion),
    ...readable("tags", "/api/tags", "read", listTags),
    ...readable("ps", "/api/ps", "read", listProcesses),
    { name: "show", method: "POST", path: "/api/show", scope: "read", handle: (call) => show(call, version) },
    { name: "chat", method: "POST", path: "/api/chat", scope: "infer", handle: chat },
    { name: "generate", method: "POST", path: "/api/generate", scope: "infer", handle: generate },
    { name: "embed", method: "POST", path: "/api/embed", scope: "infer", handle: embed },
    { name: "embeddings", method: "POST", path: "/api/embeddings", scope: "infer", handle: embedOne },
    { name: "pull", method: "POST", path: "/api/pull", scope: "manage", handle: pull },
    { name: "delete", method: "DELETE", path: "/api/delete", scope: "manage", handle: remove },
    { name: "copy", method: "POST", path: "/api/copy", scope: "manage", handle: copy },
  ];
}

interface Answer {
  readonly type: string;
  readonly body: string;
}

/** What can be read can be asked for with HEAD too: the CLI does so before every command. */
function readable(name: string, path: string, scope: Scope | null, answer: (call: Call) => Answer): Operation[] {
  const handle = (call: Call): void => {
    const { type, body } = answer(call);
    const bytes = new TextEncoder().encode(body).length;
    call.responder.start(200, { "content-type": type, "content-length": String(bytes) });
    call.responder.end(call.request.method === "HEAD" ? undefined : body);
  };
  return (["HEAD", "GET"] as const).map((method) => ({ name, method, path, scope, handle }));
}

function tellVersion(): Answer {
  return { type: jsonType, body: JSON.stringify({ version: defaults.version }) };
}

function listTags({ core, caller }: Call): Answer {
  const models = usableModels(core.catalog, caller.principal);
  return { type: jsonType, body: JSON.stringify({ models: models.map(toTag) }) };
}

function listProcesses({ core, caller }: Call): Answer {
  const models = usableModels(core.catalog, caller.principal).filter(({ state }) => state === "loaded");
  return { type: jsonType, body: JSON.stringify({ models: models.map(toProcess) }) };
}

function show(call: Call, version: string): void {
  const wire = call.json(showSchema);
  const name = requireName(nameOf(wire));
  const { core, caller } = call;
  const model = findUsable(core.catalog, catalogName(core.catalog, name), caller.principal);
  answerJson(call, 200, toShow(model, version), withoutEffectHeader(wire.verbose ? ["verbose"] : []));
}
