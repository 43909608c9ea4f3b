import { readFile, writeFile } from "node:fs/promises";

/** Writes a GGUF file as a model in parts, as llama.cpp's own tool does, for tests; understands what the test model has. */

interface Tensor {
  readonly info: Buffer;
  readonly name: string;
  readonly offset: number;
  length: number;
}

const alignment = 32;

/** @returns paths of the parts, in order */
export async function splitGguf(path: string, stem: string, parts: number): Promise<readonly string[]> {
  const bytes = await readFile(path);
  const cursor = { at: 4 };
  const taken = (length: number): number => {
    cursor.at += length;
    return cursor.at - length;
  };
  const u32 = () => bytes.readUInt32LE(taken(4));
  const u64 = () => Number(bytes.readBigUInt64LE(taken(8)));
  const skipText = () => {
    const length = u64();
    cursor.at += length;
  };
  const version = u32();
  const tensorCount = u64();
  const pairCount = u64();
  const pairsFrom = cursor.at;
  for (let pair = 0; pair < pairCount; pair++) {
    skipText();
    skipValue(u32());
  }
  const pairs = bytes.subarray(pairsFrom, cursor.at);
  const tensors: Tensor[] = [];
  for (let index = 0; index < tensorCount; index++) {
    const from = cursor.at;
    const length = u64();
    const name = bytes.toString("utf8", cursor.at, cursor.at + length);
    cursor.at += length;
    const dimensions = u32();
    cursor.at += 8 * dimensions + 4;
    const info = bytes.subarray(from, cursor.at);
    tensors.push({ info, name, offset: u64(), length: 0 });
  }
  const dataFrom = Math.ceil(cursor.at / alignment) * alignment;
  const sorted = [...tensors].sort((one, other) => one.offset - other.offset);
  for (const [index, tensor] of sorted.entries()) {
    tensor.length = (sorted[index + 1]?.offset ?? bytes.length - dataFrom) - tensor.offset;
  }
  const perPart = Math.ceil(tensors.length / parts);
  const paths: string[] = [];
  for (let part = 0; part < parts; part++) {
    const own = tensors.slice(part * perPart, (part + 1) * perPart);
    const split = [
      pairU16("split.no", part),
      pairU16("split.count", parts),
      pairI32("split.tensors.count", tensors.length),
    ];
    const count = split.length + (part === 0 ? pairCount : 0);
    const head = Buffer.concat([
      Buffer.from("GGUF"),
      u32Of(version),
      u64Of(own.length),
      u64Of(count),
      ...(part === 0 ? [pairs] : []),
      ...split,
    ]);
    const infos: Buffer[] = [];
    const data: Buffer[] = [];
    let offset = 0;
    for (const tensor of own) {
      infos.push(tensor.info, u64Of(offset));
      data.push(bytes.subarray(dataFrom + tensor.offset, dataFrom + tensor.offset + tensor.length));
      offset += tensor.length;
    }
    const header = Buffer.concat([head, ...infos]);
    const padding = Buffer.alloc((alignment - (header.length % alignment)) % alignment);
    const number = (value: number) => String(value).padStart(5, "0");
    const target = `${stem}-${number(part + 1)}-of-${number(parts)}.gguf`;
    await writeFile(target, Buffer.concat([header, padding, ...data]));
    paths.push(target);
  }
  return paths;

  function skipValue(type: number): void {
    if (type === 8) skipText();
    else if (type === 9) {
      const items = u32();
      const length = u64();
      for (let index = 0; index < length; index++) skipValue(items);
    } else cursor.at += [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8][type] ?? 0;
  }
}

function pairU16(key: string, value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return Buffer.concat([textOf(key), u32Of(2), bytes]);
}

function pairI32(key: string, value: number): Buffer {
  return Buffer.concat([textOf(key), u32Of(5), u32Of(value)]);
}

function textOf(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([u64Of(bytes.length), bytes]);
}

function u32Of(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function u64Of(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
