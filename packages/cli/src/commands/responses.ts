import { type ListResponsesOptions, type LmspResponse, outputText } from "@plenum/client";
import { type Command, Option } from "commander";
import { type JsonFlags, withClient, withConnection, writeJson } from "../connection.ts";
import type { ExitCode } from "../exit-codes.ts";
import { readNumber, readWhole } from "../read-number.ts";
import { ageText } from "../run/age.ts";
import { type Surroundings, withoutControls } from "../surroundings.ts";
import { table } from "../table.ts";

interface ListFlags extends JsonFlags {
  readonly status?: NonNullable<ListResponsesOptions["status"]>;
  readonly door?: string;
  readonly model?: string;
  readonly limit: number;
}

interface ChangeFlags extends JsonFlags {
  readonly priority?: number;
  readonly timeoutMs?: number;
}

const statuses = ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"];
const doors = ["lmsp", "openai", "ollama", "nnrp"];

/** Adds `plenum responses list|get|change|cancel|delete`. */
export function addResponses(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  const responses = program
    .command("responses")
    .summary("see and steer what is asked, through whatever door")
    .description("Responses of every door: own ones, or with the scope admin everyone's.");
  withConnection(responses.command("list"))
    .summary("list them, newest first")
    .description("Lists responses, newest first: what waits, runs, and has ended a short while ago.")
    .addOption(new Option("--status <status>", "only of this status").choices(statuses))
    .addOption(new Option("--door <door>", "only through this door").choices(doors))
    .option("--model <id>", "only of this model")
    .option("--limit <number>", "most of them, 1 … 1000", readWhole, 20)
    .option("--json", "print the page as the service gives it, as JSON")
    .addHelpText("after", "\nExamples:\n  plenum responses list\n  plenum responses list --status in_progress --json")
    .action(async (flags: ListFlags) => done(await list(flags, around)));
  withConnection(responses.command("get <id>"))
    .summary("show one with its answer")
    .description("Shows a response: how it stands, its times and tokens, and its text so far.")
    .option("--json", "print the response as JSON")
    .addHelpText("after", "\nExamples:\n  plenum responses get resp_0a1b\n  plenum responses get resp_0a1b --json")
    .action(async (id: string, flags: JsonFlags) => done(await get(id, flags, around)));
  withConnection(responses.command("change <id>"))
    .summary("change the priority or the deadline of what waits or runs")
    .description("Changes a response that has not ended.")
    .option("--priority <number>", "-8 … 8, higher sooner", readNumber)
    .option("--timeout-ms <number>", "milliseconds from now until it is stopped", readWhole)
    .option("--json", "print the response as JSON")
    .addHelpText("after", "\nExamples:\n  plenum responses change resp_0a1b --priority 5")
    .action(async (id: string, flags: ChangeFlags) => done(await change(id, flags, around)));
  withConnection(responses.command("cancel <ids...>"))
    .summary("stop some")
    .description("Stops responses, wherever they are: in the queue, in the prompt, in the answer.")
    .option("--json", "print the responses as JSON")
    .addHelpText("after", "\nExamples:\n  plenum responses cancel resp_0a1b resp_2c3d")
    .action(async (ids: readonly string[], flags: JsonFlags) => done(await cancel(ids, flags, around)));
  withConnection(responses.command("delete <ids...>"))
    .summary("forget some")
    .description("Stops responses that run and forgets them with all they hold.")
    .option("--json", "print the ids as JSON")
    .addHelpText("after", "\nExamples:\n  plenum responses delete resp_0a1b")
    .action(async (ids: readonly string[], flags: JsonFlags) => done(await remove(ids, flags, around)));
}

function list({ status, door, model, limit, ...flags }: ListFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    const filter = {
      limit,
      ...(status !== undefined && { status }),
      ...(door !== undefined && { door }),
      ...(model !== undefined && { model }),
    };
    const page = await client.responses.list(filter, { signal });
    if (flags.json) return writeJson(around, page);
    if (page.data.length === 0) return around.errors.write("There are none.\n");
    around.output.write(withoutControls(responseTable(page.data)));
  });
}

/** One line for each response under a line of headings. */
export function responseTable(responses: readonly LmspResponse[]): string {
  const headings = ["RESPONSE", "STATUS", "MODEL", "DOOR", "PRIORITY", "TOKENS", "TTFT", "AGE"];
  return table([headings, ...responses.map(row)]);
}

function row(response: LmspResponse): readonly string[] {
  const { usage, timings } = response;
  return [
    response.id,
    response.status,
    response.model,
    response.door,
    String(response.priority ?? 0),
    usage === undefined ? "-" : `${usage.input_tokens}+${usage.output_tokens}`,
    timings?.first_token === undefined ? "-" : `${Math.round(timings.first_token)} ms`,
    ageText(response.created_at),
  ];
}

function get(id: string, flags: JsonFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    const response = await client.responses.get(id, { signal });
    if (flags.json) return writeJson(around, response);
    around.errors.write(withoutControls(responseTable([response])));
    if (response.problem !== undefined) around.errors.write(`${withoutControls(response.problem.detail ?? "")}\n`);
    const text = outputText(response);
    if (text !== "") around.output.write(`${around.output.isTerminal ? withoutControls(text) : text}\n`);
  });
}

function change(id: string, flags: ChangeFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    const { priority, timeoutMs } = flags;
    const wanted = {
      ...(priority !== undefined && { priority }),
      ...(timeoutMs !== undefined && { timeout_ms: timeoutMs }),
    };
    const response = await client.responses.change(id, wanted, { signal });
    if (flags.json) writeJson(around, response);
    else around.output.write(responseTable([response]));
  });
}

function cancel(ids: readonly string[], flags: JsonFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    const cancelled: LmspResponse[] = [];
    for (const id of ids) cancelled.push(await client.responses.cancel(id, { signal }));
    if (flags.json) writeJson(around, { data: cancelled });
    else around.output.write(responseTable(cancelled));
  });
}

function remove(ids: readonly string[], flags: JsonFlags, around: Surroundings): Promise<ExitCode> {
  return withClient(flags, around, async (client, signal) => {
    for (const id of ids) await client.responses.delete(id, { signal });
    if (flags.json) writeJson(around, { deleted: ids });
    else around.output.write(`${ids.length} forgotten.\n`);
  });
}
