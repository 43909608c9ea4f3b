import type { LmspEvent, ServiceEvent } from "@plenum/client";
import type { Command } from "commander";
import { type JsonFlags, withClient, withConnection, writeJson } from "../connection.ts";
import type { ExitCode } from "../exit-codes.ts";
import { readWhole } from "../read-number.ts";
import { showAnswer, timingsText } from "../run/show-answer.ts";
import { showTask } from "../run/show-task.ts";
import { dim, type Surroundings, withoutControls } from "../surroundings.ts";

interface WatchFlags extends JsonFlags {
  readonly after: number;
  readonly verbose?: boolean;
}

/** Adds `plenum watch`. */
export function addWatch(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  withConnection(program.command("watch [id]"))
    .summary("follow an answer, a task, or everything")
    .description(
      "With the id of a response: writes its answer from the beginning and follows it to its end, whoever asked for it and " +
        "through whatever door, over lost connections and a restart of the service. With the id of a task: shows how far " +
        "it is. Without an id: tells what happens in the service. Leaving stops nothing.",
    )
    .option("--after <sequence>", "start after this event of the response or task", readWhole, 0)
    .option("--verbose", "tell tokens and times after the answer")
    .option("--json", "print events as they come, a JSON document on each line")
    .addHelpText(
      "after",
      `
Examples:
  plenum watch resp_0a1b         take up an answer whose terminal is gone
  plenum watch task_2c3d         how far a pull or a batch is
  plenum watch                   everything that happens
  plenum watch --json | jq .type`,
    )
    .action(async (id: string | undefined, flags: WatchFlags) => done(await watch(id, flags, around)));
}

function watch(id: string | undefined, flags: WatchFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    const { after } = flags;
    if (id === undefined) return follow(client.events({ signal }), flags, around);
    if (id.startsWith("task_")) {
      const events = client.tasks.events(id, { after, signal });
      if (flags.json) return writeLines(events, around);
      const task = await showTask(events, around);
      if (task.result !== undefined) writeJson(around, task.result);
      return;
    }
    const events = client.responses.events(id, { after, signal });
    if (flags.json) return writeLines(events, around);
    await answer(events, flags, around);
  });
}

async function answer(events: AsyncIterable<LmspEvent>, flags: WatchFlags, around: Surroundings): Promise<void> {
  const response = await showAnswer(events, around);
  if (flags.verbose) around.errors.write(dim(around.errors, `${timingsText(response)}\n`));
}

async function writeLines(events: AsyncIterable<unknown>, around: Surroundings): Promise<void> {
  for await (const event of events) around.output.write(`${JSON.stringify(event)}\n`);
}

async function follow(events: AsyncIterable<ServiceEvent>, flags: WatchFlags, around: Surroundings): Promise<void> {
  if (flags.json) return writeLines(events, around);
  for await (const event of events) {
    const line = lineOf(event);
    if (line !== undefined) around.output.write(withoutControls(`${new Date().toTimeString().slice(0, 8)}  ${line}\n`));
  }
}

function lineOf(event: ServiceEvent): string | undefined {
  switch (event.type) {
    case "snapshot": {
      const running = event.responses?.filter(({ status }) => status === "in_progress").length ?? 0;
      return `${event.models?.length ?? 0} models, ${event.runtimes?.length ?? 0} runtimes, ${running} answers running`;
    }
    case "model.added":
    case "model.changed":
    case "model.removed":
      return `${event.type.padEnd(17)} ${event.model.id}  ${event.model.state}`;
    case "runtime.changed":
    case "runtime.removed":
      return `${event.type.padEnd(17)} ${event.runtime.id}  ${event.runtime.state}  ${event.runtime.reason ?? ""}`;
    case "task.changed":
      return `${event.type.padEnd(17)} ${event.task.id}  ${event.task.kind}  ${event.task.state}`;
    case "response.changed": {
      const { id, door, model, status, usage } = event.response;
      return `${event.type.padEnd(17)} ${id}  ${door}  ${model}  ${status}  ${usage?.output_tokens ?? 0} tokens`;
    }
    case "nearby.changed":
      return `${event.type.padEnd(17)} ${event.nearby.name}  ${event.nearby.url}  ${event.nearby.state}`;
    case "metrics":
    case "response.event":
      return undefined;
  }
}
