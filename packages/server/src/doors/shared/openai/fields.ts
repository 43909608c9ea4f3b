import { CoreError } from "@plenum/core";

/** What becomes of a field of a request body. `without effect`: taken, and named in `X-LMSP-Without-Effect`. */
type FieldEffect = "honoured" | "refused" | "without effect";

export interface Field {
  readonly effect: FieldEffect;
  /** Bounds of the effect, for the reference and for the sentence of a refusal. */
  readonly note?: string;
  /** For `refused`: values that ask for what happens anyway. */
  readonly allows?: (value: unknown) => boolean;
}

/** Every field of one API's request, by its name on the wire. */
export type FieldTable = Readonly<Record<string, Field>>;

export const honoured: Field = { effect: "honoured" };
/** Only for what changes neither text nor tools nor format. */
export const withoutEffect: Field = { effect: "without effect" };

export function refused(note: string, allows?: (value: unknown) => boolean): Field {
  return { effect: "refused", note, ...(allows === undefined ? {} : { allows }) };
}

/**
 * Refuses what the table refuses; null is the same as absent.
 * @returns the names of the fields that are taken without effect, unknown ones among them.
 * @throws CoreError unsupported-capability with the field as `param`.
 */
export function readFields(body: Readonly<Record<string, unknown>>, table: FieldTable): readonly string[] {
  const names: string[] = [];
  for (const [name, value] of Object.entries(body)) {
    if (value === null || value === undefined) continue;
    const field = Object.hasOwn(table, name) ? table[name] : undefined;
    if (field === undefined || field.effect === "without effect") names.push(name);
    else if (field.effect === "refused" && !field.allows?.(value)) refuse(name, field.note ?? "leave it out");
  }
  return names;
}

/**
 * A field or value that is understood and not offered.
 * @param note completes the sentence: what to do instead.
 */
export function refuse(param: string, note: string): never {
  throw new CoreError("unsupported-capability", `'${param}' is not supported here: ${note}.`, {
    param,
    capability: param,
  });
}

/** A value that is wrong. */
export function invalid(param: string, detail: string): never {
  throw new CoreError("invalid-request", `'${param}' is wrong: ${detail}.`, { param });
}
