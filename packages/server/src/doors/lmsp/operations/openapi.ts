import type { Operation } from "../../shared/door.ts";
import { answerJson } from "../../shared/run-response.ts";
import { createDocument } from "../openapi/document.ts";
import { root } from "./root.ts";

/** The interface as an OpenAPI 3.1 document. @param others every other operation */
export function openapiOperation(version: string, others: () => readonly Operation[]): Operation {
  let document: Record<string, unknown> | undefined;
  return {
    name: "openapi",
    method: "GET",
    path: `${root}/openapi.json`,
    scope: "read",
    handle(call) {
      document ??= createDocument(others(), version);
      answerJson(call, 200, document);
    },
  };
}
