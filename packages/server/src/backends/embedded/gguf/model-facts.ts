import type { GgufHeader, MetadataValue } from "./header.ts";

/** What the backend must know of a model before it loads it. */
export interface ModelFacts {
  readonly architecture: string;
  /** `other`: a file that is no model by itself, such as a projector or an adapter. */
  readonly use: "text" | "embedding" | "reranking" | "other";
  readonly trainedContextTokens: number | undefined;
  /** Length of the embedding vectors; undefined for text models. */
  readonly embeddingDimensions: number | undefined;
  readonly vocabularySize: number;
  readonly chatTemplate: string | undefined;
  /** Bytes of keys and values for one token, in 16 bits each; 0 where nothing is kept (encoders). */
  readonly cacheBytesPerToken: number;
}

const poolingRank = 4;
const notModels = new Set(["clip", "mmproj", "control_vector"]);
const encoders =
  /^(?:(?:modern-|neo-|nomic-|euro)?bert|nomic-bert-moe|jina-bert-v[23]|gemma-embedding|llama-embed|t5encoder)$/;

/** Reads a header the way llama.cpp does. */
export function modelFacts(header: GgufHeader): ModelFacts {
  const architecture = text(header.metadata.get("general.architecture")) ?? "unknown";
  const use = useOf(header, architecture);
  const embeddingLength = number(header.metadata.get(`${architecture}.embedding_length`));
  return {
    architecture,
    use,
    trainedContextTokens: number(header.metadata.get(`${architecture}.context_length`)),
    embeddingDimensions:
      use === "embedding"
        ? (number(header.metadata.get(`${architecture}.embedding_length_out`)) ?? embeddingLength)
        : undefined,
    vocabularySize: header.arrayLengths.get("tokenizer.ggml.tokens") ?? 0,
    chatTemplate: text(header.metadata.get("tokenizer.chat_template")),
    cacheBytesPerToken: encoders.test(architecture) ? 0 : cacheBytesPerToken(header, architecture),
  };
}

function useOf({ metadata }: GgufHeader, architecture: string): ModelFacts["use"] {
  const type = metadata.get("general.type");
  if (notModels.has(architecture) || type === "mmproj" || type === "adapter") return "other";
  const pooling = number(metadata.get(`${architecture}.pooling_type`)) ?? 0;
  if (pooling === poolingRank) return "reranking";
  return pooling > 0 || encoders.test(architecture) ? "embedding" : "text";
}

/** Layers × key-value heads × (key length + value length) × 2 bytes. Windows and shared layers are not subtracted. */
function cacheBytesPerToken(header: GgufHeader, architecture: string): number {
  const field = (name: string) => number(header.metadata.get(`${architecture}.${name}`));
  const layers = field("block_count") ?? 0;
  const heads = field("attention.head_count") ?? 1;
  const length = (field("embedding_length") ?? 0) / heads;
  const perHead = (field("attention.key_length") ?? length) + (field("attention.value_length") ?? length);
  const list = header.numberLists.get(`${architecture}.attention.head_count_kv`);
  const total = list?.reduce((sum, count) => sum + count, 0) ?? layers * (field("attention.head_count_kv") ?? heads);
  return Math.ceil(total * perHead * 2);
}

function text(value: MetadataValue | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function number(value: MetadataValue | undefined): number | undefined {
  return typeof value === "number" ? value : undefined;
}
