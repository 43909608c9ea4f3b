import { z } from "zod";
import type { ConfigPath } from "./config-document.ts";
import { configSchema } from "./schema.ts";

type SchemaNode = z.core.JSONSchema.BaseSchema;

/** JSON Schema (draft 2020-12) of `plenum.config.yaml`, for editors. */
export function configJsonSchema(): SchemaNode {
  return { ...z.toJSONSchema(configSchema, { io: "input" }), title: "plenum.config.yaml" };
}

function isNode(schema: unknown): schema is SchemaNode {
  return typeof schema === "object" && schema !== null && !Array.isArray(schema);
}

/** Names of the options in the mapping at a path; empty when names are free there. */
export function knownKeys(path: ConfigPath): readonly string[] {
  let node: SchemaNode = configJsonSchema();
  for (const key of path) {
    const child = node.properties?.[String(key)] ?? node.items ?? node.additionalProperties;
    if (!isNode(child)) return [];
    node = child;
  }
  return Object.keys(node.properties ?? {});
}

export interface ConfigOption {
  /** `limits.queue`, `auth.tokens[].principal`, `embedded.models.<model>.parallel`. */
  readonly path: string;
  readonly description: string;
  /** Undefined: none. */
  readonly default?: unknown;
}

/** Every option that holds a value, in the order of the schema. */
export function configOptions(): readonly ConfigOption[] {
  return optionsBelow(configJsonSchema(), "");
}

/** What a mapping with free names is from. */
function freeName(path: string): string {
  if (path === "runtimes") return "<name>";
  if (path === "aliases") return "<alias>";
  if (path === "same_as") return "<runtime/model>";
  return path.endsWith(".headers") ? "<header>" : "<model>";
}

function optionsBelow(node: unknown, path: string): ConfigOption[] {
  if (!isNode(node)) return [];
  if (node.properties !== undefined) {
    return Object.entries(node.properties).flatMap(([key, child]) =>
      optionsBelow(child, path === "" ? key : `${path}.${key}`),
    );
  }
  if (isNode(node.items) && node.items.properties !== undefined) return optionsBelow(node.items, `${path}[]`);
  if (isNode(node.additionalProperties)) return optionsBelow(node.additionalProperties, `${path}.${freeName(path)}`);
  return [{ path, description: node.description ?? "", default: node.default }];
}
