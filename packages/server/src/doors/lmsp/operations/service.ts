import type { Call, Operation } from "../../shared/door.ts";
import { type ServiceFacts, toServiceDocument } from "../service-document.ts";

/** The service document (LMSP §1). */
export function serviceOperations(facts: ServiceFacts): readonly Operation[] {
  const describe = ({ core, request, responder }: Call): void => {
    responder.start(200, { "content-type": "application/json; charset=utf-8", "cache-control": "max-age=10" });
    const asker = { origin: request.origin, isLocal: isLoopback(request.peer) };
    responder.end(JSON.stringify(toServiceDocument(facts, asker, core.authenticator.isRequired, core.tasks.kinds)));
  };
  return [{ name: "service", method: "GET", path: "/.well-known/lmsp", scope: null, handle: describe }];
}

function isLoopback(address: string): boolean {
  return address === "::1" || /^(::ffff:)?127\./.test(address);
}
