import { open } from "node:fs/promises";
import { GgufFormatError, HeaderReader } from "./header-reader.ts";
import { fileTypeName, tensorBytes } from "./types.ts";

export type MetadataValue = string | number | boolean;

/** What a GGUF file says about itself. Long arrays (the vocabulary) are only counted. */
export interface GgufHeader {
  readonly metadata: ReadonlyMap<string, MetadataValue>;
  /** Short arrays of numbers, such as key-value heads for each layer. */
  readonly numberLists: ReadonlyMap<string, readonly number[]>;
  readonly arrayLengths: ReadonlyMap<string, number>;
  readonly hasInfillTokens: boolean;
  /** Weights. */
  readonly parameters: number;
  /** Bytes that the file must have to hold all weights. */
  readonly neededBytes: number;
  readonly sizeBytes: number;
  /** Name of the weights' format, such as `Q4_1`; undefined when the file does not say. */
  readonly quantization: string | undefined;
}

const valueType = { string: 8, array: 9 } as const;
/** Bytes of each scalar type, by its number; 8 and 9 are texts and arrays. */
const scalarBytes = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const mostPairs = 65_536;
const mostTensors = 1_000_000;
const mostKeyBytes = 65_535;
const mostTextBytes = 4 * 1024 * 1024;
const longestNumberList = 4096;
const infillNames = /^(?:<\|?fim[_-]?(?:middle|mid)\|?>|<fim▁hole>|<\|fim▁hole\|>|▁?<MID>|<\|code_middle\|>)$/;

/** Everything gathered while reading. */
class Findings {
  readonly metadata = new Map<string, MetadataValue>();
  readonly numberLists = new Map<string, number[]>();
  readonly arrayLengths = new Map<string, number>();
  hasInfillTokens = false;
}

/**
 * Reads the header of a GGUF file (versions 2 and 3), without its weights. Never blocks the event loop for long.
 * @throws GgufFormatError for a file that is no GGUF, damaged or cut off
 * @throws the file system's own error for one that can't be read
 */
export async function readGgufHeader(path: string): Promise<GgufHeader> {
  const file = await open(path, "r");
  try {
    const sizeBytes = (await file.stat()).size;
    const header = await readHeader(new HeaderReader(file, sizeBytes), sizeBytes);
    if (header.neededBytes > sizeBytes) {
      throw new GgufFormatError(`is cut off: it has ${sizeBytes} of ${header.neededBytes} bytes; fetch it again`);
    }
    return header;
  } finally {
    await file.close();
  }
}

async function readHeader(reader: HeaderReader, sizeBytes: number): Promise<GgufHeader> {
  const isGguf = sizeBytes >= 24 && (await reader.bytes(4)).toString("latin1") === "GGUF";
  if (!isGguf) throw new GgufFormatError("is no GGUF file");
  const version = await reader.u32();
  if (version !== 2 && version !== 3) throw new GgufFormatError(`has GGUF version ${version}; 2 and 3 are known`);
  const tensorCount = await reader.size();
  const pairCount = await reader.size();
  if (tensorCount > mostTensors || pairCount > mostPairs)
    throw new GgufFormatError("is damaged: its counts make no sense");
  const findings = new Findings();
  for (let pair = 0; pair < pairCount; pair++) {
    const key = await reader.text(mostKeyBytes);
    await readValue(reader, await reader.u32(), key, findings);
  }
  const weights = await readTensors(reader, tensorCount, alignmentOf(findings));
  const fileType = findings.metadata.get("general.file_type");
  return {
    metadata: findings.metadata,
    numberLists: findings.numberLists,
    arrayLengths: findings.arrayLengths,
    hasInfillTokens: findings.hasInfillTokens || findings.metadata.has("tokenizer.ggml.fim_mid_token_id"),
    ...weights,
    sizeBytes,
    quantization: typeof fileType === "number" ? fileTypeName(fileType) : undefined,
  };
}

async function readValue(reader: HeaderReader, type: number, key: string, findings: Findings): Promise<void> {
  if (type === valueType.array) await readArray(reader, key, findings);
  else if (type === valueType.string) findings.metadata.set(key, await reader.text(mostTextBytes));
  else findings.metadata.set(key, scalar(await reader.bytes(bytesOf(type)), type));
}

async function readArray(reader: HeaderReader, key: string, findings: Findings): Promise<void> {
  const type = await reader.u32();
  const length = await reader.size();
  findings.arrayLengths.set(key, length);
  if (type === valueType.array) throw new GgufFormatError("holds arrays in arrays, which no known model has");
  if (type === valueType.string) {
    await readTexts(reader, length, key === "tokenizer.ggml.tokens", findings);
    return;
  }
  if (length > longestNumberList) {
    await reader.skip(length * bytesOf(type));
    return;
  }
  const list: number[] = [];
  for (let index = 0; index < length; index++) list.push(Number(scalar(await reader.bytes(bytesOf(type)), type)));
  findings.numberLists.set(key, list);
}

async function readTexts(
  reader: HeaderReader,
  count: number,
  isVocabulary: boolean,
  findings: Findings,
): Promise<void> {
  for (let index = 0; index < count; index++) {
    const length = await reader.size();
    if (!isVocabulary || length < 5 || length > 24) {
      await reader.skip(length);
      continue;
    }
    const text = await reader.bytes(length);
    if (text[length - 1] === 0x3e && infillNames.test(text.toString("utf8"))) findings.hasInfillTokens = true;
  }
}

async function readTensors(
  reader: HeaderReader,
  count: number,
  alignmentBytes: number,
): Promise<{ parameters: number; neededBytes: number }> {
  let parameters = 0;
  let dataBytes = 0;
  for (let tensor = 0; tensor < count; tensor++) {
    await reader.skip(await reader.size());
    const dimensions = await reader.u32();
    if (dimensions > 8) throw new GgufFormatError("is damaged: a tensor has too many dimensions");
    let elements = 1;
    for (let dimension = 0; dimension < dimensions; dimension++) elements *= await reader.size();
    const type = await reader.u32();
    const offset = await reader.size();
    parameters += elements;
    dataBytes = Math.max(dataBytes, offset + tensorBytes(type, elements));
  }
  const start = Math.ceil(reader.position / alignmentBytes) * alignmentBytes;
  return { parameters, neededBytes: count === 0 ? reader.position : start + dataBytes };
}

function alignmentOf(findings: Findings): number {
  const alignment = findings.metadata.get("general.alignment");
  return typeof alignment === "number" && alignment > 0 ? alignment : 32;
}

function bytesOf(type: number): number {
  const bytes = scalarBytes[type];
  if (bytes === undefined || bytes === 0) throw new GgufFormatError(`is damaged: there is no value type ${type}`);
  return bytes;
}

function scalar(bytes: Buffer, type: number): number | boolean {
  switch (type) {
    case 0:
      return bytes.readUInt8(0);
    case 1:
      return bytes.readInt8(0);
    case 2:
      return bytes.readUInt16LE(0);
    case 3:
      return bytes.readInt16LE(0);
    case 4:
      return bytes.readUInt32LE(0);
    case 5:
      return bytes.readInt32LE(0);
    case 6:
      return bytes.readFloatLE(0);
    case 7:
      return bytes.readUInt8(0) !== 0;
    case 10:
      return Number(bytes.readBigUInt64LE(0));
    case 11:
      return Number(bytes.readBigInt64LE(0));
    default:
      return bytes.readDoubleLE(0);
  }
}
