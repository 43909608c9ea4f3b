import type { TaskRequest } from "@plenum/client";
import type { Command } from "commander";
import { type JsonFlags, withClient, withConnection, writeJson } from "../connection.ts";
import type { ExitCode } from "../exit-codes.ts";
import { showTask } from "../run/show-task.ts";
import type { Surroundings } from "../surroundings.ts";

interface PullFlags extends JsonFlags {
  readonly sha256?: string;
  readonly detach?: boolean;
}

interface LoadFlags extends JsonFlags {
  readonly keepAlive?: string;
}

/** Adds `plenum pull`, `load`, `unload` and `rm`. */
export function addModelState(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  withConnection(program.command("pull <source>"))
    .summary("get a model")
    .description(
      "Gets a model: hf:owner/repo[:quant] from Hugging Face, ollama:name through an Ollama runtime, an https address, a " +
        "GGUF file or a folder of them on the service's machine (used where they lie), or `starter`. A broken pull goes " +
        "on where it was when it is asked for again; Ctrl-C leaves it running.",
    )
    .option("--sha256 <digest>", "what the file must have, 64 hex digits")
    .option("--detach", "print the task's id and leave")
    .option("--json", "print the task as JSON at its end")
    .addHelpText(
      "after",
      `
Examples:
  plenum pull starter
  plenum pull hf:bartowski/SmolLM2-360M-Instruct-GGUF:Q4_K_M
  plenum pull ollama:llama3.2
  plenum pull ~/models`,
    )
    .action(async (source: string, { sha256, detach, ...flags }: PullFlags) => {
      const request = { kind: "model.pull", source, ...(sha256 !== undefined && { sha256 }) } as const;
      done(await runTask(request, detach === true, flags, around));
    });
  withConnection(program.command("load <model>"))
    .summary("load a model before it is needed")
    .description("Loads a model, so that the first answer need not wait for it.")
    .option("--keep-alive <duration>", "how long it stays loaded unused, such as 30m; -1: for ever")
    .option("--json", "print the task as JSON at its end")
    .addHelpText("after", "\nExamples:\n  plenum load smollm2:135m --keep-alive 2h")
    .action(async (model: string, { keepAlive, ...flags }: LoadFlags) => {
      const request = { kind: "model.load", model, ...(keepAlive !== undefined && { keep_alive: keepAlive }) } as const;
      done(await runTask(request, false, flags, around));
    });
  withConnection(program.command("unload <model>"))
    .summary("free a model's memory")
    .description("Unloads a model when its running answers have ended.")
    .option("--json", "print the task as JSON at its end")
    .addHelpText("after", "\nExamples:\n  plenum unload smollm2:135m")
    .action(async (model: string, flags: JsonFlags) => {
      done(await runTask({ kind: "model.unload", model }, false, flags, around));
    });
  withConnection(program.command("rm <models...>"))
    .summary("delete models")
    .description("Deletes models with their files. A file that was only named to the service stays where it is.")
    .option("--json", "print the ids as JSON")
    .addHelpText("after", "\nExamples:\n  plenum rm smollm2:135m")
    .action(async (models: readonly string[], flags: JsonFlags) => done(await remove(models, flags, around)));
}

function runTask(request: TaskRequest, isDetached: boolean, flags: JsonFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    const made = await client.tasks.create(request, { signal });
    if (isDetached) return flags.json ? writeJson(around, made) : around.output.write(`${made.id}\n`);
    const task = await showTask(client.tasks.events(made.id, { signal }), around);
    if (flags.json) return writeJson(around, task);
    around.output.write(`${resultText(task.result) ?? `${task.kind} is done.`}\n`);
  });
}

/** The models that a task tells of, one on each line. */
function resultText(result: unknown): string | undefined {
  if (typeof result !== "object" || result === null || !("models" in result) || !Array.isArray(result.models)) {
    return undefined;
  }
  return result.models.map((model) => `${model} is here.`).join("\n");
}

function remove(models: readonly string[], flags: JsonFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    for (const model of models) await client.models.delete(model, { signal });
    if (flags.json) writeJson(around, { deleted: models });
    else around.output.write(`${models.length} deleted.\n`);
  });
}
