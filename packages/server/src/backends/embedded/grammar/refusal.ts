import { CoreError } from "@plenum/core";

/** What the schema belongs to, in the request's words: `output.format.schema`, `tools[2].parameters`. */
export type SchemaParam = string;

/** Says which keyword at which place can't be held. */
class SchemaRefusal extends Error {
  override readonly name = "SchemaRefusal";
  readonly pointer: string;

  constructor(pointer: string, message: string) {
    super(message);
    this.pointer = pointer;
  }
}

/** @throws SchemaRefusal always */
export function refuse(pointer: string, message: string): never {
  throw new SchemaRefusal(pointer, message);
}

/** Turns refusals inside `build` into the problem that the client gets. */
export function withRefusals<Result>(param: SchemaParam, build: () => Result): Result {
  try {
    return build();
  } catch (error) {
    if (!(error instanceof SchemaRefusal)) throw error;
    const place = error.pointer === "" ? "at its root" : `at ${error.pointer}`;
    throw new CoreError("invalid-request", `The JSON schema ${place}: ${error.message}`, { param });
  }
}
