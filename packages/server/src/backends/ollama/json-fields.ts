/** Readers of parsed JSON whose form nobody warrants: what is not there, or of another type, is undefined. */

export function member(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  return Object.getOwnPropertyDescriptor(value, name)?.value;
}

export function textOf(value: unknown, name: string): string | undefined {
  const found = member(value, name);
  return typeof found === "string" ? found : undefined;
}

export function numberOf(value: unknown, name: string): number | undefined {
  const found = member(value, name);
  return typeof found === "number" ? found : undefined;
}

export function listOf(value: unknown, name: string): readonly unknown[] {
  const found = member(value, name);
  return Array.isArray(found) ? found : [];
}

/** Milliseconds since the epoch of an RFC 3339 instant. */
export function instantOf(value: unknown, name: string): number | undefined {
  const ms = Date.parse(textOf(value, name) ?? "");
  return Number.isNaN(ms) ? undefined : ms;
}
