import { createHash } from "node:crypto";
import { findUsable, usableModels } from "@plenum/core";
import type { Call, Operation } from "../../shared/door.ts";
import { answerText } from "../../shared/run-response.ts";
import { toWireModel } from "../response.ts";
import { answerNothing } from "../stream-events.ts";
import { root } from "./root.ts";

/** The catalog (LMSP §4), and the end of a model (§7). */
export const modelOperations: readonly Operation[] = [
  { name: "models.list", method: "GET", path: `${root}/models`, scope: "read", handle: listModels },
  { name: "models.get", method: "GET", path: `${root}/models/*`, scope: "read", handle: getModel },
  { name: "models.delete", method: "DELETE", path: `${root}/models/*`, scope: "manage", handle: deleteModel },
];

function listModels(call: Call): void {
  const models = usableModels(call.core.catalog, call.caller.principal);
  answerTagged(call, { data: models.map(toWireModel), next_cursor: null });
}

function getModel(call: Call): void {
  answerTagged(call, toWireModel(findUsable(call.core.catalog, call.rest, call.caller.principal)));
}

async function deleteModel(call: Call): Promise<void> {
  await call.core.models.delete(call.rest, call.caller);
  answerNothing(call);
}

/** The tag is that of the content: the same on every replica and after a restart, another one for a token that sees other models. */
function answerTagged(call: Call, body: unknown): void {
  const text = JSON.stringify(body);
  const etag = `"${createHash("sha256").update(text).digest("base64url")}"`;
  if (!isNoneOf(call.request.headers["if-none-match"], etag)) {
    answerText(call, 200, text, { etag });
    return;
  }
  call.responder.start(304, { etag });
  call.responder.end();
}

/** RFC 9110 §13.1.2: compared weakly; `*` stands for any. */
function isNoneOf(header: string | undefined, etag: string): boolean {
  const tags = header?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  return tags.includes(etag) || tags.includes("*");
}
