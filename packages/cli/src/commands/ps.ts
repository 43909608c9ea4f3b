import type { Command } from "commander";
import { type JsonFlags, withClient, withConnection, writeJson } from "../connection.ts";
import type { ExitCode } from "../exit-codes.ts";
import { type Surroundings, withoutControls } from "../surroundings.ts";
import { table } from "../table.ts";
import { responseTable } from "./responses.ts";

/** Adds `plenum ps`. */
export function addPs(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  withConnection(program.command("ps"))
    .summary("what is loaded and what runs")
    .description("Shows the models that are loaded, and the answers that run or wait.")
    .option("--json", "print models and responses as JSON")
    .addHelpText("after", "\nExamples:\n  plenum ps\n  watch plenum ps")
    .action(async (flags: JsonFlags) => done(await ps(flags, around)));
}

function ps(flags: JsonFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    const [models, running, queued] = await Promise.all([
      client.models.list({ signal }),
      client.responses.list({ status: "in_progress" }, { signal }),
      client.responses.list({ status: "queued" }, { signal }),
    ]);
    const loaded = models.data.filter(({ state }) => state === "loaded" || state === "loading");
    const responses = [...running.data, ...queued.data];
    if (flags.json) return writeJson(around, { models: loaded, responses });
    const rows = loaded.map((model) => {
      const bytes = model.runtimes.reduce((sum, { memory_bytes = 0 }) => sum + memory_bytes, 0);
      return [
        model.id,
        model.state,
        bytes > 0 ? `${Math.round(bytes / 1024 ** 2)} MiB` : "-",
        model.runtimes.map(({ id }) => id).join(","),
      ];
    });
    if (rows.length > 0)
      around.output.write(withoutControls(table([["MODEL", "STATE", "MEMORY", "RUNTIME"], ...rows])));
    else around.output.write("No model is loaded.\n");
    if (responses.length > 0) around.output.write(`\n${withoutControls(responseTable(responses))}`);
    else around.output.write("Nothing runs.\n");
  });
}
