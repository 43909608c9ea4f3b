import { createClient } from "@plenum/client";
import type { Config, PlenumServer } from "@plenum/server";
import type { Surroundings } from "../surroundings.ts";
import { firstChatModel } from "./first-model.ts";

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
  const needsToken = server.core.authenticator.isRequired;
  const model = needsToken ? undefined : await firstChatModel(client, AbortSignal.timeout(catalogWaitMs));
  // `npm start` puts no `plenum` on the PATH.
  const command = around.env["npm_lifecycle_event"] === "start" ? "npx plenum" : "plenum";
  around.output.write(announcement({ server, config, version, model, needsToken, command }));
}

interface Announced {
  readonly server: Pick<PlenumServer, "url" | "interfaces" | "madeTokenFile">;
  readonly config: Pick<Config, "models" | "name"> & { readonly embedded: Pick<Config["embedded"], "enabled"> };
  readonly version: string;
  /** Model for the example; undefined: none is known. */
  readonly model: string | undefined;
  readonly needsToken: boolean;
  /** How this person calls the command. */
  readonly command: string;
}

/** Characters of the column that says what to type. */
const width = 30;

/** The text of it. */
export function announcement({ server, config, version, model, needsToken, command }: Announced): string {
  const doors = server.interfaces.map(({ kind, url }) => `  ${(doorNames[kind] ?? kind).padEnd(8)}${url}\n`);
  const { madeTokenFile } = server;
  const made = madeTokenFile === undefined ? "" : `\nThe first token, with every right, is in ${madeTokenFile}\n`;
  const token = needsToken ? ` -H "Authorization: Bearer $PLENUM_TOKEN"` : "";
  const body = JSON.stringify({ model: model ?? "MODEL", messages: [{ role: "user", content: "Say hello." }] });
  return `Plenum ${version} runs as "${config.name}".

${doors.join("")}${made}
Try it:
  curl ${server.url}/v1/chat/completions${token} -H 'Content-Type: application/json' -d '${body}'

Next:
  ${`${command} models`.padEnd(width)}what it can run
  ${`${command} run ${model ?? "MODEL"}`.padEnd(width)}chat in this terminal
${config.embedded.enabled ? `  ${"more models".padEnd(width)}put GGUF files into ${config.models}\n` : ""}  ${"Ctrl-C".padEnd(width)}stop
`;
}
