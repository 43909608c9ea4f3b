import { type BatchRequest, requireScope, type Task, type TaskKind, type TaskState } from "@plenum/core";
import { z } from "zod";
import { compact } from "../../shared/compact.ts";
import { createBackground } from "../../shared/create-background.ts";
import { doOnce } from "../../shared/create-once.ts";
import type { Call, Operation } from "../../shared/door.ts";
import { checkBody, toInvalidRequest } from "../../shared/parse-body.ts";
import { answerJson } from "../../shared/run-response.ts";
import { readBatch } from "../batch-lines.ts";
import { toCoreRequest } from "../request.ts";
import { responseSchema, strictResponseSchema } from "../schema.ts";
import { answerNothing, placeOf, streamEvents } from "../stream-events.ts";
import { streamTask } from "../stream-task.ts";
import { isStrict } from "../strict.ts";
import { toWireTask } from "../task.ts";
import { root } from "./root.ts";

const path = `${root}/tasks`;

/** Media types of JSON Lines. */
const jsonLines = ["application/jsonl", "application/x-ndjson", "application/x-jsonlines"];

/** Priority of a batch that names none: behind whoever waits for an answer. */
const batchPriority = -4;

/** Lines read at once for an answer. */
const linesPerRead = 100;

/** Work that outlives its request (LMSP §7). */
export const taskOperations: readonly Operation[] = [
  { name: "tasks.create", method: "POST", path, scope: "infer", mediaTypes: jsonLines, handle: createTask },
  { name: "tasks.list", method: "GET", path, scope: "read", handle: listTasks },
  { name: "tasks.events", method: "GET", path: `${path}/*/events`, scope: "read", handle: readEvents },
  { name: "tasks.output", method: "GET", path: `${path}/*/output`, scope: "read", handle: readOutput },
  { name: "tasks.cancel", method: "POST", path: `${path}/*/cancel`, scope: "infer", handle: cancelTask },
  { name: "tasks.get", method: "GET", path: `${path}/*`, scope: "read", handle: getTask },
  { name: "tasks.delete", method: "DELETE", path: `${path}/*`, scope: "infer", handle: deleteTask },
];

const kinds = ["response", "model.pull", "model.load", "model.unload", "batch"] as const;

/** What every kind has; the rest is its own. */
const kindSchema = z.looseObject({ kind: z.enum(kinds) });

const priority = z.int().min(-8).max(8).nullish();
const requests = z.union([z.string(), z.array(z.unknown())], "must be JSON Lines or a list of requests");
const batchSchema = z.object({ requests, priority });
const strictBatchSchema = z.strictObject({ kind: z.literal("batch"), requests, priority });

async function createTask(call: Call): Promise<void> {
  const { request } = call;
  const mediaType = request.headers["content-type"]?.split(";")[0]?.trim().toLowerCase() ?? "";
  if (jsonLines.includes(mediaType)) {
    await createUpload(call);
    return;
  }
  const { kind, ...rest } = call.json(kindSchema);
  switch (kind) {
    case "response": {
      const wire = checkBody(rest["request"], isStrict(call) ? strictResponseSchema : responseSchema, "request");
      const coreRequest = toCoreRequest({ ...wire, background: true }, call.core.clock.now(), false);
      const { record } = await createBackground(call, "lmsp", coreRequest, 0);
      answerAccepted(call, await call.core.tasks.get(record.response.id, call.caller.principal));
      return;
    }
    case "batch": {
      const wire = isStrict(call) ? call.json(strictBatchSchema) : checkBody(rest, batchSchema);
      await createBatch(call, wire.requests, wire.priority ?? batchPriority);
      return;
    }
    default:
      requireScope(call.caller.principal, "manage");
      await create(call, kind, rest);
  }
}

const uploadQuery = z.object({ kind: z.literal("batch"), priority: z.coerce.number().int().min(-8).max(8).optional() });

/** JSON Lines as the body itself. */
async function createUpload(call: Call): Promise<void> {
  const query = checkBody(Object.fromEntries(call.request.query), uploadQuery);
  await createBatch(call, call.request.body, query.priority ?? batchPriority);
}

async function createBatch(call: Call, lines: Uint8Array | string | readonly unknown[], level: number): Promise<void> {
  const read = typeof lines === "string" ? new TextEncoder().encode(lines) : lines;
  const request: BatchRequest = {
    lines: await readBatch(read, call.core.clock.now(), isStrict(call)),
    priority: level,
  };
  await create(call, "batch", request);
}

async function create(call: Call, kind: TaskKind, request: unknown): Promise<void> {
  const { core, caller } = call;
  const keyed = {
    prefix: "task_",
    find: (id: string) => core.tasks.get(id, caller.principal).catch(() => undefined),
    isVoid: () => false,
  };
  const made = await doOnce(call, "lmsp", keyed, (x) => core.tasks.create(kind, request, caller, x));
  answerAccepted(call, made.isFirst ? made.value : made.thing);
}

function answerAccepted(call: Call, task: Task): void {
  answerJson(call, 202, toWireTask(task), { location: `${path}/${task.id}` });
}

async function getTask(call: Call): Promise<void> {
  answerJson(call, 200, toWireTask(await call.core.tasks.get(call.rest, call.caller.principal)));
}

const listQuery = z.object({
  kind: z.enum(kinds).optional(),
  state: z.enum(["queued", "running", "succeeded", "failed", "cancelled"]).optional(),
  owner: z.string().optional(),
  cursor: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
});

interface Filters {
  readonly kind?: TaskKind | "response" | undefined;
  readonly state?: TaskState | undefined;
  readonly owner?: string | undefined;
  readonly cursor?: string | undefined;
}

async function listTasks(call: Call): Promise<void> {
  const parsed = listQuery.safeParse(Object.fromEntries(call.request.query));
  if (!parsed.success) throw toInvalidRequest(parsed.error.issues);
  const { limit, ...filters } = parsed.data;
  const page = await call.core.tasks.list({ limit, ...compact<Filters>(filters) }, call.caller.principal);
  answerJson(call, 200, { data: page.data.map(toWireTask), next_cursor: page.nextCursor ?? null });
}

async function readEvents(call: Call): Promise<void> {
  const { core, rest, caller } = call;
  const task = await core.tasks.get(rest, caller.principal);
  if (task.kind === "response") {
    await streamEvents(call, rest);
    return;
  }
  const reader = await core.tasks.events(rest, placeOf(call), caller.principal);
  if (reader === undefined) answerNothing(call);
  else await streamTask(call, reader);
}

/** What is done, in order: what is there now, also while the batch runs. */
async function readOutput(call: Call): Promise<void> {
  const { core, rest, caller, responder } = call;
  const read = (from: number) => core.tasks.output(rest, from, linesPerRead, caller.principal);
  let lines = await read(0);
  responder.start(200, { "content-type": "application/jsonl; charset=utf-8" });
  let from = 0;
  while (lines.length > 0 && !responder.isClosed) {
    const isTaken = responder.write(lines.map(({ text }) => `${text}\n`).join(""));
    if (!isTaken) await drained(call);
    from += lines.length;
    lines = lines.length < linesPerRead ? [] : await read(from);
  }
  responder.end();
}

function drained({ responder }: Call): Promise<void> {
  return new Promise((resolve) => {
    responder.onDrain(resolve);
    responder.onClosed(resolve);
  });
}

async function cancelTask(call: Call): Promise<void> {
  await requireManage(call);
  answerJson(call, 200, toWireTask(await call.core.tasks.cancel(call.rest, call.caller.principal)));
}

async function deleteTask(call: Call): Promise<void> {
  await requireManage(call);
  await call.core.tasks.delete(call.rest, call.caller.principal);
  answerNothing(call);
}

/** Who may not begin a task of a kind may not end one either. @throws CoreError forbidden, not-found */
async function requireManage({ core, rest, caller }: Call): Promise<void> {
  const { kind } = await core.tasks.get(rest, caller.principal);
  if (kind.startsWith("model.")) requireScope(caller.principal, "manage");
}
