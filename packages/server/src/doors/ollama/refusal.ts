import { CoreError, type ProblemCode } from "@plenum/core";

/** A refusal whose status and words the real Ollama fixes, whatever the table of problems says for its code. */
export class OllamaRefusal extends CoreError {
  readonly status: number;

  constructor(status: number, text: string, code: ProblemCode = "invalid-request") {
    super(code, text);
    this.status = status;
  }
}

/** A field that this service can't take: named, with what to do. */
export function refuseField(param: string, detail: string): never {
  throw new CoreError("invalid-request", `'${param}' ${detail}`, { param });
}
