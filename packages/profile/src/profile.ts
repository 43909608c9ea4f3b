/** Name of the profile in capability documents. */
export const profileName = "openai-compatible";

/** The only schema version there is; every request names it. */
export const schemaVersion = "openai-compatible/1";

/** Operations of the profile with the compatibility level that brings each (profile §4, §5). */
export const operationLevels = {
  "chat.completions.create": 1,
  "responses.create": 2,
  "models.list": 3,
  "embeddings.create": 3,
} as const;

/** An operation that the profile defines. Extensions have other names; capability documents declare them. */
export type OperationName = keyof typeof operationLevels;

/** Every operation of the profile, in the order of its levels. */
export const operationNames = Object.keys(operationLevels) as readonly OperationName[];

/** Replays and follows the events of an earlier response, of a body `{id, after}`. An extension, not of the profile. */
export const responsesEvents = "responses.events";
