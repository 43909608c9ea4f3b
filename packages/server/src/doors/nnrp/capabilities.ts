import type { CatalogModel, Core } from "@plenum/core";
import {
  type CapabilityDocument,
  createCapabilityDocument,
  type OperationCapability,
  type OperationName,
  operationLevels,
  operationNames,
  responsesEvents,
} from "@plenum/profile";

/** Highest compatibility level that a door offers; each contains the lower ones (profile §4). */
export type Level = 1 | 2 | 3;

/** Operations that a door takes, whatever the catalog holds now. */
export function offeredOperations(level: Level): ReadonlySet<string> {
  const names: string[] = operationNames.filter((name) => operationLevels[name] <= level);
  // It follows responses, and what is not of the profile would fail those who look for exactly level 1.
  return new Set(level === 1 ? names : [...names, responsesEvents]);
}

/**
 * Levels by what the catalog can do now. Every backend hands the core the same events, so that whatever chats keeps the
 * streams and tool calls of Responses too.
 */
export function levelsOf(core: Core, level: Level): readonly number[] {
  const models = core.catalog.list();
  const levels = models.some(canChat) ? [1, 2] : [];
  if (models.some(canEmbed)) levels.push(3);
  return levels.filter((each) => each <= level);
}

/**
 * The capability document (profile §13), of the catalog as it is now.
 * @param shown models that the asker may be told of.
 */
export function capabilitiesOf(core: Core, level: Level, shown: readonly CatalogModel[]): CapabilityDocument {
  return createCapabilityDocument({
    compatibility_levels: levelsOf(core, level),
    operations: operationsOf(core.catalog.list(), level),
    models: shown.map(({ id, runtimes }) => ({ id, owned_by: runtimes[0]?.id ?? "plenum" })),
    extensions: offeredOperations(level).has(responsesEvents) ? [eventsExtension] : [],
  });
}

const eventsExtension = {
  name: responsesEvents,
  critical: false,
  description:
    'Operation of a body {"id", "after"}: sends the events of an own response after the one of that number, and follows it to its end.',
};

const canChat = ({ capabilities }: CatalogModel): boolean => capabilities.chat;
const canEmbed = ({ capabilities }: CatalogModel): boolean => capabilities.embeddings;

function operationsOf(models: readonly CatalogModel[], level: Level): readonly OperationCapability[] {
  const chats = models.filter(canChat);
  const streams = {
    streaming: true,
    non_streaming: true,
    tool_calls: chats.some(({ capabilities }) => capabilities.tools),
    cancellation: true,
  };
  const whole = { streaming: false, non_streaming: true, tool_calls: false, cancellation: true };
  const offered: Readonly<Record<OperationName, OperationCapability | undefined>> = {
    "chat.completions.create": chats.length > 0 ? { name: "chat.completions.create", ...streams } : undefined,
    "responses.create": chats.length > 0 ? { name: "responses.create", ...streams } : undefined,
    "models.list": { name: "models.list", ...whole, cancellation: false },
    "embeddings.create": models.some(canEmbed) ? { name: "embeddings.create", ...whole } : undefined,
  };
  const names = operationNames.filter((name) => operationLevels[name] <= level);
  return names.flatMap((name) => offered[name] ?? []);
}
