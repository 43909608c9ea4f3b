import { type Caller, CoreError, type OwnedResponse, type ProblemCode, type ResponseChanges } from "@plenum/core";
import type { StopCause } from "@plenum/nnrp";
import { type ConvertedRequest, inWordsOf, renameProblem } from "../shared/openai/converted.ts";
import type { Call } from "./call.ts";
import { LogPump } from "./log-pump.ts";
import type { Rendering } from "./rendering.ts";
import { type Ending, ProfileRenderer } from "./stream.ts";

/** Runs a converted request and answers as its API does, streamed or whole. */
export async function runConverted(
  call: Call,
  caller: Caller,
  converted: ConvertedRequest,
  rendering: Rendering,
): Promise<void> {
  const { core, continued } = call.context;
  const { isStream } = converted;
  const request = call.fit(converted.request);
  const continues = request.onDisconnect === "continue";
  // What goes on without its connection is there to be watched.
  const delivery = isStream || continues ? "events" : "whole";
  const owned = await inWordsOf(converted, () => core.responses.create(request, caller, "nnrp", delivery));
  if (continues) continued.add(owned.id, { rendering, isStream, wantsChunks: call.writer.wantsChunks });
  call.onChange((changes) => changeResponse(call, caller, owned, changes));
  const renderer = createRenderer(call, rendering, isStream);
  const end = (ending: Ending): void => endWith(call, ending, rendering);
  if (isStream) stream(call, caller, owned, renderer, end);
  else await complete(call, caller, owned, renderer, end);
}

export function createRenderer(call: Call, { counts, toSource }: Rendering, isStream: boolean): ProfileRenderer {
  const { writer, diagnose } = call;
  const wantsSource = isStream && writer.wantsChunks;
  return new ProfileRenderer({ writer, counts, isStream, diagnose, ...(wantsSource ? { source: toSource() } : {}) });
}

export function endWith(call: Call, { response, chunk }: Ending, { toBody, param }: Rendering): void {
  const { problem } = response;
  if (problem === undefined) call.complete(toBody(response), response);
  else call.failWith(renameProblem(problem, param), { response, ...(chunk === undefined ? {} : { chunk }) });
}

function stream(
  call: Call,
  caller: Caller,
  owned: OwnedResponse,
  renderer: ProfileRenderer,
  onEnd: (ending: Ending) => void,
): void {
  const pump = new LogPump({
    call,
    reader: owned.read(),
    renderer,
    onEnd,
    onFault: (error) => {
      call.fail(error);
      owned.ownerLeft();
    },
  });
  call.onStop((cause) => {
    // Before its owner leaves: a reader that is still there would be one who came back.
    pump.close();
    stopResponse(call, caller, owned, cause);
  });
  pump.begin();
}

async function complete(
  call: Call,
  caller: Caller,
  owned: OwnedResponse,
  renderer: ProfileRenderer,
  onEnd: (ending: Ending) => void,
): Promise<void> {
  call.onStop((cause) => stopResponse(call, caller, owned, cause));
  const partials: string[] = [];
  renderer.begin(owned.id, partials);
  for (const partial of partials) call.submitted.partial(partial);
  const response = await owned.done;
  if (call.isOver) return;
  if (response.problem === undefined) {
    const last: string[] = [];
    renderer.complete(response, last);
    for (const partial of last) call.submitted.partial(partial);
  }
  onEnd({ response });
}

/** What comes too late changes nothing; a deadline that has passed ends the operation by itself. */
function changeResponse(call: Call, { principal }: Caller, owned: OwnedResponse, changes: ResponseChanges): void {
  call.context.core.responses.change(owned.id, changes, principal).catch((error: unknown) => {
    const isLate = error instanceof CoreError && lateCodes.has(error.code);
    if (!isLate) call.fail(error);
  });
}

const lateCodes: ReadonlySet<ProblemCode> = new Set(["conflict", "not-found", "deadline-exceeded"]);

/** What the end of an operation means for its response. The operation itself is ended by whoever stopped it. */
function stopResponse(call: Call, { principal }: Caller, owned: OwnedResponse, cause: StopCause): void {
  const { core } = call.context;
  const cancel = (reason?: string): void => {
    core.responses.cancel(owned.id, principal, reason).catch((error: unknown) => {
      // It has ended and is forgotten: nothing is left to cancel.
      if (error instanceof CoreError && error.code === "not-found") return;
      call.fail(error);
    });
  };
  switch (cause.kind) {
    case "cancel":
    case "abort":
    case "frame-cancel":
      cancel();
      return;
    case "superseded":
      cancel("superseded");
      return;
    case "deadline":
    case "expired":
      cancel("deadline");
      return;
    case "session-closed":
    case "connection-lost":
      owned.ownerLeft();
      return;
    case "server-closing":
      // The core ends what runs by itself, as interrupted.
      return;
  }
}
