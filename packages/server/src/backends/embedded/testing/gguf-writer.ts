/** Writes small GGUF files for tests: a header with made-up values, and as much weight data as told. */

/** A `Float32Array` of one number is written as that number, a longer one as a list. */
export type WrittenValue =
  | string
  | number
  | boolean
  | readonly string[]
  | readonly number[]
  | Float32Array
  | Int32Array;

export interface WrittenFile {
  readonly metadata?: Readonly<Record<string, WrittenValue>>;
  /** Names and dimensions of 32-bit float tensors, one after the other. */
  readonly tensors?: Readonly<Record<string, readonly number[]>>;
  /** Weights, in the order of `tensors`. @default zeros */
  readonly weights?: Float32Array;
  /** Bytes of zeros written as weights. @default all */
  readonly dataBytes?: number;
  readonly version?: number;
}

export function writeGguf({ metadata = {}, tensors = {}, weights, dataBytes, version = 3 }: WrittenFile): Buffer {
  const pairs = Object.entries(metadata);
  const parts = [Buffer.from("GGUF"), u32(version), u64(Object.keys(tensors).length), u64(pairs.length)];
  for (const [key, value] of pairs) parts.push(text(key), written(value));
  let offset = 0;
  for (const [name, dimensions] of Object.entries(tensors)) {
    parts.push(text(name), u32(dimensions.length), ...dimensions.map(u64), u32(0), u64(offset));
    offset += dimensions.reduce((product, length) => product * length, 4);
  }
  const header = Buffer.concat(parts);
  const padding = Buffer.alloc((32 - (header.length % 32)) % 32);
  const data = weights === undefined ? Buffer.alloc(dataBytes ?? offset) : Buffer.from(weights.buffer);
  return Buffer.concat([header, padding, data]);
}

function written(value: WrittenValue): Buffer {
  if (typeof value === "string") return Buffer.concat([u32(8), text(value)]);
  if (typeof value === "boolean") return Buffer.concat([u32(7), Buffer.of(value ? 1 : 0)]);
  if (typeof value === "number") return Buffer.concat([u32(4), u32(value)]);
  if (value instanceof Float32Array && value.length === 1) return Buffer.concat([u32(6), Buffer.from(value.buffer)]);
  if (value instanceof Float32Array || value instanceof Int32Array) {
    const type = value instanceof Float32Array ? 6 : 5;
    return Buffer.concat([u32(9), u32(type), u64(value.length), Buffer.from(value.buffer)]);
  }
  const items = value.map((item) => (typeof item === "string" ? text(item) : u32(item)));
  return Buffer.concat([u32(9), u32(typeof value[0] === "string" ? 8 : 4), u64(value.length), ...items]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function u32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32LE(value);
  return buffer;
}

function u64(value: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64LE(BigInt(value));
  return buffer;
}
