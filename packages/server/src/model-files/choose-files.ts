import { posix } from "node:path";
import { CoreError } from "@plenum/core";
import { partNames } from "./split-files.ts";

/** A file in a list. */
interface Listed {
  /** With slashes. */
  readonly path: string;
}

/** Files that are one model: one, or all parts in order. */
interface Choice<File> {
  readonly files: readonly File[];
  /** Upper case; undefined: its name does not say. */
  readonly quantization: string | undefined;
}

const quantizationForm =
  /[-._]((?:UD-)?(?:I?Q\d\w*|TQ\d\w*|BF16|FP?(?:16|32)|MXFP4\w*|NVFP4))(?:-\d{5}-of-\d{5})?\.gguf$/i;
/** Files that are no model by themselves: projectors, importance matrices, adapters. */
const notModels = /(?:^|[-._/])(?:mmproj|imatrix|control[-_]vector)/i;

/** What suits most, best first: small with little loss, then larger, then smaller. */
const preferred = [
  "Q4_K_M",
  "Q4_K_S",
  "Q4_K_L",
  "Q4_0",
  "Q4_1",
  "IQ4_NL",
  "IQ4_XS",
  "UD-Q4_K_XL",
  "MXFP4",
  "Q5_K_M",
  "Q5_K_S",
  "Q6_K",
  "Q8_0",
  "Q3_K_L",
  "Q3_K_M",
  "Q3_K_S",
  "F16",
  "BF16",
];

/**
 * The files of a repository that a source means.
 * @throws CoreError invalid-request with what there is; backend-error for a split model that is not whole.
 */
export function chooseFiles<File extends Listed>(
  all: readonly File[],
  source: { readonly owner: string; readonly repository: string; readonly variant?: string },
): readonly File[] {
  const choices = choicesOf(all);
  const name = `${source.owner}/${source.repository}`;
  if (choices.length === 0) throw invalid(`${name} holds no GGUF file; look for a repository whose name ends in GGUF.`);
  const chosen = source.variant === undefined ? suitable(choices, name) : named(choices, source.variant, name);
  return chosen.files;
}

function choicesOf<File extends Listed>(all: readonly File[]): readonly Choice<File>[] {
  const byPath = new Map(all.map((file) => [file.path, file]));
  const choices: Choice<File>[] = [];
  for (const { path } of all) {
    if (!/\.gguf$/i.test(path) || notModels.test(path)) continue;
    const { dir, base } = posix.parse(path);
    const names = partNames(base);
    if (names[0] !== base) continue;
    const files = names.map((part) => byPath.get(posix.join(dir, part)));
    const present = files.filter((file) => file !== undefined);
    if (present.length < files.length) {
      throw new CoreError("backend-error", `${path} has ${present.length} of ${files.length} parts in its repository.`);
    }
    choices.push({ files: present, quantization: quantizationForm.exec(base)?.[1]?.toUpperCase() });
  }
  return choices;
}

function named<File extends Listed>(choices: readonly Choice<File>[], variant: string, name: string): Choice<File> {
  const isFile = (path: string) => path === variant || posix.basename(path) === variant;
  const byFile = choices.filter(({ files }) => files.some(({ path }) => isFile(path)));
  const found =
    byFile.length > 0 ? byFile : choices.filter(({ quantization }) => quantization === variant.toUpperCase());
  return onlyOne(found, choices, name) ?? refuse(`${name} has no ${variant}; it has ${listOf(choices)}.`);
}

function suitable<File extends Listed>(choices: readonly Choice<File>[], name: string): Choice<File> {
  for (const quantization of preferred) {
    const found = onlyOne(
      choices.filter((choice) => choice.quantization === quantization),
      choices,
      name,
    );
    if (found !== undefined) return found;
  }
  return onlyOne(choices, choices, name) ?? refuse(`${name} has no model.`);
}

/** @returns undefined for none. */
function onlyOne<File extends Listed>(
  found: readonly Choice<File>[],
  choices: readonly Choice<File>[],
  name: string,
): Choice<File> | undefined {
  if (found.length > 1) refuse(`${name} has several such models; name one of ${listOf(choices)}.`);
  return found[0];
}

function listOf<File extends Listed>(choices: readonly Choice<File>[]): string {
  const counts = new Map<string, number>();
  for (const { quantization } of choices) {
    if (quantization !== undefined) counts.set(quantization, (counts.get(quantization) ?? 0) + 1);
  }
  const names = choices.map(({ files, quantization }) =>
    quantization !== undefined && counts.get(quantization) === 1 ? quantization : posix.basename(files[0]?.path ?? ""),
  );
  return names.slice(0, 40).join(", ");
}

function refuse(detail: string): never {
  throw invalid(detail);
}

function invalid(detail: string): CoreError {
  return new CoreError("invalid-request", detail, { param: "source" });
}
