import { CoreError, type TaskEvent, type TaskProgress } from "@plenum/core";
import { closedSignal } from "../shared/closed-signal.ts";
import type { Call } from "../shared/door.ts";
import { answerJson } from "../shared/run-response.ts";
import { OllamaRefusal } from "./refusal.ts";
import { copySchema, nameOf, pullSchema, removeSchema } from "./schema.ts";
import { catalogName } from "./settle.ts";

/**
 * `POST /api/pull`: a task `model.pull`, whose progress becomes Ollama's lines. A client that leaves ends it; the next pull
 * goes on where it stopped.
 */
export async function pull(call: Call): Promise<void> {
  const wire = call.json(pullSchema);
  const source = sourceOf(nameOf(wire));
  const { core, caller, responder } = call;
  const { id } = await core.tasks.create("model.pull", { source }, caller).catch((error: unknown) => {
    // The only field that it has is the name.
    if (error instanceof CoreError && error.code === "invalid-request") throw invalidName();
    throw error;
  });
  const left = closedSignal(responder);
  const cancel = (): void => void core.tasks.cancel(id, caller.principal, "disconnected").catch(() => undefined);
  if (left.aborted) cancel();
  left.addEventListener("abort", cancel, { once: true });
  const lines = wire.stream === false ? undefined : new PullLines(call);
  const last = await follow(call, id, (progress) => lines?.progress(progress));
  if (left.aborted) return;
  const problem =
    last?.type === "task.succeeded" ? undefined : (last?.task.problem?.detail ?? "the pull was cancelled");
  if (lines !== undefined) lines.end(problem);
  else if (problem === undefined) answerJson(call, 200, { status: "success" });
  // Ollama answers 500 whatever is at fault.
  else throw new OllamaRefusal(500, problem, "backend-error");
}

/** @returns the last event; undefined when the task is gone. */
async function follow(
  { core, caller }: Call,
  id: string,
  onProgress: (progress: TaskProgress) => void,
): Promise<TaskEvent | undefined> {
  const reader = await core.tasks.events(id, 0, caller.principal);
  let last: TaskEvent | undefined;
  for (let events = await reader?.next(); events !== undefined; events = await reader?.next()) {
    for (const event of events) {
      if (event.type === "task.progress" && event.task.progress !== undefined) onProgress(event.task.progress);
    }
    last = events.at(-1);
  }
  return last;
}

/** Lines of a pull: its steps, with the bytes where something is fetched. */
class PullLines {
  readonly #call: Call;
  #isFull = false;

  constructor(call: Call) {
    this.#call = call;
    call.responder.start(200, { "content-type": "application/x-ndjson" });
    call.responder.onDrain(() => {
      this.#isFull = false;
    });
    this.#write({ status: "pulling manifest" });
  }

  /** A client that reads slowly misses progress, not the end. */
  progress({ step, done, total, digest }: TaskProgress): void {
    if (this.#isFull || step === undefined || step === "pulling manifest" || step === "success") return;
    const isFetch = total !== undefined && total > 0;
    this.#write({
      status: step,
      ...(digest !== undefined && { digest }),
      ...(isFetch && { total }),
      ...(isFetch && done > 0 && { completed: done }),
    });
  }

  /** @param problem undefined: it succeeded */
  end(problem: string | undefined): void {
    this.#write(problem === undefined ? { status: "success" } : { error: problem });
    this.#call.responder.end();
  }

  #write(line: object): void {
    this.#isFull = !this.#call.responder.write(`${JSON.stringify(line)}\n`);
  }
}

/** A model's name as Ollama has it: one of the hub, or a bare one. */
function sourceOf(name: string): string {
  if (name === "" || /^[/.~]|:\/\/|^file:|\\/.test(name)) throw invalidName();
  return name;
}

function invalidName(): OllamaRefusal {
  return new OllamaRefusal(400, "invalid model name");
}

/** `DELETE /api/delete` */
export async function remove(call: Call): Promise<void> {
  const name = nameOf(call.json(removeSchema));
  if (name === "") throw new OllamaRefusal(400, 'name "" is invalid');
  const { core, caller } = call;
  try {
    await core.models.delete(catalogName(core.catalog, name), caller);
  } catch (error) {
    // As text it would read "page not found".
    if (error instanceof CoreError && error.code === "unsupported-operation")
      throw new OllamaRefusal(400, error.detail);
    throw error;
  }
  answerNothing(call);
}

/** `POST /api/copy`: the copy is a further name, since its weights would be the same. */
export async function copy(call: Call): Promise<void> {
  const { source, destination } = call.json(copySchema);
  if (!source) throw new OllamaRefusal(400, 'source "" is invalid');
  if (!destination) throw new OllamaRefusal(400, 'destination "" is invalid');
  const { core, caller } = call;
  try {
    await core.models.alias(destination, catalogName(core.catalog, source), caller);
  } catch (error) {
    if (!(error instanceof CoreError)) throw error;
    if (error.code === "model-not-found")
      throw new OllamaRefusal(404, `model ${JSON.stringify(source)} not found`, error.code);
    if (error.code === "invalid-request")
      throw new OllamaRefusal(400, `destination ${JSON.stringify(destination)} is invalid`);
    throw error;
  }
  answerNothing(call);
}

function answerNothing({ responder }: Call): void {
  responder.start(200, { "content-length": "0" });
  responder.end();
}
