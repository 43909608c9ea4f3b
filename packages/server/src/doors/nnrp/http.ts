import { type Core, type Principal, usableModels } from "@plenum/core";
import { bearerIn } from "../shared/bearer.ts";
import type { Call, Door } from "../shared/door.ts";
import { answerJson } from "../shared/run-response.ts";
import { capabilitiesOf, type Level } from "./capabilities.ts";
import { renderProblem } from "./errors.ts";

/** Where the capability document is (wire description §12.6). */
export const capabilitiesPath = "/.well-known/nnrp-openai-compatible";

/** Where WebSocket upgrades are taken. */
export const webSocketPath = "/nnrp";

/** What the door has to say over HTTP: its capability document, and what its WebSocket address is for. */
export function createHttpPages(level: Level): Door {
  return {
    kind: "nnrp",
    operations: [
      {
        name: "capabilities",
        method: "GET",
        path: capabilitiesPath,
        scope: null,
        handle: (call) => describe(call, level),
      },
      { name: "connect", method: "GET", path: webSocketPath, scope: null, handle: askForUpgrade },
    ],
    requiresJson: true,
    owns: (path) => path === capabilitiesPath || path === webSocketPath,
    renderProblem,
  };
}

/** No token is needed, but where tokens are on, models are shown to those who have one (LMSP §1). */
async function describe(call: Call, level: Level): Promise<void> {
  const { core, request } = call;
  await core.catalog.ready;
  const principal = principalOf(core, bearerIn(request.headers["authorization"]), request.peer);
  const models = principal === undefined ? [] : usableModels(core.catalog, principal);
  answerJson(call, 200, capabilitiesOf(core, level, models), { "cache-control": "no-cache" });
}

function principalOf({ authenticator }: Core, bearer: string | undefined, peer: string): Principal | undefined {
  try {
    return authenticator.authenticate(bearer, peer).principal;
  } catch {
    return undefined;
  }
}

function askForUpgrade(call: Call): void {
  const text = "This address speaks NNRP over WebSocket.\n";
  call.responder.start(426, {
    "content-type": "text/plain; charset=utf-8",
    "content-length": String(text.length),
    upgrade: "websocket",
  });
  call.responder.end(text);
}
