import { anyObject } from "./any-json.ts";
import type { Expression } from "./expression.ts";
import { GrammarBuilder } from "./grammar-builder.ts";
import { refuse, type SchemaParam, withRefusals } from "./refusal.ts";
import { SchemaCompiler } from "./schema-compiler.ts";

export { characters, choice, type Expression, optional, repeat, sequence, text } from "./expression.ts";
export { GrammarBuilder } from "./grammar-builder.ts";
export { textUntil } from "./text-until.ts";

export interface SchemaGrammarOptions {
  /**
   * What a refusal names as the wrong field.
   * @default "output.format.schema"
   */
  readonly param?: SchemaParam;
}

/**
 * The schema as llama.cpp's GBNF, root rule `root`: every text of the grammar is valid JSON that fits the schema.
 * @throws CoreError invalid-request for a schema that can't be held exactly
 */
export function schemaToGrammar(schema: unknown, options: SchemaGrammarOptions = {}): string {
  const param = options.param ?? "output.format.schema";
  return withRefusals(param, () => {
    const builder = new GrammarBuilder();
    return builder.text(compileSchema(builder, schema));
  });
}

/**
 * Adds a schema to a larger grammar.
 * @throws CoreError invalid-request, naming `param`
 */
export function addSchema(builder: GrammarBuilder, schema: unknown, param: SchemaParam): Expression {
  return withRefusals(param, () => compileSchema(builder, schema));
}

/** Any JSON object. */
export function addAnyObject(builder: GrammarBuilder): Expression {
  return anyObject(builder);
}

/** The text of a grammar; too large a one is refused as the fault of `param`. */
export function grammarText(builder: GrammarBuilder, root: Expression, param: SchemaParam): string {
  return withRefusals(param, () => builder.text(root));
}

function compileSchema(builder: GrammarBuilder, schema: unknown): Expression {
  const root = builder.rule(new SchemaCompiler(builder, schema).compileRoot());
  if (builder.endless().size > 0) {
    refuse("", "requires itself inside itself, so no value ever ends; make a member optional or nullable.");
  }
  return root;
}
