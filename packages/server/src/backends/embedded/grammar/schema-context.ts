import type { Expression } from "./expression.ts";
import type { GrammarBuilder } from "./grammar-builder.ts";
import type { SchemaObject } from "./keywords.ts";

/** Where the compiler stands. */
export interface Place {
  /** JSON pointer of the schema; the root's is empty. */
  readonly pointer: string;
  /** Schemas around this one, in levels. */
  readonly depth: number;
  /** References followed since the last object or array: meeting one again would never write a character. */
  readonly open: ReadonlySet<string>;
}

/** What the compilers of single types need of the whole (`SchemaCompiler`). */
export interface SchemaContext {
  readonly builder: GrammarBuilder;
  /** A schema at the same value. */
  compile(schema: unknown, place: Place): Expression;
  /** The schema of a member or item. @param keys steps from `place` to it */
  compileInside(schema: unknown, place: Place, ...keys: readonly (string | number)[]): Expression;
  /** The schema with what `$ref` and `allOf` say written into it. */
  flatten(schema: SchemaObject, place: Place): SchemaObject;
}
