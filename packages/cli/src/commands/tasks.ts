import { readFile } from "node:fs/promises";
import type { ListTasksOptions, LmspTask } from "@plenum/client";
import { type Command, Option } from "commander";
import { type JsonFlags, withClient, withConnection, writeJson } from "../connection.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { readWhole } from "../read-number.ts";
import { CommandError } from "../report-error.ts";
import { ageText } from "../run/age.ts";
import { showTask } from "../run/show-task.ts";
import { type Surroundings, withoutControls } from "../surroundings.ts";
import { table } from "../table.ts";

interface ListFlags extends JsonFlags {
  readonly kind?: NonNullable<ListTasksOptions["kind"]>;
  readonly state?: NonNullable<ListTasksOptions["state"]>;
  readonly limit: number;
}

interface BatchFlags extends JsonFlags {
  readonly detach?: boolean;
}

const kinds = ["response", "model.pull", "model.load", "model.unload", "batch"];
const states = ["queued", "running", "succeeded", "failed", "cancelled"];

/** Adds `plenum tasks list|get|batch|output|cancel|delete`. */
export function addTasks(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  const tasks = program
    .command("tasks")
    .summary("work that outlives its request: background answers, pulls, batches")
    .description(
      "Tasks go on when their client leaves, and after a crash of the service. `plenum watch ID` follows one.",
    );
  withConnection(tasks.command("list"))
    .summary("list them, newest first")
    .description("Lists tasks, newest first, with how far they are.")
    .addOption(new Option("--kind <kind>", "only of this kind").choices(kinds))
    .addOption(new Option("--state <state>", "only in this state").choices(states))
    .option("--limit <number>", "most of them, 1 … 1000", readWhole, 20)
    .option("--json", "print the page as the service gives it, as JSON")
    .addHelpText("after", "\nExamples:\n  plenum tasks list\n  plenum tasks list --kind batch --state running")
    .action(async (flags: ListFlags) => done(await list(flags, around)));
  withConnection(tasks.command("get <id>"))
    .summary("show one")
    .description("Shows a task and what became of it.")
    .option("--json", "print the task as JSON")
    .addHelpText("after", "\nExamples:\n  plenum tasks get task_0a1b\n  plenum tasks get task_0a1b --json")
    .action(async (id: string, flags: JsonFlags) => done(await get(id, flags, around)));
  withConnection(tasks.command("batch <file>"))
    .summary("run a file of requests, a line each")
    .description(
      "Runs every line of a JSON Lines file: {custom_id?, request}, or a request of POST /lmsp/v1/responses by itself; - " +
        "reads the input. Answers come in the same order, a line each; a line that fails carries its problem. A service " +
        "that crashes goes on with the lines that are left.",
    )
    .option("--detach", "print the task's id and leave; `plenum tasks output ID` reads the answers")
    .option("--json", "print the task as JSON when it is made")
    .addHelpText(
      "after",
      "\nExamples:\n  plenum tasks batch questions.jsonl > answers.jsonl\n  plenum tasks batch questions.jsonl --detach",
    )
    .action(async (file: string, flags: BatchFlags) => done(await batch(file, flags, around)));
  withConnection(tasks.command("output <id>"))
    .summary("print what a batch has answered")
    .description("Prints the answers of a batch as JSON Lines, in the order of its requests: so far, or all of them.")
    .option("--json", "the same: JSON Lines")
    .addHelpText("after", "\nExamples:\n  plenum tasks output task_0a1b | jq -r .response.status")
    .action(async (id: string, flags: JsonFlags) => done(await output(id, flags, around)));
  withConnection(tasks.command("cancel <ids...>"))
    .summary("stop some")
    .description("Stops tasks. What a pull has loaded stays, so that a later one goes on from there.")
    .option("--json", "print the tasks as JSON")
    .addHelpText("after", "\nExamples:\n  plenum tasks cancel task_0a1b")
    .action(async (ids: readonly string[], flags: JsonFlags) => done(await cancel(ids, flags, around)));
  withConnection(tasks.command("delete <ids...>"))
    .summary("forget some")
    .description("Stops tasks that run and forgets them with their output.")
    .option("--json", "print the ids as JSON")
    .addHelpText("after", "\nExamples:\n  plenum tasks delete task_0a1b")
    .action(async (ids: readonly string[], flags: JsonFlags) => done(await remove(ids, flags, around)));
}

function list({ kind, state, limit, ...flags }: ListFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    const filter = { limit, ...(kind !== undefined && { kind }), ...(state !== undefined && { state }) };
    const page = await client.tasks.list(filter, { signal });
    if (flags.json) return writeJson(around, page);
    if (page.data.length === 0) return around.errors.write("There are none.\n");
    around.output.write(withoutControls(taskTable(page.data)));
  });
}

function taskTable(tasks: readonly LmspTask[]): string {
  const rows = tasks.map((task) => [
    task.id,
    task.kind,
    task.state,
    progressText(task),
    task.attempt > 1 ? String(task.attempt) : "-",
    ageText(task.created_at),
  ]);
  return table([["TASK", "KIND", "STATE", "PROGRESS", "ATTEMPT", "AGE"], ...rows]);
}

function progressText({ progress }: LmspTask): string {
  if (progress === undefined) return "-";
  if (progress.total === undefined || progress.total === 0) return progress.step ?? `${progress.done} ${progress.unit}`;
  return `${Math.floor((100 * progress.done) / progress.total)} %`;
}

function get(id: string, flags: JsonFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    const task = await client.tasks.get(id, { signal });
    if (flags.json) return writeJson(around, task);
    around.output.write(withoutControls(taskTable([task])));
    if (task.problem !== undefined) around.output.write(`${withoutControls(task.problem.detail ?? "")}\n`);
    if (task.result !== undefined) around.output.write(`${withoutControls(JSON.stringify(task.result))}\n`);
  });
}

function batch(file: string, flags: BatchFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    const requests = file === "-" ? await around.input.readAll() : await readFile(file, "utf8");
    if (requests.trim() === "") throw new CommandError(`There is no line in ${file}.`, exitCodes.usage);
    const task = await client.tasks.create({ kind: "batch", requests }, { signal });
    if (flags.json) writeJson(around, task);
    else if (flags.detach) around.output.write(`${task.id}\n`);
    if (flags.json || flags.detach) return;
    around.errors.write(`${task.id} runs; Ctrl-C leaves it running, \`plenum tasks cancel ${task.id}\` stops it.\n`);
    await showTask(client.tasks.events(task.id, { signal }), around);
    await writeOutput(await client.tasks.output(task.id, { signal }), around);
  });
}

function output(id: string, flags: JsonFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    await writeOutput(await client.tasks.output(id, { signal }), around);
  });
}

async function writeOutput(stream: ReadableStream<Uint8Array>, around: Surroundings): Promise<void> {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  while (true) {
    const { done, value } = await reader.read();
    if (done) break;
    const text = decoder.decode(value, { stream: true });
    around.output.write(around.output.isTerminal ? withoutControls(text) : text);
  }
}

function cancel(ids: readonly string[], flags: JsonFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    const cancelled: LmspTask[] = [];
    for (const id of ids) cancelled.push(await client.tasks.cancel(id, { signal }));
    if (flags.json) writeJson(around, { data: cancelled });
    else around.output.write(taskTable(cancelled));
  });
}

function remove(ids: readonly string[], flags: JsonFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    for (const id of ids) await client.tasks.delete(id, { signal });
    if (flags.json) writeJson(around, { deleted: ids });
    else around.output.write(`${ids.length} forgotten.\n`);
  });
}
