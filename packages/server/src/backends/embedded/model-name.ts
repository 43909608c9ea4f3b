/** Names that one file can be called by. */
export interface ModelName {
  readonly name: string;
  readonly title: string;
  readonly aliases: readonly string[];
  /** Name with the weights' format, for a second file of the same model. */
  readonly longName: string;
}

const partNumber = /-\d{5}-of-\d{5}$/;
const quantization = /[-._ ]((?:ud-)?(?:i?q\d\w*|tq\d\w*|bf16|fp?(?:16|32)|mxfp4\w*|nvfp4))$/;
const sizeWord = /^(?:\d+x)?\d+(?:\.\d+)?[mbt]$/;
/** Words that Ollama's names leave out, since the tuned model is the usual one. */
const usualWords = new Set(["instruct", "it", "chat", "gguf"]);
/** Trailing words that only tell layers or versions: `l6`, `v2`, `v1.5`. */
const versionWord = /^[lv]\d+(?:\.\d+)*$/;

/**
 * Names a model after its file, in Ollama's style:
 * - the weights' format at the end goes (`-q4_1`, `.Q4_K_M`, `-f16`), and so does the number of a split file;
 * - words before the size are the family, the size and what follows are the tag, without `instruct`, `it`, `chat`:
 *   `Qwen2.5-Coder-7B-Instruct-Q4_K_M.gguf` is `qwen2.5-coder:7b`, aliases `qwen2.5-coder` and `qwen2.5-coder:latest`;
 * - without a size the whole is the name, and the alias lacks trailing layer and version words:
 *   `all-minilm-l6-v2-f16.gguf` is `all-minilm-l6-v2`, aliases `all-minilm` and
 *   `all-minilm:latest`.
 * @param fileName last part of the path
 */
export function nameModel(fileName: string): ModelName {
  const written = fileName.replace(/\.gguf$/i, "").replace(partNumber, "");
  const format = quantization.exec(written.toLowerCase())?.[1];
  const stem = format === undefined ? written : written.slice(0, -format.length - 1);
  const words = stem
    .toLowerCase()
    .split(/[-_ ]+/)
    .filter((word) => word !== "");
  if (words.length === 0) words.push("model");
  const size = words.findIndex((word, index) => index > 0 && sizeWord.test(word));
  const title = titleOf(stem);
  const ending = format === undefined ? "" : `-${format}`;
  if (size < 0) {
    const name = words.join("-");
    const short = withoutVersions(words).join("-");
    return { name, title, aliases: withLatest(short === name ? [] : [short]), longName: `${name}${ending}` };
  }
  const family = words.slice(0, size).join("-");
  const tag = words.slice(size).filter((word) => !usualWords.has(word));
  const name = `${family}:${tag.join("-")}`;
  return { name, title, aliases: withLatest([family]), longName: `${family}:${words.slice(size).join("-")}${ending}` };
}

/** Ollama's clients write `:latest` where a name has no tag. */
function withLatest(aliases: readonly string[]): string[] {
  return aliases.flatMap((alias) => [alias, `${alias}:latest`]);
}

function withoutVersions(words: readonly string[]): readonly string[] {
  let end = words.length;
  while (end > 1 && versionWord.test(words[end - 1] ?? "")) end -= 1;
  return words.slice(0, end);
}

function titleOf(stem: string): string {
  const capital = (word: string) =>
    sizeWord.test(word) ? word.toUpperCase() : word.charAt(0).toUpperCase() + word.slice(1);
  return stem
    .split(/[-_ ]+/)
    .map(capital)
    .join(" ");
}
