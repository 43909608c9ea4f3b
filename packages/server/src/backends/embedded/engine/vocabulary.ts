import { type LlamaModel, LlamaVocabularyType } from "node-llama-cpp";
import type { AddonModel } from "./addon.ts";
import { tokenBytes, type VocabularyKind } from "./token-bytes.ts";

/** A token whose text is not ordinary text when the template writes it. */
export interface SpecialToken {
  readonly id: number;
  readonly text: string;
  /** True: white space before it belongs to it. */
  readonly stripsBefore: boolean;
  /** True: white space after it belongs to it. */
  readonly stripsAfter: boolean;
}

/** llama.cpp's `llama_token_attr` bits. */
const attribute = { unknown: 1, control: 8, userDefined: 16, stripsBefore: 128, stripsAfter: 256 } as const;

const encoder = new TextEncoder();

/** Tokens of one model: their bytes, and those with a meaning of their own. */
export class Vocabulary {
  readonly size: number;
  readonly special: readonly SpecialToken[];
  /** Tokens put before and after every input by themselves; undefined: none. */
  readonly first: number | undefined;
  readonly last: number | undefined;
  readonly bosText: string | undefined;
  readonly eosText: string | undefined;
  readonly infill: { readonly prefix: number; readonly suffix: number; readonly middle: number } | undefined;
  readonly #model: AddonModel;
  readonly #kind: VocabularyKind;
  readonly #isEnd: (token: number) => boolean;
  readonly #bytes = new Map<number, Uint8Array>();

  /** @param size entries, from the file's header: the addon does not check a token's number */
  constructor(owner: LlamaModel, model: AddonModel, size: number) {
    this.#model = model;
    this.#kind = kindOf(owner.vocabularyType);
    const { eos, eot, bos, sep, infill } = owner.tokens;
    this.#isEnd = (token) => token === eos || token === eot || model.isEogToken(token);
    this.size = size;
    this.special = this.#readSpecial();
    const isWordPiece = owner.vocabularyType === LlamaVocabularyType.wpm;
    this.first = (isWordPiece || owner.tokens.shouldPrependBosToken ? bos : null) ?? undefined;
    this.last = (isWordPiece ? sep : owner.tokens.shouldAppendEosToken ? eos : null) ?? undefined;
    this.bosText = bos === null ? undefined : model.getTokenString(bos);
    this.eosText = eos === null ? undefined : model.getTokenString(eos);
    const { prefix, suffix, middle } = infill;
    this.infill = prefix === null || suffix === null || middle === null ? undefined : { prefix, suffix, middle };
  }

  /** True for tokens that end an answer. */
  isEnd(token: number): boolean {
    return this.#isEnd(token);
  }

  /** Bytes that a sampled token adds to the answer; none for control tokens. */
  bytes(token: number): Uint8Array {
    const known = this.#bytes.get(token);
    if (known !== undefined) return known;
    const attributes = this.#model.getTokenAttributes(token);
    const isSilent = (attributes & attribute.control) !== 0 || this.#isEnd(token);
    const text = this.#model.getTokenString(token) ?? "";
    const isPlain = (attributes & attribute.userDefined) !== 0;
    const bytes = isSilent ? new Uint8Array(0) : tokenBytes(text, this.#kind, isPlain);
    this.#bytes.set(token, bytes);
    return bytes;
  }

  /** Numbers of control tokens by their texts; unknown ones are left out. */
  numbersOf(texts: readonly string[]): ReadonlySet<number> {
    return new Set(this.special.filter((token) => texts.includes(token.text)).map((token) => token.id));
  }

  /** Bytes as a list of log probabilities shows them: a control token has its name. */
  listedBytes(token: number): Uint8Array {
    const bytes = this.bytes(token);
    return bytes.length > 0 ? bytes : encoder.encode(this.#model.getTokenString(token) ?? "");
  }

  #readSpecial(): SpecialToken[] {
    const special: SpecialToken[] = [];
    for (let id = 0; id < this.size; id++) {
      const attributes = this.#model.getTokenAttributes(id);
      if ((attributes & (attribute.control | attribute.unknown)) === 0) continue;
      const text = this.#model.getTokenString(id) ?? "";
      if (text === "") continue;
      special.push({
        id,
        text,
        stripsBefore: (attributes & attribute.stripsBefore) !== 0,
        stripsAfter: (attributes & attribute.stripsAfter) !== 0,
      });
    }
    return special;
  }
}

function kindOf(type: LlamaVocabularyType): VocabularyKind {
  if (type === LlamaVocabularyType.bpe) return "bpe";
  return type === LlamaVocabularyType.wpm ? "wpm" : "spm";
}
