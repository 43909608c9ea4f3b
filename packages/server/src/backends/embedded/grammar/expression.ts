import type { CodePointRange } from "./code-points.ts";

/** A grammar as data; `gbnf.ts` writes it down. */
export type Expression =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "characters"; readonly ranges: readonly CodePointRange[] }
  | { readonly kind: "rule"; readonly name: string }
  | { readonly kind: "sequence"; readonly parts: readonly Expression[] }
  | { readonly kind: "choice"; readonly options: readonly Expression[] }
  /** Absent `max`: without end. */
  | { readonly kind: "repeat"; readonly part: Expression; readonly min: number; readonly max?: number };

export const nothing: Expression = { kind: "text", text: "" };

export function text(value: string): Expression {
  return { kind: "text", text: value };
}

export function characters(ranges: readonly CodePointRange[]): Expression {
  return { kind: "characters", ranges };
}

export function rule(name: string): Expression {
  return { kind: "rule", name };
}

/** Joins neighbouring texts and flattens. */
export function sequence(...parts: readonly Expression[]): Expression {
  const flat: Expression[] = [];
  for (const part of parts.flatMap((each) => (each.kind === "sequence" ? each.parts : [each]))) {
    const last = flat.at(-1);
    if (part.kind === "text" && part.text === "") continue;
    if (part.kind === "text" && last?.kind === "text") flat[flat.length - 1] = text(last.text + part.text);
    else flat.push(part);
  }
  const [only] = flat;
  if (only === undefined) return nothing;
  return flat.length === 1 ? only : { kind: "sequence", parts: flat };
}

/** @param options at least one */
export function choice(...options: readonly Expression[]): Expression {
  const flat = options.flatMap((each) => (each.kind === "choice" ? each.options : [each]));
  const [only] = flat;
  if (only === undefined) throw new RangeError("a choice needs an option");
  return flat.length === 1 ? only : { kind: "choice", options: flat };
}

/** As it is: for long counts use `GrammarBuilder.repeat`, which keeps the grammar small. */
export function repeat(part: Expression, min: number, max?: number): Expression {
  if (max === 0) return nothing;
  if (min === 1 && max === 1) return part;
  return { kind: "repeat", part, min, ...(max === undefined ? {} : { max }) };
}

export function optional(part: Expression): Expression {
  return part.kind === "text" && part.text === "" ? part : repeat(part, 0, 1);
}
