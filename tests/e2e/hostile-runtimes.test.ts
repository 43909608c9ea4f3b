import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Fault, faultsOf, prompt, upstreamKey } from "../../packages/server/src/backends/shared/testing/faults.ts";
import { type Forked, forkProgram } from "./processes/fork.ts";
import type { ServiceCounts } from "./processes/service.ts";
import { type Json, measured } from "./service.ts";

/** How many requests the long runs make. Below 10,000 to keep the suite short. */
const rounds = Number(process.env["PLENUM_TEST_ROUNDS"] ?? 500);

const apis = ["openai", "ollama"] as const;
type Api = (typeof apis)[number];

/** Heavy faults run alone: they keep both processes from reading other answers within their time limits. */
const rows = (kind: "streams" | "embeddings", weight: "light" | "heavy") =>
  apis.flatMap((api) =>
    faultsOf(api, kind)
      .filter(({ isHeavy = false }) => isHeavy === (weight === "heavy"))
      .map((fault) => [api, fault.name, fault] as const),
  );

const messages = [{ role: "user", content: prompt }];
const modelOf = (api: Api, model: string): string => `by-${api}/${model}`;

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Sends a body and reads the answer whole. `leaveAt`: goes away when so many milliseconds have passed. */
function send(url: string, body: object, leaveAfterMs?: number): Promise<Answer> {
  return new Promise((resolve) => {
    const sent = open(url, body, (answer) => {
      let text = "";
      answer.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      answer.on("close", () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    sent.on("error", () => resolve({ status: 0, text: "" }));
    if (leaveAfterMs !== undefined) setTimeout(() => sent.destroy(), leaveAfterMs);
  });
}

function open(url: string, body: object, onAnswer: (answer: IncomingMessage) => void): ClientRequest {
  const headers = { "content-type": "application/json" };
  return request(url, { method: "POST", agent: false, headers }, onAnswer).end(JSON.stringify(body));
}

describe("one at a time on the only slot of its model", () => {
  let upstream: Forked;
  let service: Forked;
  beforeAll(async () => {
    upstream = await forkProgram("upstream");
    service = await forkProgram("service", [upstream.url, "1", "debug"]);
  });
  afterAll(async () => {
    await service?.stop();
    await upstream?.stop();
  });

  it.concurrent.each(rows("streams", "light"))("%s: %s", (api, _name, fault) => checkStreams(api, fault));
  it.each(rows("streams", "heavy"))("%s: %s", (api, _name, fault) => checkStreams(api, fault));
  it.concurrent.each(rows("embeddings", "light"))("%s, embeddings: %s", (api, _name, fault) =>
    checkVectors(api, fault),
  );
  it.each(rows("embeddings", "heavy"))("%s, embeddings: %s", (api, _name, fault) => checkVectors(api, fault));

  /** Each request needs the slot that the one before it had. */
  async function checkStreams(api: Api, fault: Fault): Promise<void> {
    const model = modelOf(api, fault.model);
    const whole = await send(`${service.url}/lmsp/v1/responses`, { model, input: prompt });
    const streamed = await send(`${service.url}/lmsp/v1/responses`, { model, input: prompt, stream: true });
    const openai = await send(`${service.url}/v1/chat/completions`, { model, messages, stream: true });
    const ollama = await send(`${service.url}/api/chat`, { model, messages, stream: false });
    for (const { text } of [whole, streamed, openai, ollama]) expect(text).not.toContain(upstreamKey);
    if (fault.code === "completed") {
      expect(JSON.parse(whole.text)).toMatchObject({ status: "completed" });
      expect(streamed.text).toContain("response.completed");
      expect(openai.text).toMatch(/data: \[DONE\]\s*$/);
      expect(ollama.status).toBe(200);
      return;
    }
    checkProblem(problemOf(whole), fault, `by-${api}`);
    checkProblem(problemOf(streamed), fault, `by-${api}`);
    expect(openai.text).toMatch(/"error":\{/);
    expect(ollama.status).toBeGreaterThanOrEqual(400);
  }

  async function checkVectors(api: Api, fault: Fault): Promise<void> {
    const body = { model: modelOf(api, `embed-${fault.model}`), input: prompt };
    const openai = await send(`${service.url}/v1/embeddings`, body);
    const ollama = await send(`${service.url}/api/embed`, body);
    if (fault.code === "completed") {
      for (const { status } of [openai, ollama]) expect(status).toBe(200);
      return;
    }
    for (const { status, text } of [openai, ollama]) {
      expect(status).toBeGreaterThanOrEqual(400);
      expect(text).not.toContain(upstreamKey);
      const { error } = JSON.parse(text);
      const said = typeof error === "string" ? error : error.message;
      // Ollama's own words for a full server are one fixed sentence.
      if (fault.code !== "overloaded" || typeof error !== "string") expect(said).toContain(`by-${api}`);
      expect(said).toMatch(fault.detail ?? /./);
    }
  }

  it("the log holds neither the key nor a prompt", () => {
    expect(service.output()).toContain("response failed");
    const lines = service.output().split("\n");
    expect(lines.filter((line) => line.includes(upstreamKey) || line.includes(prompt))).toEqual([]);
  });
});

/** The problem of an answer, of a response that failed, or of the last event of a stream. */
function problemOf({ text }: Answer): Json {
  const last = text.startsWith("{") ? text : (text.trim().split("\ndata: ").at(-1) ?? "");
  const body = JSON.parse(last);
  return body.response?.problem ?? body.problem ?? body;
}

function checkProblem(problem: Json, { code, detail }: Fault, runtime: string): void {
  expect(problem).toMatchObject({ type: `urn:lmsp:problem:${code}`, detail: expect.stringMatching(detail ?? /./) });
  expect(problem.detail).toContain(runtime);
}

describe("thousands at once", () => {
  let upstream: Forked;
  let service: Forked;
  beforeAll(async () => {
    upstream = await forkProgram("upstream");
    service = await forkProgram("service", [upstream.url]);
  });
  afterAll(async () => {
    await service?.stop();
    await upstream?.stop();
  });

  const counts = (): Promise<ServiceCounts> => service.ask("counts");

  /** Requests of every fault through every door, whole, streamed and left early. */
  function* mixedRequests(): Generator<() => Promise<Answer>> {
    for (let round = 0; ; round += 1) {
      for (const api of apis) {
        const heavyToo = round % 25 === 12;
        for (const { model: name, isHeavy } of faultsOf(api, "streams")) {
          if (isHeavy && !heavyToo) continue;
          const model = modelOf(api, name);
          const leave = round % 4 === 3 ? 5 : undefined;
          const stream = round % 2 === 0;
          yield () => send(`${service.url}/v1/chat/completions`, { model, messages, stream }, leave);
          yield () => send(`${service.url}/api/chat`, { model, messages, stream: !stream }, leave);
          yield () => send(`${service.url}/lmsp/v1/responses`, { model, input: prompt, stream }, leave);
        }
        for (const { model: name, isHeavy } of faultsOf(api, "embeddings")) {
          if (isHeavy && !heavyToo) continue;
          yield () => send(`${service.url}/v1/embeddings`, { model: modelOf(api, `embed-${name}`), input: prompt });
        }
      }
    }
  }

  async function run(count: number): Promise<number> {
    const requests = mixedRequests();
    let left = count;
    let answered = 0;
    const worker = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        const next = requests.next();
        if (next.done !== true && (await next.value()).status > 0) answered += 1;
      }
    };
    await Promise.all(Array.from({ length: 50 }, worker));
    return answered;
  }

  it(`${rounds} faults leave nothing behind`, { timeout: 900_000 }, async () => {
    await run(400);
    const before = await counts();
    const startedAt = performance.now();
    const answered = await run(rounds / 2);
    const half = await counts();
    const all = answered + (await run(rounds / 2));
    measured(`${rounds} faults`, `${all} answered, ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
    const after = await counts();
    measured(`heap after each half of ${rounds} faults`, `${mb(half.heapBytes)}, ${mb(after.heapBytes)}`);
    report("faults", before, after);
    checkEqual(before, after);
  });

  it(`${rounds} streams opened and closed leave nothing behind`, { timeout: 900_000 }, async () => {
    const cycle = async (count: number): Promise<void> => {
      let left = count;
      const worker = async (): Promise<void> => {
        while (left > 0) {
          left -= 1;
          const api = apis[left % 2] ?? "openai";
          await openAndLeave(`${service.url}/v1/chat/completions`, modelOf(api, "endless-stream"));
        }
      };
      await Promise.all(Array.from({ length: 12 }, worker));
    };
    await cycle(200);
    const before = await counts();
    const heaps: string[] = [];
    for (let part = 0; part < 4; part += 1) {
      await cycle(rounds / 4);
      heaps.push(mb((await counts()).heapBytes));
    }
    const after = await counts();
    measured(`heap after each quarter of ${rounds} streams`, heaps.join(", "));
    report("streams", before, after);
    checkEqual(before, after);
  });
});

/** Opens a stream, reads its first bytes and goes away. */
function openAndLeave(url: string, model: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = open(url, { model, messages, stream: true }, (answer) => {
      answer.once("data", () => sent.destroy());
      answer.once("close", () => resolve());
      answer.on("error", () => undefined);
    });
    sent.on("error", (error) => (sent.destroyed ? resolve() : reject(error)));
  });
}

const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

function report(what: string, before: ServiceCounts, after: ServiceCounts): void {
  measured(`${what}: heap before / after`, `${mb(before.heapBytes)} / ${mb(after.heapBytes)}`);
  measured(`${what}: resident before / after`, `${mb(before.residentBytes)} / ${mb(after.residentBytes)}`);
  measured(`${what}: handles before / after`, `${JSON.stringify(before.handles)} / ${JSON.stringify(after.handles)}`);
}

function checkEqual(before: ServiceCounts, after: ServiceCounts): void {
  expect(after).toMatchObject({ running: 0, queued: 0, connections: 0, logBytes: 0, responses: 0 });
  for (const name of new Set([...Object.keys(before.handles), ...Object.keys(after.handles)])) {
    // The service's own timers come and go by a few.
    expect(after.handles[name] ?? 0, name).toBeLessThanOrEqual((before.handles[name] ?? 0) + 3);
  }
  expect(after.heapBytes - before.heapBytes).toBeLessThan(10e6);
}
