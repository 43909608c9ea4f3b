import { type Capabilities, CoreError, capabilityNames, wireName } from "@plenum/core";
import { type CapabilityDocument, readCapabilityDocument } from "@plenum/profile";
import { listedModels, type ModelFacts, namedModels } from "../shared/openai/listed-model.ts";
import { isLoose, type Loose } from "../shared/openai/loose.ts";
import { endProblem } from "./errors.ts";
import type { Link } from "./link.ts";
import type { NnrpSettings } from "./options.ts";

/** What a service tells of itself. */
export interface ServiceFacts {
  readonly models: readonly ModelFacts[];
  /** Absent: it has no capability document, or none where sessions can ask for it. */
  readonly document?: CapabilityDocument;
}

/**
 * Asks a service what it serves (`models.list`). One that has no list (level 1) serves the models that the options name.
 * @throws CoreError backend-unavailable, backend-error and what else the list is answered with
 */
export async function lookAt(link: Link, settings: NnrpSettings, signal: AbortSignal): Promise<ServiceFacts> {
  const place = await link.take(signal);
  try {
    const call = place.client.call("models.list", {}, { signal });
    for await (const _event of call);
    signal.throwIfAborted();
    const { end } = call;
    if (end?.event.type === "response.completed") return serviceFacts(end.event.body, settings);
    if (end?.event.type === "response.error" && end.event.error.code === "unsupported_operation") {
      return withoutList(settings);
    }
    throw end === undefined ? noList() : endProblem(call, end);
  } finally {
    place.release();
  }
}

function withoutList({ models }: NnrpSettings): ServiceFacts {
  const named = namedModels(models);
  if (named.length > 0) return { models: named };
  throw new CoreError("backend-unavailable", "The runtime has no list of models; name them in its `models`.");
}

function serviceFacts(body: Loose, settings: NnrpSettings): ServiceFacts {
  const listed = listedModels(body, settings.models, false);
  if (listed === undefined) throw noList();
  const told = toldCapabilities(body["data"]);
  const models = listed.map((facts) => ({ ...facts, capabilities: told.get(facts.name) ?? {} }));
  const read = readCapabilityDocument(body["nnrp"]);
  return read.ok ? { models, document: read.document } : { models };
}

function noList(): CoreError {
  return new CoreError("backend-error", "The runtime's list of models is none; correct its address.");
}

/** What entries of the list say of single models, in the native interface's words (LMSP §4); many services say nothing. */
function toldCapabilities(list: unknown): ReadonlyMap<string, Partial<Capabilities>> {
  const told = new Map<string, Partial<Capabilities>>();
  for (const entry of Array.isArray(list) ? list.filter(isLoose) : []) {
    const { id, capabilities } = entry;
    if (typeof id !== "string" || !isLoose(capabilities)) continue;
    const known = capabilityNames.flatMap((name) => {
      const value = capabilities[wireName(name)];
      return typeof value === "boolean" ? [[name, value] as const] : [];
    });
    told.set(id, Object.fromEntries(known));
  }
  return told;
}
