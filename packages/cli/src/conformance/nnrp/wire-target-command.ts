import { createConformanceService } from "@plenum/server/conformance";
import { untilSignal } from "../../connection.ts";
import { type ExitCode, exitCodes } from "../../exit-codes.ts";
import { CommandError } from "../../report-error.ts";
import type { Surroundings } from "../../surroundings.ts";
import { clientTransports, runWireClient } from "./wire-client.ts";
import { openWireServer } from "./wire-server.ts";
import { TlsFolder } from "./wire-target.ts";
import { type WireTargetFlags, wireTransports } from "./wire-target-flags.ts";

/** `plenum conformance nnrp wire-target`: a target of the outside suite's live scenarios. */
export async function wireTarget(flags: WireTargetFlags, around: Surroundings): Promise<ExitCode> {
  const tls = flags.tls === undefined ? undefined : await TlsFolder.read(flags.tls);
  return untilSignal(around, async (signal) => {
    if (flags.role === "server") await beServer(flags, tls, around, signal);
    else await beClient(flags, tls, around, signal);
    return exitCodes.ok;
  });
}

async function beServer(
  { transports = wireTransports, readyOutput, json }: WireTargetFlags,
  tls: TlsFolder | undefined,
  around: Surroundings,
  signal: AbortSignal,
): Promise<void> {
  const service = createConformanceService();
  try {
    const server = await openWireServer({ service, transports, tls, manifestPath: readyOutput });
    try {
      announce(server.manifest, json, around);
      await aborted(signal);
    } finally {
      await server.close();
    }
  } finally {
    await service.close();
  }
}

async function beClient(
  { transports = clientTransports, readyOutput, wait, json }: WireTargetFlags,
  tls: TlsFolder | undefined,
  around: Surroundings,
  signal: AbortSignal,
): Promise<void> {
  const foreign = transports.find((name) => !clientTransports.includes(name));
  if (foreign !== undefined) {
    throw new CommandError(`The suite has no scenario in which it is the server on ${foreign}.`, exitCodes.usage);
  }
  const timeUp = AbortSignal.timeout(wait * 1000);
  try {
    await runWireClient({
      transports,
      tls,
      manifestPath: readyOutput,
      signal: AbortSignal.any([signal, timeUp]),
      onReady: (manifest) => announce(manifest, json, around),
      onDone: (name) => around.errors.write(`${name}: done\n`),
    });
  } catch (error) {
    if (signal.aborted) throw error;
    const reason = timeUp.aborted ? `the suite did not come within ${wait} s` : String(error);
    throw new CommandError(`The exchange failed: ${reason}.`);
  }
}

function announce(manifest: object, isJson: boolean | undefined, around: Surroundings): void {
  if (isJson) around.output.write(`${JSON.stringify(manifest, null, 2)}\n`);
  else around.errors.write("ready\n");
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
