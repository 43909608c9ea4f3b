import { z } from "zod";

/** Makers of the schema's leaves: each carries the words that an error says after "expected". */

/** A whole number with its bounds, both included. */
export function wholeNumber(description: string, min: number, max: number = Number.MAX_SAFE_INTEGER) {
  const expected = max === Number.MAX_SAFE_INTEGER ? `of ${min} or more` : `from ${min} to ${max}`;
  const error = `a whole number ${expected}`;
  return z.int({ error }).min(min, { error }).max(max, { error }).describe(description);
}

/** A text of at least one character. */
export function text(description: string, expected = "a text") {
  return z.string({ error: expected }).min(1, { error: expected }).describe(description);
}

/** A text of a given form. */
export function pattern(description: string, form: RegExp, expected: string) {
  return z.string({ error: expected }).regex(form, { error: expected }).describe(description);
}

/** True or false. */
export function flag(description: string) {
  return z.boolean({ error: "true or false" }).describe(description);
}

/** One of a few words. */
export function oneOf<const Words extends readonly [string, ...string[]]>(description: string, words: Words) {
  return z.enum(words, { error: `one of ${words.join(", ")}` }).describe(description);
}

/** A list; its own errors are those of what it holds. */
export function list<Item extends z.ZodType>(description: string, item: Item, expected: string) {
  return z.array(item, { error: expected }).describe(description);
}

/** A mapping with these options and no others. */
export function section<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape, { error: "a mapping of options" });
}
