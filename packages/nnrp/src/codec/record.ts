import { NnrpWireError } from "./wire-error.ts";

/** A fixed-size, little-endian record: a table of fields. Bytes that no field names are reserved and must be 0. */

type Width = "u8" | "u16" | "i16" | "u32" | "u64";

/** What a value must be; `undefined` when it is allowed, else what is wrong. */
type Rule = (value: number) => boolean;

export interface Field<W extends Width = Width> {
  readonly width: W;
  readonly at: number;
  readonly allowed: Rule | undefined;
  readonly nonZero: boolean;
}

export type Fields = Readonly<Record<string, Field>>;

/** The values of a record: `bigint` for 64 bits, `number` for the rest. */
export type Values<F extends Fields> = { -readonly [K in keyof F]: Value<F[K]["width"]> };
type Value<W extends Width> = W extends "u64" ? bigint : number;

export interface RecordLayout<F extends Fields = Fields> {
  readonly size: number;
  readonly fields: F;
  readonly entries: readonly (readonly [name: string, field: Field])[];
  /** Reserved bytes, as offsets. */
  readonly reserved: readonly number[];
}

const sizes: Readonly<Record<Width, number>> = { u8: 1, u16: 2, i16: 2, u32: 4, u64: 8 };

export function record<const F extends Fields>(size: number, fields: F): RecordLayout<F> {
  const entries = Object.entries(fields);
  const covered = new Set<number>();
  for (const [, { at, width }] of entries) for (let i = 0; i < sizes[width]; i += 1) covered.add(at + i);
  const reserved = Array.from({ length: size }, (_, offset) => offset).filter((offset) => !covered.has(offset));
  return { size, fields, entries, reserved };
}

const field =
  <W extends Width>(width: W) =>
  (at: number, allowed?: Rule): Field<W> => ({ width, at, allowed, nonZero: false });

export const u8 = field("u8");
export const u16 = field("u16");
export const i16 = field("i16");
export const u32 = field("u32");
export const u64 = field("u64");

/** The field must not be 0. */
export const nonZero = <W extends Width>(of: Field<W>): Field<W> => ({ ...of, nonZero: true });
/** No bit outside `bits`. */
export const mask =
  (bits: number): Rule =>
  (value) =>
    (value & ~bits) === 0;
export const atMost =
  (most: number): Rule =>
  (value) =>
    value <= most;
/** One of a registry's values. */
export const oneOf = (registry: Readonly<Record<string, number>>): Rule => {
  const values = new Set(Object.values(registry));
  return (value) => values.has(value);
};

/** Reads a record. @throws {NnrpWireError} `bad-field`, with the field's name. */
export function readRecord<F extends Fields>(layout: RecordLayout<F>, view: DataView, start: number): Values<F> {
  const values: Record<string, number | bigint> = {};
  for (const [name, { width, at, allowed, nonZero }] of layout.entries) {
    const offset = start + at;
    if (width === "u64") {
      const value = view.getBigUint64(offset, true);
      if (nonZero && value === 0n) throw badField(name, "must not be 0");
      values[name] = value;
      continue;
    }
    const value = readNumber(view, offset, width);
    if (nonZero && value === 0) throw badField(name, "must not be 0");
    if (allowed !== undefined && !allowed(value)) throw badField(name, `holds ${value}, which is not allowed`);
    values[name] = value;
  }
  for (const offset of layout.reserved) {
    if (view.getUint8(start + offset) !== 0) throw badField("reserved", `byte ${offset} is reserved and must be 0`);
  }
  return values as Values<F>;
}

function readNumber(view: DataView, offset: number, width: Exclude<Width, "u64">): number {
  switch (width) {
    case "u8":
      return view.getUint8(offset);
    case "u16":
      return view.getUint16(offset, true);
    case "i16":
      return view.getInt16(offset, true);
    case "u32":
      return view.getUint32(offset, true);
  }
}

const badField = (name: string, problem: string) => new NnrpWireError("bad-field", `${name} ${problem}`, name);

const ranges: Readonly<Record<Exclude<Width, "u64">, readonly [number, number]>> = {
  u8: [0, 0xff],
  u16: [0, 0xffff],
  i16: [-0x8000, 0x7fff],
  u32: [0, 0xffffffff],
};

/**
 * Writes a record over bytes that are 0; fields left out are 0. @throws {NnrpWireError} `bad-value`, with the field's
 * name.
 */
export function writeRecord<F extends Fields>(
  layout: RecordLayout<F>,
  view: DataView,
  start: number,
  values: Partial<Values<F>>,
): void {
  const given = values as Readonly<Record<string, number | bigint | undefined>>;
  for (const [name, { width, at, allowed, nonZero }] of layout.entries) {
    const value = given[name] ?? 0;
    if (nonZero && Number(value) === 0) throw badValue(name, "must not be 0");
    if (width === "u64") {
      const wide = BigInt(value);
      if (wide < 0n || wide > 0xffff_ffff_ffff_ffffn) throw badValue(name, "must fit 64 bits");
      view.setBigUint64(start + at, wide, true);
      continue;
    }
    const [least, most] = ranges[width];
    if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most) {
      throw badValue(name, `must be an integer from ${least} to ${most}`);
    }
    if (allowed !== undefined && !allowed(value)) throw badValue(name, `holds ${value}, which is not allowed`);
    writeNumber(view, start + at, width, value);
  }
}

function writeNumber(view: DataView, offset: number, width: Exclude<Width, "u64">, value: number): void {
  switch (width) {
    case "u8":
      view.setUint8(offset, value);
      return;
    case "u16":
      view.setUint16(offset, value, true);
      return;
    case "i16":
      view.setInt16(offset, value, true);
      return;
    case "u32":
      view.setUint32(offset, value, true);
      return;
  }
}

const badValue = (name: string, problem: string) => new NnrpWireError("bad-value", `${name} ${problem}`, name);
