import { closedSignal } from "../shared/closed-signal.ts";
import type { Call } from "../shared/door.ts";
import { type AnsweredResponse, answerText, completeForOwner, streamToOwner } from "../shared/run-response.ts";
import { headerFields, requireName, withoutEffectHeader } from "./answer.ts";
import { type AnswerShape, chatShape, generateShape, head, idle } from "./answer-shape.ts";
import { defaults } from "./defaults.ts";
import { toKeepAliveMs } from "./keep-alive.ts";
import { type Converted, toChatRequest, toGenerateRequest } from "./request.ts";
import { renderWhole } from "./response.ts";
import { chatSchema, generateSchema, nameOf, type WireChat, type WireGenerate } from "./schema.ts";
import { catalogName, fieldName, settle } from "./settle.ts";
import { createRenderer } from "./stream.ts";

/** `POST /api/chat` */
export async function chat(call: Call): Promise<void> {
  const wire = call.json(chatSchema);
  requireName(nameOf(wire));
  if (!wire.messages?.length) return loadOrUnload(call, chatShape, wire);
  await run(call, chatShape, wire, toChatRequest(wire, headerFields(call)));
}

/** `POST /api/generate` */
export async function generate(call: Call): Promise<void> {
  const wire = call.json(generateSchema);
  if (!wire.prompt) return loadOrUnload(call, generateShape, wire);
  await run(call, generateShape, wire, toGenerateRequest(wire, headerFields(call)));
}

async function run(call: Call, shape: AnswerShape, wire: WireChat | WireGenerate, converted: Converted): Promise<void> {
  const request = settle(converted.request, call.core, call.caller);
  const model = nameOf(wire);
  const options = { call, door: "ollama", request, headersAfterMs: defaults.headersAfterMs } as const;
  const headersOf = ({ id, withoutEffect }: AnsweredResponse) => ({
    "x-lmsp-response-id": id,
    ...withoutEffectHeader([...converted.withoutEffect, ...withoutEffect.map(fieldName)]),
  });
  if (wire.stream ?? defaults.stream) {
    const { path } = call.request;
    await streamToOwner(options, (answered) => createRenderer({ shape, model, path, headers: headersOf(answered) }));
    return;
  }
  const completed = await completeForOwner(options);
  if (completed === undefined) return;
  answerText(call, 200, renderWhole(shape, model, completed.response), headersOf(completed.answered));
}

/** A request without words is about the model itself. */
async function loadOrUnload(call: Call, shape: AnswerShape, wire: WireChat | WireGenerate): Promise<void> {
  const model = nameOf(wire);
  const reason = await changeState(call, model, toKeepAliveMs(wire.keep_alive));
  answerText(call, 200, idle(shape, head(model, call.core.clock.now()), reason));
}

/** Loads the model, or unloads it with `keep_alive` below a second. */
export async function changeState(
  call: Call,
  name: string,
  keepAliveMs: number | undefined,
): Promise<"load" | "unload"> {
  const { core, caller, responder } = call;
  const model = catalogName(core.catalog, name);
  if (keepAliveMs !== undefined && keepAliveMs >= 0 && keepAliveMs < 1_000) {
    await core.models.unload(model, caller);
    return "unload";
  }
  await core.models.load(model, keepAliveMs === undefined ? {} : { keepAliveMs }, caller, closedSignal(responder));
  return "load";
}
