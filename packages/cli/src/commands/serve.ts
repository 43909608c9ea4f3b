import type { Config, ConfigFlags, ListenError, LoadConfigOptions, PlenumServer } from "@plenum/server";
import { type Command, Option } from "commander";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { CommandError } from "../report-error.ts";
import { stopOnSignal } from "../serve/stop-on-signal.ts";
import type { Surroundings } from "../surroundings.ts";

/** Adds `plenum serve`. */
export function addServe(
  program: Command,
  around: Surroundings,
  version: string,
  done: (code: ExitCode) => void,
): void {
  program
    .command("serve")
    .summary("start the service")
    .description(
      "Starts the service and keeps it running. Without any flag it listens on http://127.0.0.1:7411, keeps everything " +
        "in ~/.plenum, and fetches a small model (94 MiB) when it has none. Ctrl-C lets running answers finish; a second " +
        "Ctrl-C ends them.",
    )
    .option("--host <address>", "address to listen on (PLENUM_HOST; default 127.0.0.1: this machine only)")
    .option("--port <number>", "TCP port; 0: any free one (PLENUM_PORT; default 7411)")
    .option("--config <file>", "configuration file (PLENUM_CONFIG; default ./plenum.config.yaml)")
    .option("--home <folder>", "folder of all state (PLENUM_HOME; default ~/.plenum)")
    .option("--models <folder>", "folder of model files (PLENUM_MODELS; default `models` in the home folder)")
    .option(
      "--nnrp <address>",
      "also listen for NNRP, such as tcp://127.0.0.1:7412 or unix:///run/plenum.sock; may be repeated",
      (address: string, others: readonly string[] = []) => [...others, address],
    )
    .option("--no-starter-model", "fetch no model, also when there is none")
    .option("--no-local-runtimes", "don't look for runtimes that already run here (PLENUM_LOCAL_RUNTIMES=false)")
    .addOption(new Option("--log-level <level>", "trace, debug, info, warn, error, fatal or silent (PLENUM_LOG_LEVEL)"))
    .addOption(new Option("--log-format <format>", "json or pretty (PLENUM_LOG_FORMAT)"))
    .option("--insecure-open", "listen beyond this machine without any token: everyone on the network can use it")
    .addHelpText(
      "after",
      `
Examples:
  plenum serve
  plenum serve --port 8080 --models /data/gguf
  plenum serve --nnrp tcp://127.0.0.1:7412
  plenum serve --host 0.0.0.0   needs a token: the first start makes one

All options of the file: docs/reference/configuration.md`,
    )
    .action(async (flags: ServeFlags) => done(await serve(flags, around, version)));
}

interface ServeFlags extends Omit<ConfigFlags, "starterModel" | "localRuntimes"> {
  readonly starterModel: boolean;
  readonly localRuntimes: boolean;
}

function serve(flags: ServeFlags, around: Surroundings, version: string): Promise<ExitCode> {
  const { starterModel, localRuntimes, ...others } = flags;
  // commander says `true` for a --no flag that is absent: the file may still say no.
  const given = { ...others, ...(!starterModel && { starterModel }), ...(!localRuntimes && { localRuntimes }) };
  return runService({ flags: given }, around, version);
}

export interface ServicePreset {
  readonly flags: ConfigFlags;
  /** What the command sets whatever the file says. */
  readonly preset?: LoadConfigOptions["preset"];
  /** What must be right before anything is started. */
  readonly check?: (config: Config) => Promise<void>;
}

/** Runs a service until it is told to stop. */
export async function runService(
  { flags, preset, check }: ServicePreset,
  around: Surroundings,
  version: string,
): Promise<ExitCode> {
  around.outliveReader();
  const stop = new AbortController();
  const forget = around.onSignal(stopOnSignal(stop, around));
  try {
    const { createServer, loadConfig } = await import("@plenum/server");
    const config = await loadConfig({
      flags,
      ...(preset !== undefined && { preset }),
      env: around.env,
      isTerminal: around.output.isTerminal,
    });
    await check?.(config);
    stop.signal.throwIfAborted();
    const { fetchStarterModel } = await import("../serve/starter-model.ts");
    await fetchStarterModel(config, around, stop.signal);
    const server = await createServer(config);
    await listen(server, config);
    const { announce } = await import("../serve/announce.ts");
    await announce(server, config, around, version);
    await aborted(stop.signal);
    around.errors.write(stopping(config));
    await server.close({ drainMs: config.limits.drainMs });
    return exitCodes.ok;
  } catch (error) {
    if (stop.signal.aborted && error === stop.signal.reason) return exitCodes.interrupted;
    throw error;
  } finally {
    forget();
  }
}

async function listen(server: PlenumServer, config: Config): Promise<void> {
  const { ListenError } = await import("@plenum/server");
  try {
    await server.listen();
  } catch (error) {
    await server.close({ drainMs: 0 });
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const reason = error instanceof ListenError ? nnrpProblem(error) : listenProblem(String(code), config);
    throw reason === undefined ? error : new CommandError(reason);
  }
}

function nnrpProblem({ address, code, message }: ListenError): string {
  if (code !== "EADDRINUSE") return `NNRP: ${message}`;
  return `The NNRP address ${address} is in use: choose another one with --nnrp, or stop what uses it.`;
}

function listenProblem(code: string, { host, port }: Config): string | undefined {
  switch (code) {
    case "EADDRINUSE":
      return `Port ${port} on ${host} is in use: choose another one with --port (0: any free one), or stop what uses it.`;
    case "EACCES":
      return `Port ${port} may not be opened by this user: choose one above 1023 with --port.`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `This machine has no address ${host}: choose another one with --host.`;
    default:
      return undefined;
  }
}

function stopping(config: Config): string {
  const seconds = Math.round(config.limits.drainMs / 1000);
  return `\nStopping: running answers get ${seconds} s to finish; Ctrl-C again ends them at once.\n`;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
