import { type ProfileError, profileError } from "./errors.ts";
import { isJsonObject, isNonEmptyString, type JsonObject } from "./json.ts";
import { profileName, schemaVersion } from "./profile.ts";

/** What one operation can do. */
export interface OperationCapability {
  readonly name: string;
  readonly streaming: boolean;
  readonly non_streaming: boolean;
  readonly tool_calls: boolean;
  readonly cancellation: boolean;
}

export interface ModelCapability {
  readonly id: string;
  readonly owned_by: string;
}

export interface ExtensionCapability {
  readonly name: string;
  /** Whether a client that doesn't know it must stay away. */
  readonly critical: boolean;
  readonly description: string;
}

/** The capability document (profile §13, wire description §12.6), in the wire's spelling. */
export interface CapabilityDocument {
  readonly profile: typeof profileName;
  readonly schema_version: typeof schemaVersion;
  readonly compatibility_levels: readonly number[];
  readonly operations: readonly OperationCapability[];
  readonly models: readonly ModelCapability[];
  readonly extensions: readonly ExtensionCapability[];
  /**
   * Ids of the service itself and of the services behind it, its own first, at most `maxServices`: whoever finds its own
   * id there would ask itself. Absent: not told.
   */
  readonly services?: readonly string[];
}

/** Ids that a document tells. */
export const maxServices = 32;

export function createCapabilityDocument(
  parts: Omit<CapabilityDocument, "profile" | "schema_version">,
): CapabilityDocument {
  const { compatibility_levels, operations, models, extensions, services } = parts;
  const document = { compatibility_levels, operations, models, extensions };
  return {
    profile: profileName,
    schema_version: schemaVersion,
    ...document,
    ...(services === undefined ? {} : { services: services.slice(0, maxServices) }),
  };
}

export type CapabilityResult =
  | { readonly ok: true; readonly document: CapabilityDocument }
  /** `field` is the wrong member, such as `operations[0].name`; absent when it is the document. */
  | { readonly ok: false; readonly message: string; readonly field?: string };

/**
 * Reads a parsed document; unknown members are ignored. Absent lists of models and extensions are empty; what an
 * operation says nothing about is taken as offered.
 */
export function readCapabilityDocument(value: unknown): CapabilityResult {
  if (!isJsonObject(value)) return { ok: false, message: "The capability document is not an object." };
  const { profile, schema_version: version, compatibility_levels: levels } = value;
  if (profile !== profileName) return wrong("profile", `must be ${profileName}`);
  if (version !== schemaVersion) return wrong("schema_version", `must be ${schemaVersion}`);
  if (!Array.isArray(levels) || !levels.every((level) => Number.isInteger(level))) {
    return wrong("compatibility_levels", "must be a list of whole numbers");
  }
  const operations = readList(value, "operations", "name", toOperation);
  if (typeof operations === "string") return wrong(operations);
  const models = readList(value, "models", "id", toModel);
  if (typeof models === "string") return wrong(models);
  const extensions = readList(value, "extensions", "name", toExtension);
  if (typeof extensions === "string") return wrong(extensions);
  return {
    ok: true,
    document: createCapabilityDocument({
      compatibility_levels: levels,
      operations,
      models,
      extensions,
      ...servicesOf(value["services"]),
    }),
  };
}

function servicesOf(value: unknown): Pick<CapabilityDocument, "services"> {
  if (!Array.isArray(value)) return {};
  return { services: value.filter((id): id is string => typeof id === "string" && /^[\w.-]{1,64}$/.test(id)) };
}

function wrong(field: string, wanted = "is missing or wrong"): CapabilityResult {
  return { ok: false, message: `${field} ${wanted}.`, field };
}

/** @returns the name of the wrong member instead. */
function readList<T>(
  value: JsonObject,
  name: string,
  key: string,
  convert: (member: JsonObject, key: string) => T,
): readonly T[] | string {
  const list = value[name] ?? (name === "operations" ? undefined : []);
  if (!Array.isArray(list)) return name;
  const converted: T[] = [];
  for (const [index, member] of list.entries()) {
    const id = isJsonObject(member) ? member[key] : undefined;
    if (!isNonEmptyString(id)) return `${name}[${index}].${key}`;
    converted.push(convert(member, id));
  }
  return converted;
}

function toOperation(member: JsonObject, name: string): OperationCapability {
  return {
    name,
    streaming: member["streaming"] !== false,
    non_streaming: member["non_streaming"] !== false,
    tool_calls: member["tool_calls"] !== false,
    cancellation: member["cancellation"] !== false,
  };
}

function toModel(member: JsonObject, id: string): ModelCapability {
  return { id, owned_by: isNonEmptyString(member["owned_by"]) ? member["owned_by"] : "" };
}

function toExtension(member: JsonObject, name: string): ExtensionCapability {
  const { critical, description } = member;
  return { name, critical: critical === true, description: typeof description === "string" ? description : "" };
}

/**
 * What a document says against a request.
 * @returns the error to refuse it with before it is sent, or undefined when it may be sent.
 */
export function refuseUnadvertised(
  document: CapabilityDocument,
  operation: string,
  body: JsonObject,
): ProfileError | undefined {
  const offered = document.operations.find(({ name }) => name === operation);
  if (offered === undefined) {
    // Extensions are operations of their own.
    if (document.extensions.some(({ name }) => name === operation)) return undefined;
    return profileError("unsupported_operation", `The service does not offer ${operation}.`, "operation");
  }
  const isStream = body["stream"] === true;
  if (isStream ? offered.streaming : offered.non_streaming) {
    if (!hasTools(body) || offered.tool_calls) return undefined;
    return profileError("unsupported_operation", `The service offers ${operation} without tools.`, "tools");
  }
  const form = isStream ? "as a stream" : "without a stream";
  return profileError("unsupported_operation", `The service does not offer ${operation} ${form}.`, "stream");
}

function hasTools({ tools }: JsonObject): boolean {
  return Array.isArray(tools) && tools.length > 0;
}
