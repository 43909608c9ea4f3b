import type { LmspModel } from "@plenum/client";
import type { Command } from "commander";
import { type JsonFlags, withClient, withConnection, writeJson } from "../connection.ts";
import type { ExitCode } from "../exit-codes.ts";
import { type Surroundings, withoutControls } from "../surroundings.ts";
import { table } from "../table.ts";

/** Adds `plenum models`. */
export function addModels(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  withConnection(program.command("models"))
    .summary("list the models of a service")
    .description(
      "Lists what the service can run: name, state, capabilities and sizes. A * marks an emulated capability.",
    )
    .option("--json", "print the catalog as the service gives it, as JSON")
    .addHelpText(
      "after",
      `
Examples:
  plenum models
  plenum models --json | jq -r '.data[].id'
  plenum models --url http://studio.local:7411 --token plenum_…`,
    )
    .action(async (flags: JsonFlags) => done(await listModels(flags, around)));
}

function listModels(flags: JsonFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    const page = await client.models.list({ signal });
    if (flags.json) writeJson(around, page);
    else if (page.data.length > 0) around.output.write(withoutControls(modelTable(page.data)));
    else around.errors.write("The service has no models. `plenum pull starter` fetches a small one.\n");
  });
}

/** One line for each model under a line of headings. */
function modelTable(models: readonly LmspModel[]): string {
  const headings = ["MODEL", "STATE", "CAPABILITIES", "CONTEXT", "PARAMETERS", "QUANTIZATION", "SIZE", "RUNTIME"];
  return table([headings, ...models.map(modelRow)]);
}

function modelRow(model: LmspModel): readonly string[] {
  const { limits, details } = model;
  const capabilities = Object.entries(model.capabilities)
    .filter(([, isThere]) => isThere === true)
    .map(([name]) => (model.emulated.includes(name) ? `${name}*` : name));
  return [
    model.id,
    model.state,
    capabilities.join(",") || "-",
    limits.context_tokens ? String(limits.context_tokens) : "-",
    details.parameters ? shortCount(details.parameters) : "-",
    details.quantization ?? "-",
    details.size_bytes ? `${Math.round(details.size_bytes / 1024 ** 2)} MiB` : "-",
    model.runtimes.map((runtime) => runtime.id).join(",") || "-",
  ];
}

function shortCount(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(1)}B`;
  return count >= 1e6 ? `${Math.round(count / 1e6)}M` : String(count);
}
