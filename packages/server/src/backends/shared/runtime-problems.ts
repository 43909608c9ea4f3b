import { CoreError, type ProblemCode, problems } from "@plenum/core";

/** Codes that are about the runtime though somebody else has to act. */
const aboutTheRuntime: readonly ProblemCode[] = ["backend-refused", "overloaded", "model-loading"];

/** Shorter values are no secrets, and stand in other words. */
const leastSecretCharacters = 4;

/** Problems of one runtime as they leave its backend: they name it, and hold none of the values that it is sent. */
export class RuntimeProblems {
  readonly #id: string;
  readonly #secrets: readonly string[];

  /** @param headers sent with every request; their values may be secrets */
  constructor(id: string, headers: Readonly<Record<string, string>>) {
    this.#id = id;
    this.#secrets = Object.values(headers)
      .flatMap((value) => [value, value.replace(/^\w+ +/, "")])
      .filter((value) => value.length >= leastSecretCharacters);
  }

  /** The same problem, with the runtime's name and without secrets. What is no CoreError is given back as it is. */
  named(error: CoreError): CoreError;
  named(error: unknown): unknown;
  named(error: unknown): unknown {
    if (!(error instanceof CoreError)) return error;
    const isAbout = problems[error.code].fault === "runtime" || aboutTheRuntime.includes(error.code);
    const [detail, logDetail] = [error.detail, error.logDetail].map((text) => {
      const clean = this.#secrets.reduce((rest, secret) => rest.replaceAll(secret, "…"), text);
      return isAbout ? this.#withName(clean) : clean;
    });
    if (detail === undefined || detail === error.detail) return error;
    return new CoreError(error.code, detail, error.details, {
      ...(error.cause === undefined ? {} : { cause: error.cause }),
      ...(logDetail === undefined ? {} : { logDetail }),
    });
  }

  #withName(sentence: string): string {
    const own = /^The runtime(?='s | )/;
    return own.test(sentence) ? sentence.replace(own, `Runtime ${this.#id}`) : `Runtime ${this.#id}: ${sentence}`;
  }
}
