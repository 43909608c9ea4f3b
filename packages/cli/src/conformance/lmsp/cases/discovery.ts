import type { Case, Visit } from "../case.ts";
import { asValue } from "../value.ts";

const wellKnown = "/.well-known/lmsp";

export const discoveryCases: readonly Case[] = [
  { id: "discovery.document", section: "§1", run: documentIsWhole },
  { id: "discovery.open", section: "§1", run: documentNeedsNoToken },
  { id: "discovery.interfaces", section: "§1", run: interfacesAnswer },
];

async function documentIsWhole({ probe, expect }: Visit): Promise<void> {
  const { status, headers, json } = await probe.ask(wellKnown);
  const document = asValue(json);
  expect(status === 200, `It answers ${status}.`);
  expect(headers.get("content-type")?.startsWith("application/json") ?? false, "It is not application/json.");
  expect(!/no-store/.test(headers.get("cache-control") ?? ""), "It may not be cached.");
  expect(
    /^1\.\d+$/.test(document.at("lmsp_version").text ?? ""),
    `lmsp_version is ${document.at("lmsp_version").json}.`,
  );
  expect((document.at("service", "id").text ?? "") !== "", "The service has no id.");
  expect((document.at("service", "name").text ?? "") !== "", "The service has no name.");
  expect(typeof document.at("auth", "required").raw === "boolean", "auth.required is missing.");
  const kinds = document.at("interfaces").list.map((entry) => entry.at("kind").text);
  expect(kinds.includes("lmsp"), "No interface of the kind lmsp is declared.");
  for (const entry of document.at("interfaces").list) {
    expect(URL.canParse(entry.at("url").text ?? ""), `The interface ${entry.at("kind").json} has no URL.`);
  }
  const again = asValue((await probe.ask(wellKnown)).json);
  expect(again.at("service", "id").text === document.at("service", "id").text, "The service's id is not kept.");
}

async function documentNeedsNoToken({ probe, facts, expect }: Visit): Promise<void> {
  const { status, text } = await probe.ask(wellKnown, { token: null });
  expect(status === 200, `Without a token it answers ${status}.`);
  if (!facts.requiresToken) return;
  for (const id of [facts.model, facts.embeddingModel]) {
    if (id !== undefined) expect(!text.includes(JSON.stringify(id)), `It tells strangers of the model ${id}.`);
  }
}

/** Where a client of each kind would begin. */
const firstPaths: Readonly<Record<string, string>> = { lmsp: "/models", openai: "/models", ollama: "/api/tags" };

async function interfacesAnswer({ probe, facts, expect }: Visit): Promise<void> {
  for (const [kind, url] of facts.interfaces) {
    const path = firstPaths[kind];
    if (path === undefined) continue;
    const { status } = await probe.ask(`${url}${path}`);
    expect(status === 200, `${url}${path} of the declared interface ${kind} answers ${status}.`);
  }
}
