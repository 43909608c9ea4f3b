import type { Config, ConfigFlags } from "@plenum/server";
import type { Command } from "commander";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { CommandError } from "../report-error.ts";
import type { Surroundings } from "../surroundings.ts";
import { runService, type ServicePreset } from "./serve.ts";

/** Adds `plenum bridge`: `plenum serve` with one runtime. */
export function addBridge(
  program: Command,
  around: Surroundings,
  version: string,
  done: (code: ExitCode) => void,
): void {
  program
    .command("bridge")
    .summary("use a remote NNRP service through local addresses")
    .description(
      "Starts a service whose models are those of one service that speaks openai-compatible/1 over NNRP, so that every " +
        "tool for OpenAI, Ollama or LMSP can use it. Nothing else runs here: no embedded engine, no other runtimes.",
    )
    .argument(
      "<url>",
      "its address: nnrp://HOST:PORT, nnrps://, tcp://, tls://, ws://HOST:PORT/PATH, wss://, unix:///PATH",
    )
    .option("--token <token>", "bearer token of the remote service (PLENUM_TOKEN)")
    .option(
      "--model <name>",
      "its model of this name, for services without a list of models; may be repeated",
      (name: string, others: readonly string[] = []) => [...others, name],
    )
    .option("--host <address>", "address to listen on (PLENUM_HOST; default 127.0.0.1: this machine only)")
    .option("--port <number>", "TCP port; 0: any free one (PLENUM_PORT; default 7411)")
    .option("--config <file>", "configuration file, whose runtimes are left out (PLENUM_CONFIG)")
    .option("--home <folder>", "folder of all state (PLENUM_HOME; default ~/.plenum)")
    .addHelpText(
      "after",
      `
Examples:
  plenum bridge nnrp://gpu.example.com:7412
  plenum bridge wss://models.example.com/nnrp --token "$TOKEN" --port 8080
  plenum bridge unix:///run/nnrp.sock --model qwen3-8b      a service without a list of models`,
    )
    .action(async (url: string, flags: BridgeFlags) =>
      done(await runService(bridge(url, flags, around), around, version)),
    );
}

interface BridgeFlags extends Pick<ConfigFlags, "host" | "port" | "config" | "home"> {
  readonly token?: string;
  readonly model?: readonly string[];
}

/** Name of the runtime: its models are `MODEL` and `bridge/MODEL`. */
const runtimeName = "bridge";

function bridge(url: string, { token, model, ...flags }: BridgeFlags, { env }: Surroundings): ServicePreset {
  const key = token || env["PLENUM_TOKEN"] || undefined;
  const runtime = { kind: "nnrp", url, ...(key !== undefined && { api_key: key }), ...(model && { models: model }) };
  return {
    flags,
    preset: [
      { path: ["runtimes"], value: { [runtimeName]: runtime }, origin: "plenum bridge" },
      { path: ["embedded", "enabled"], value: false, origin: "plenum bridge" },
      { path: ["find_local_runtimes"], value: false, origin: "plenum bridge" },
      { path: ["starter_model"], value: false, origin: "plenum bridge" },
    ],
    check,
  };
}

/** A service that can't be reached now is told at once; one that goes away later is reached again. */
async function check(config: Config): Promise<void> {
  const { checkRuntime } = await import("@plenum/server");
  try {
    for (const runtime of config.runtimes) await checkRuntime(runtime, config);
  } catch (error) {
    if (!(error instanceof Error && error.name === "CoreError")) throw error;
    const { code, details } = error as CoreProblem;
    if (details?.backendStatus === 401) {
      throw new CommandError("The remote service does not accept the token; pass another one with --token.");
    }
    throw new CommandError(error.message, code === "backend-unavailable" ? exitCodes.unreachable : exitCodes.failure);
  }
}

/** Of the core's errors, which the service is loaded for. */
interface CoreProblem {
  readonly code?: string;
  readonly details?: { readonly backendStatus?: number };
}
