import { LmspError } from "@plenum/client";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { type Surroundings, withoutControls } from "./surroundings.ts";

/** A failure that a command tells in its own words. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode = exitCodes.failure) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** What a person can do about a problem that the service or the client reports. */
const nextSteps: Readonly<Record<string, string>> = {
  unreachable: "Start one with `plenum serve`, or name the service's address with --url or PLENUM_URL.",
  "connection-lost": "Is the service still running? Its terminal or log tells more.",
  "invalid-answer": "Something else may be listening at this address: check --url and PLENUM_URL.",
  unauthorized: "Pass a token with --token or PLENUM_TOKEN; `plenum tokens create` makes one.",
  forbidden: "Use a token with the right scopes and models; `plenum tokens create --help` tells how to make one.",
  "host-refused": "Use the service's IP address, or add the name under `hosts` in its configuration.",
  "model-not-found": "`plenum models` lists what can be run.",
  "unsupported-capability": "`plenum models` shows what each model can do.",
  "context-length-exceeded": "Shorten the prompt, or raise embedded.context_tokens in the configuration.",
  overloaded: "Try again in a moment.",
  draining: "Try again when the service has started anew.",
  "model-loading": "Try again in a moment; `plenum models` shows the model's state.",
  "insufficient-memory": "Lower embedded.context_tokens or embedded.parallel, or take a smaller model.",
  internal: "The service's log tells more.",
};

/**
 * Tells an error and what to do next on the error output.
 * @returns the exit code.
 */
export function reportError(error: unknown, around: Surroundings, isJson: boolean): ExitCode {
  const { errors } = around;
  if (error instanceof LmspError) {
    const next = nextSteps[error.code];
    if (isJson) errors.write(`${JSON.stringify({ error: jsonOf(error, next) })}\n`);
    else errors.write(`${withoutControls(`plenum: ${error.detail}`)}\n${next === undefined ? "" : `${next}\n`}`);
    return error.code === "unreachable" ? exitCodes.unreachable : exitCodes.failure;
  }
  if (!(error instanceof Error)) {
    errors.write(`plenum: ${String(error)}\n`);
    return exitCodes.failure;
  }
  const code = isConfigError(error) ? "configuration" : "failure";
  if (isJson) errors.write(`${JSON.stringify({ error: { code, detail: error.message } })}\n`);
  else if (isConfigError(error)) errors.write(`plenum: the configuration can't be used.\n${error.message}\n`);
  else if (isToldPlainly(error)) errors.write(`plenum: ${withoutControls(error.message)}\n`);
  else errors.write(`plenum: a mistake in plenum itself, please report it.\n${error.stack ?? error.message}\n`);
  if (error instanceof CommandError) return error.exitCode;
  return isConfigError(error) ? exitCodes.usage : exitCodes.failure;
}

/** By name: the server package is loaded only by the commands that start a service. */
function isConfigError(error: Error): boolean {
  return error.name === "ConfigError";
}

/** Errors whose message is meant for people: ours, the core's, and those of the system. */
function isToldPlainly(error: Error): boolean {
  return error instanceof CommandError || error.name === "CoreError" || "syscall" in error;
}

function jsonOf(error: LmspError, next: string | undefined): object {
  return { code: error.code, status: error.status, detail: error.detail, next };
}
