import { readFile } from "node:fs/promises";
import { type AdminApi, LmspError, type LmspToken, type NewToken } from "@plenum/client";
import { addressOf, type ConnectionFlags, connect, untilSignal } from "../connection.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { ownConfig, type PlaceFlags } from "../own-config.ts";
import { CommandError } from "../report-error.ts";
import type { Surroundings } from "../surroundings.ts";

type TokensApi = AdminApi["tokens"];

/**
 * Does a command's work with the tokens of the service that answers, or else, where no address was named, with those in
 * this machine's own folder.
 */
export function withTokens(
  flags: ConnectionFlags & PlaceFlags,
  around: Surroundings,
  work: (tokens: TokensApi, signal: AbortSignal) => Promise<void>,
): Promise<ExitCode> {
  return untilSignal(around, async (signal) => {
    try {
      await workThere(flags, around, (tokens) => work(tokens, signal));
    } catch (error) {
      signal.throwIfAborted();
      const isAddressNamed = Boolean(flags.url || around.env["PLENUM_URL"]);
      if (isAddressNamed || !is(error, "unreachable")) throw error;
      await workHere(flags, around, (tokens) => work(tokens, signal));
    }
    return exitCodes.ok;
  });
}

function is(error: unknown, code: string): boolean {
  return error instanceof LmspError && error.code === code;
}

/** Who can read the file that the first start wrote may speak with its token. */
async function workThere(
  flags: ConnectionFlags & PlaceFlags,
  around: Surroundings,
  work: (tokens: TokensApi) => Promise<void>,
): Promise<void> {
  try {
    await work(connect(flags, around).tokens);
  } catch (error) {
    if (flags.token || around.env["PLENUM_TOKEN"] || !is(error, "unauthorized")) throw error;
    const token = await firstToken(flags, around);
    if (token === undefined) throw error;
    await work(connect({ ...flags, token }, around).tokens);
  }
}

/** For this machine's own service and for no other. */
async function firstToken(flags: ConnectionFlags & PlaceFlags, around: Surroundings): Promise<string | undefined> {
  const { firstTokenFile, isLoopbackHost } = await import("@plenum/server");
  const address = addressOf(flags, around.env);
  if (!URL.canParse(address) || !isLoopbackHost(new URL(address).hostname)) return undefined;
  const { home } = await ownConfig(flags, around);
  try {
    return (await readFile(firstTokenFile(home), "utf8")).trim();
  } catch {
    return undefined;
  }
}

async function workHere(
  flags: PlaceFlags,
  around: Surroundings,
  work: (tokens: TokensApi) => Promise<void>,
): Promise<void> {
  const { openOwnTokens } = await import("@plenum/server");
  const config = await ownConfig(flags, around);
  const tokens = await openOwnTokens(config).catch((error: unknown) => {
    throw new CommandError(error instanceof Error ? error.message : String(error));
  });
  around.errors.write(`No service answers: the tokens in ${config.home} are taken.\n`);
  try {
    await work({
      list: async () => ({ data: (await tokens.list()).data as unknown as LmspToken[], next_cursor: null }),
      create: async (request) => (await tokens.create(request)) as unknown as NewToken,
      rotate: async (id, graceS = 0) => (await tokens.rotate(id, graceS)) as unknown as NewToken,
      revoke: (id) => tokens.revoke(id),
    });
  } finally {
    await tokens.close();
  }
}
