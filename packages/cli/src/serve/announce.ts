import { setTimeout } from "node:timers/promises";
import { type Client, createClient } from "@plenum/client";
import type { Config, PlenumServer } from "@plenum/server";
import type { Surroundings } from "../surroundings.ts";

const doorNames: Readonly<Record<string, string>> = { lmsp: "LMSP", openai: "OpenAI", ollama: "Ollama", nnrp: "NNRP" };

/** Longest wait for the catalog, whose first model the example names. */
const catalogWaitMs = 1000;

/** Says where the service is, gives one line to try, and what to do next. */
export async function announce(
  server: PlenumServer,
  config: Config,
  around: Surroundings,
  version: string,
): Promise<void> {
  const client = createClient({ baseUrl: server.url, ...(around.fetch !== undefined && { fetch: around.fetch }) });
  const needsToken = config.auth.tokens.length > 0;
  const model = needsToken ? undefined : await firstChatModel(client);
  around.output.write(announcement({ server, config, version, model, needsToken }));
}

interface Announced {
  readonly server: Pick<PlenumServer, "url" | "interfaces">;
  readonly config: Pick<Config, "models" | "name">;
  readonly version: string;
  /** Model for the example; undefined: none is known. */
  readonly model: string | undefined;
  readonly needsToken: boolean;
}

/** The text of it. */
export function announcement({ server, config, version, model, needsToken }: Announced): string {
  const doors = server.interfaces.map(({ kind, url }) => `  ${(doorNames[kind] ?? kind).padEnd(8)}${url}\n`);
  const token = needsToken ? ` -H "Authorization: Bearer $PLENUM_TOKEN"` : "";
  const body = JSON.stringify({ model: model ?? "MODEL", messages: [{ role: "user", content: "Say hello." }] });
  return `Plenum ${version} runs as "${config.name}".

${doors.join("")}
Try it:
  curl ${server.url}/v1/chat/completions${token} -H 'Content-Type: application/json' -d '${body}'

Next:
  plenum models                 what it can run
  plenum run ${(model ?? "MODEL").padEnd(19)}chat in this terminal
  more models                   put GGUF files into ${config.models}
  Ctrl-C                        stop
`;
}

/** The first chat model, once the service has looked through its folder. */
async function firstChatModel(client: Client): Promise<string | undefined> {
  const signal = AbortSignal.timeout(catalogWaitMs);
  try {
    while (true) {
      const { data } = await client.models.list({ signal });
      const found = data.find((model) => model.capabilities.chat);
      if (found !== undefined) return found.id;
      await setTimeout(50, undefined, { signal });
    }
  } catch {
    // Time is up, or the catalog is refused: the example then names no model. The service itself is up.
    return undefined;
  }
}
