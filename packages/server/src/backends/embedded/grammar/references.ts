import { isSchemaObject, type SchemaObject } from "./keywords.ts";
import { refuse } from "./refusal.ts";

/**
 * What a `$ref` points to inside the same document.
 * @throws SchemaRefusal when it is remote or leads nowhere
 */
export function resolveReference(root: unknown, reference: unknown, pointer: string): unknown {
  if (typeof reference !== "string") refuse(pointer, "$ref has to be a text.");
  if (reference !== "#" && !reference.startsWith("#/")) {
    refuse(pointer, `$ref "${reference}" points outside; put that schema into $defs and use #/$defs/….`);
  }
  let target: unknown = root;
  for (const key of reference.split("/").slice(1).map(decodeKey)) {
    const steps: SchemaObject | undefined = isSchemaObject(target)
      ? target
      : Array.isArray(target)
        ? { ...target }
        : undefined;
    if (steps === undefined || !Object.hasOwn(steps, key)) refuse(pointer, `$ref "${reference}" leads nowhere.`);
    target = steps[key];
  }
  return target;
}

function decodeKey(key: string): string {
  return safelyDecoded(key).replaceAll("~1", "/").replaceAll("~0", "~");
}

function safelyDecoded(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    // A percent sign that encodes nothing stands for itself.
    return key;
  }
}
