import { type Client, createClient } from "@plenum/client";
import type { Command } from "commander";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { stopOnSignal } from "./serve/stop-on-signal.ts";
import type { Surroundings } from "./surroundings.ts";

export interface ConnectionFlags {
  readonly url?: string;
  readonly token?: string;
}

/** Adds the flags of every command that talks to a service. */
export function withConnection(command: Command): Command {
  return command
    .option("--url <address>", "address of the service (PLENUM_URL; default http://127.0.0.1:7411)")
    .option("--token <token>", "bearer token (PLENUM_TOKEN)");
}

/** The address that the flags or the environment name; PLENUM_PORT, which moves the service, moves its default too. */
export function addressOf(flags: ConnectionFlags, env: Surroundings["env"]): string {
  return flags.url || env["PLENUM_URL"] || `http://127.0.0.1:${env["PLENUM_PORT"] || 7411}`;
}

/** A client of that service. */
export function connect(flags: ConnectionFlags, around: Surroundings): Client {
  return createClient({
    baseUrl: addressOf(flags, around.env),
    token: flags.token || around.env["PLENUM_TOKEN"] || undefined,
    ...(around.fetch !== undefined && { fetch: around.fetch }),
  });
}

/**
 * Does a command's work, which the first signal aborts; a second one ends the process.
 * @returns the work's exit code; 130 after a signal.
 */
export async function untilSignal(
  around: Surroundings,
  work: (signal: AbortSignal) => Promise<ExitCode>,
): Promise<ExitCode> {
  const abort = new AbortController();
  const end = around.onSignal(stopOnSignal(abort, around));
  try {
    return await work(abort.signal);
  } catch (error) {
    if (abort.signal.aborted) return exitCodes.interrupted;
    throw error;
  } finally {
    end();
  }
}

/**
 * Does a command's work with a client; the first signal ends it.
 * @returns the exit code: 0, or 130 after a signal.
 */
export function withClient(
  flags: ConnectionFlags,
  around: Surroundings,
  work: (client: Client, signal: AbortSignal) => Promise<void>,
): Promise<ExitCode> {
  return untilSignal(around, async (signal) => {
    await work(connect(flags, around), signal);
    return exitCodes.ok;
  });
}

/** A command's flags that answer with one JSON document when asked to. */
export interface JsonFlags extends ConnectionFlags {
  readonly json?: boolean;
}

/** Writes a JSON document. */
export function writeJson(around: Surroundings, value: unknown): void {
  around.output.write(`${JSON.stringify(value, null, 2)}\n`);
}
