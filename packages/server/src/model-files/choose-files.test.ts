import { expect, test } from "vitest";
import { chooseFiles } from "./choose-files.ts";

const files = (...paths: readonly string[]) => paths.map((path) => ({ path }));
const chosen = (paths: readonly string[], variant?: string) =>
  chooseFiles(files(...paths), {
    owner: "acme",
    repository: "tiny",
    ...(variant === undefined ? {} : { variant }),
  }).map(({ path }) => path);

const usual = [
  "README.md",
  "mmproj-F16.gguf",
  "tiny.imatrix.gguf",
  "tiny-Q8_0.gguf",
  "tiny-Q4_K_M.gguf",
  "tiny.BF16.gguf",
];
const split = ["Q8_0/tiny-Q8_0-00002-of-00002.gguf", "Q8_0/tiny-Q8_0-00001-of-00002.gguf"];

test.each([
  ["the one that suits most", usual, undefined, ["tiny-Q4_K_M.gguf"]],
  ["a quantization, in any case", usual, "q8_0", ["tiny-Q8_0.gguf"]],
  ["one with a dot before it", usual, "BF16", ["tiny.BF16.gguf"]],
  ["a file's name", usual, "tiny-Q8_0.gguf", ["tiny-Q8_0.gguf"]],
  ["all parts of a split one, in order", split, "Q8_0", split.toReversed()],
  ["a split one by a part's name", split, "tiny-Q8_0-00002-of-00002.gguf", split.toReversed()],
  ["the only one, whatever its name", ["model.gguf"], undefined, ["model.gguf"]],
])("%s", (_name, paths, variant, expected) => {
  expect(chosen(paths, variant)).toEqual(expected);
});

test.each([
  ["no GGUF", ["README.md", "model.safetensors"], undefined, /holds no GGUF file/],
  ["only a projector", ["mmproj-F16.gguf"], undefined, /holds no GGUF file/],
  ["an unknown quantization", usual, "Q2_K", /has no Q2_K; it has Q8_0, Q4_K_M, BF16\./],
  [
    "two of one quantization",
    ["a-Q4_0.gguf", "b-Q4_0.gguf"],
    "Q4_0",
    /several such models; name one of a-Q4_0\.gguf, b-Q4_0\.gguf/,
  ],
  ["two without one", ["a.gguf", "b.gguf"], undefined, /several such models/],
  [
    "a part that is missing",
    ["t-Q8_0-00001-of-00003.gguf", "t-Q8_0-00003-of-00003.gguf"],
    undefined,
    /has 2 of 3 parts/,
  ],
])("%s is refused with what there is", (_name, paths, variant, message) => {
  expect(() => chosen(paths, variant)).toThrow(message);
});
