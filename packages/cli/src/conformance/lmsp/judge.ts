import type { Facts } from "./case.ts";
import { type CaseResult, runCase } from "./case-result.ts";
import { cases } from "./cases.ts";
import { Probe } from "./probe.ts";
import { root } from "./requests.ts";
import { asValue } from "./value.ts";

export interface JudgeOptions {
  /** Address of the service, without a slash at its end. */
  readonly baseUrl: string;
  readonly token?: string | undefined;
  readonly otherToken?: string | undefined;
  /** Answers chats. @default the first model that says it can */
  readonly model?: string | undefined;
  /** Milliseconds for one request. @default 30000 */
  readonly timeoutMs?: number;
  /** Only cases whose id begins with one of these. @default all */
  readonly only?: readonly string[] | undefined;
  readonly signal?: AbortSignal;
  /** Told of each case as it ends. */
  readonly onResult?: (result: CaseResult) => void;
}

/**
 * Judges a service from outside.
 * @throws TypeError when nothing answers there; the signal's reason.
 */
export async function judge(options: JudgeOptions): Promise<readonly CaseResult[]> {
  const { baseUrl, token, timeoutMs = 30_000, only, signal } = options;
  const probe = new Probe({ baseUrl, token, timeoutMs });
  const facts = await gather(probe, options);
  const results: CaseResult[] = [];
  for (const each of cases) {
    signal?.throwIfAborted();
    if (only !== undefined && !only.some((start) => each.id.startsWith(start))) continue;
    const result = await runCase(each, probe, facts);
    results.push(result);
    options.onResult?.(result);
  }
  return results;
}

async function gather(probe: Probe, { model, otherToken }: JudgeOptions): Promise<Facts> {
  const document = asValue((await probe.ask("/.well-known/lmsp")).json);
  const models = asValue((await probe.ask(`${root}/models`)).json).at("data").list;
  const able = (capability: string): string | undefined =>
    models
      .find((each) => each.at("capabilities", capability).raw === true && each.at("state").text !== "unavailable")
      ?.at("id").text;
  const interfaces = document
    .at("interfaces")
    .list.flatMap((entry) => [[entry.at("kind").text ?? "", entry.at("url").text ?? ""] as const]);
  return {
    document,
    model: model ?? able("chat"),
    embeddingModel: able("embeddings"),
    otherToken,
    requiresToken: document.at("auth", "required").raw === true,
    tasks: new Set(document.at("features", "tasks").list.map((kind) => kind.text ?? "")),
    interfaces: new Map(interfaces),
  };
}
