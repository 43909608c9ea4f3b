import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Forked, forkProgram } from "./processes/fork.ts";
import { piecesOf } from "./processes/pieces.ts";
import { type Json, measured, waitFor } from "./service.ts";

/** Rounds of `kill -9`. */
const rounds = Number(process.env["PLENUM_TEST_KILLS"] ?? 4);
const atOnce = 32;

let home: string;
let service: Forked;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-durable-"));
  service = await forkProgram("durable", [home]);
});
afterAll(async () => {
  await service?.stop();
  await rm(home, { recursive: true, force: true });
});

/** Resolves when the service answers again after it was killed. */
async function killAndRestart(): Promise<void> {
  await service.kill();
  service = await forkProgram("durable", [home]);
}

async function json(path: string, init?: RequestInit): Promise<Json> {
  const answer = await fetch(service.url + path, init);
  const body = await answer.text();
  expect(answer.ok, `${path}: ${answer.status} ${body}`).toBe(true);
  return body === "" ? undefined : JSON.parse(body);
}

const send = (body: unknown, headers: Readonly<Record<string, string>> = {}): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(body),
});

/** One event as it came: its number and its bytes. */
interface Seen {
  readonly sequence: number;
  readonly type: string;
  readonly block: string;
}

/** A reader that comes back whenever it loses the service, to the place where it was, until the last event. */
class Reader {
  readonly #path: string;
  readonly seen: Seen[] = [];
  /** Connections it took. */
  connections = 0;
  readonly done: Promise<void>;

  constructor(path: string) {
    this.#path = path;
    this.done = this.#read();
  }

  async #read(): Promise<void> {
    while (!this.#hasEnded) {
      try {
        await this.#connect();
      } catch {
        await pause(20);
      }
    }
  }

  get #hasEnded(): boolean {
    return /(completed|failed|cancelled|incomplete|succeeded)$/.test(this.seen.at(-1)?.type ?? "");
  }

  async #connect(): Promise<void> {
    const last = this.seen.at(-1)?.sequence ?? 0;
    const headers: Record<string, string> = last === 0 ? {} : { "last-event-id": String(last) };
    const answer = await fetch(service.url + this.#path, { headers });
    if (answer.status !== 200 || answer.body === null) throw new Error(`${answer.status}`);
    this.connections += 1;
    let text = "";
    for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      this.seen.push(...readBlocks(blocks));
    }
  }
}

function readBlocks(blocks: readonly string[]): Seen[] {
  return blocks.flatMap((block) => {
    const [, sequence, type = ""] = /^id: (\d+)\nevent: (\S+)\n/.exec(block) ?? [];
    return sequence === undefined ? [] : [{ sequence: Number(sequence), type, block }];
  });
}

async function replay(path: string): Promise<Seen[]> {
  const answer = await fetch(service.url + path);
  expect(answer.status).toBe(200);
  return readBlocks((await answer.text()).split("\n\n"));
}

const isTerminal = ({ type }: Seen): boolean => /\.(completed|failed|cancelled|incomplete|succeeded)$/.test(type);

/** Without gap or repeat from 1 to the only terminal event, and byte for byte what is kept. */
async function expectWhole(reader: Reader, path: string): Promise<void> {
  await reader.done;
  expect(reader.seen.map(({ sequence }) => sequence)).toEqual(reader.seen.map((_event, index) => index + 1));
  expect(reader.seen.filter(isTerminal)).toHaveLength(1);
  expect(reader.seen).toEqual(await replay(path));
}

async function runsOf(prompt: string): Promise<number> {
  const text = await readFile(join(home, "runs"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line === prompt).length;
}

describe("kill -9", () => {
  it(
    `loses no accepted task, gives no number to other data, and leaves one result: ${rounds} rounds, ${atOnce} at once`,
    async () => {
      const attempts: number[] = [];
      let connections = 0;
      let refused = 0;
      for (let round = 0; round < rounds; round += 1) {
        const accepted = new Map<string, { readonly prompt: string; readonly reader: Reader }>();
        const begin = async (index: number): Promise<void> => {
          const prompt = `round ${round} task ${index}: ${20 + ((index * 7) % 60)}`;
          try {
            const answer = await fetch(`${service.url}/lmsp/v1/responses`, {
              ...send({ model: "m", input: prompt }, { prefer: "respond-async" }),
            });
            const body = JSON.parse(await answer.text());
            expect(answer.status, JSON.stringify(body)).toBe(202);
            accepted.set(body.id, { prompt, reader: new Reader(`/lmsp/v1/responses/${body.id}/events`) });
          } catch (error) {
            if (error instanceof TypeError || error instanceof SyntaxError) refused += 1;
            else throw error;
          }
        };
        const begun = Promise.all(Array.from({ length: atOnce }, (_none, index) => begin(index)));
        // At any moment from the first acceptance to the end of the last run.
        const enough = 1 + Math.floor(Math.random() * atOnce);
        await waitFor(() => (accepted.size >= enough ? true : undefined), 30_000);
        await pause(Math.random() * 600);
        await killAndRestart();
        if (round % 3 === 2) {
          await pause(Math.random() * 300);
          await killAndRestart();
        }
        await begun;
        for (const [id, { prompt, reader }] of accepted) {
          await expectWhole(reader, `/lmsp/v1/responses/${id}/events`);
          const response = await json(`/lmsp/v1/responses/${id}`);
          expect(response).toMatchObject({ id, status: "completed", background: true });
          expect(response.output.map((item: Json) => item.content[0].text)).toEqual([piecesOf(prompt).join("")]);
          const restarts = reader.seen.filter(({ type }) => type === "response.restarted").length;
          expect(response.attempt).toBe(restarts + 1);
          expect(await runsOf(prompt)).toBeGreaterThanOrEqual(1);
          attempts.push(response.attempt);
          connections += reader.connections;
        }
        const listed = await json("/lmsp/v1/tasks?kind=response&limit=1000");
        const ids: string[] = listed.data.map(({ id }: Json) => id);
        expect(new Set(ids).size).toBe(ids.length);
        expect([...accepted.keys()].filter((id) => !ids.includes(id))).toEqual([]);
      }
      expect(attempts.length).toBeGreaterThanOrEqual(rounds);
      measured("tasks accepted under kill -9, all of them completed", `${attempts.length} in ${rounds} rounds`);
      measured("of them run again", String(attempts.filter((attempt) => attempt > 1).length));
      measured("connections of their readers", String(connections));
      measured("requests without an answer", String(refused));
    },
    60_000 * Math.max(2, rounds),
  );

  it("lets a batch go on, without the lines that were done", async () => {
    const lines = Array.from({ length: 40 }, (_none, index) => `batch line ${index}: ${10 + (index % 5) * 10}`);
    const requests = lines
      .map((input, index) => JSON.stringify({ custom_id: `c${index}`, request: { model: "m", input } }))
      .join("\n");
    const { id } = await json("/lmsp/v1/tasks?kind=batch", {
      method: "POST",
      headers: { "content-type": "application/jsonl" },
      body: requests,
    });
    const path = `/lmsp/v1/tasks/${id}`;
    const reader = new Reader(`${path}/events`);
    const output = async (): Promise<string> => (await fetch(`${service.url}${path}/output`)).text();
    let before = "";
    for (const enough of [5, 15]) {
      before = await waitFor(async () => {
        const done = await output();
        return done.split("\n").length > enough ? done : undefined;
      }, 30_000);
      await killAndRestart();
      expect((await output()).startsWith(before)).toBe(true);
    }
    await expectWhole(reader, `${path}/events`);
    const task = await json(path);
    expect(task).toMatchObject({ state: "succeeded", attempt: 3, result: { lines: 40, failed: 0 } });
    const answered = (await output())
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(answered.map(({ custom_id: customId }) => customId)).toEqual(lines.map((_line, index) => `c${index}`));
    expect(answered.map(({ response }) => response.output[0].content[0].text)).toEqual(
      lines.map((line) => piecesOf(line).join("")),
    );
    const done = before.trimEnd().split("\n").length;
    for (const line of lines.slice(0, done)) expect(await runsOf(line), line).toBeLessThanOrEqual(2);
    let runs = 0;
    for (const line of lines) runs += await runsOf(line);
    measured("runs of the 40 lines of a batch over two kills", String(runs));
    expect(runs).toBeLessThanOrEqual(lines.length + 2 * 4);
  });

  it("ends a stored foreground stream as interrupted, and its readers hear of it wherever they were", async () => {
    const answer = await fetch(
      `${service.url}/lmsp/v1/responses`,
      send({ model: "m", input: "foreground: 500", store: true, stream: true }),
    );
    const id = answer.headers.get("x-lmsp-response-id");
    let text = "";
    const cut = (async () => {
      for await (const chunk of (answer.body ?? expect.unreachable()).pipeThrough(new TextDecoderStream()))
        text += chunk;
    })().catch(() => undefined);
    await waitFor(() => (text.split("\n\n").length > 100 ? true : undefined));
    await killAndRestart();
    await cut;
    const seen = readBlocks(text.split("\n\n").slice(0, -1));
    const response = await json(`/lmsp/v1/responses/${id}`);
    expect(response).toMatchObject({ status: "failed", problem: { type: "urn:lmsp:problem:interrupted" }, attempt: 1 });
    const kept = await replay(`/lmsp/v1/responses/${id}/events`);
    expect(kept.map(({ sequence }) => sequence)).toEqual(kept.map((_event, index) => index + 1));
    expect(kept.at(-1)?.type).toBe("response.failed");
    // What was made for the end: the item's two events and the terminal one.
    const common = Math.min(seen.length, kept.length - 3);
    expect(kept.slice(0, common)).toEqual(seen.slice(0, common));
    measured("events of a foreground stream that kill -9 took", String(seen.length - common));
    const said: string = response.output[0]?.content[0].text ?? "";
    expect(piecesOf("foreground: 500").join("").startsWith(said)).toBe(true);
    expect((await fetch(`${service.url}/lmsp/v1/responses/${id}/events?after=${kept.length}`)).status).toBe(204);
    for (const beyond of [kept.length + 1, kept.length + 1000]) {
      const rest = await replay(`/lmsp/v1/responses/${id}/events?after=${beyond}`);
      expect(rest).toEqual(kept.slice(-1));
    }
  });

  it("leaves what was not to be stored without text, and without events", async () => {
    const answer = await fetch(
      `${service.url}/lmsp/v1/responses`,
      send({ model: "m", input: "unstored: 2000", stream: true }),
    );
    const id = answer.headers.get("x-lmsp-response-id");
    const reader = answer.body?.getReader() ?? expect.unreachable();
    // Something of it is written once it has run for half a second.
    const begun = performance.now();
    while (performance.now() < begun + 900) expect((await reader.read()).done).toBe(false);
    await killAndRestart();
    await reader.cancel().catch(() => undefined);
    const response = await json(`/lmsp/v1/responses/${id}`);
    expect(response).toMatchObject({ status: "failed", problem: { type: "urn:lmsp:problem:interrupted" }, output: [] });
    expect((await fetch(`${service.url}/lmsp/v1/responses/${id}/events`)).status).toBe(410);
  });

  it("keeps the numbers and ids of a background stream of the OpenAI door", async () => {
    const prompt = "openai: 150";
    const events: Json[] = [];
    const read = async (answer: Response): Promise<void> => {
      let text = "";
      try {
        for await (const chunk of (answer.body ?? expect.unreachable()).pipeThrough(new TextDecoderStream())) {
          text += chunk;
          const blocks = text.split("\n\n");
          text = blocks.pop() ?? "";
          for (const block of blocks) {
            const [, data] = /^data: (.*)$/m.exec(block) ?? [];
            if (data !== undefined) events.push(JSON.parse(data));
          }
        }
      } catch {
        // It was killed.
      }
    };
    const first = read(
      await fetch(`${service.url}/v1/responses`, send({ model: "m", input: prompt, background: true, stream: true })),
    );
    await waitFor(() => (events.length > 50 ? true : undefined));
    await killAndRestart();
    await first;
    const { id } = events[0].response;
    const after = (): number => events.at(-1).sequence_number;
    const resume = async (): Promise<void> =>
      read(await fetch(`${service.url}/v1/responses/${id}?stream=true&starting_after=${after()}`));
    await resume();
    // The run that was cut ends with an error, the next one follows.
    const ended = events.at(-1);
    expect(ended).toMatchObject({ type: "error", code: "interrupted" });
    await resume();
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_event, index) => index));
    expect(events.at(-1)).toMatchObject({ type: "response.completed", response: { id, status: "completed" } });
    const again = events.slice(events.indexOf(ended) + 1);
    const deltas = again.filter(({ type }) => type === "response.output_text.delta").map(({ delta }) => delta);
    expect(deltas.join("")).toBe(piecesOf(prompt).join(""));
    const whole = [...events];
    events.length = 0;
    await read(await fetch(`${service.url}/v1/responses/${id}?stream=true`));
    expect(events).toEqual(again);
    events.length = 0;
    await read(await fetch(`${service.url}/v1/responses/${id}?stream=true&starting_after=${whole.length - 10}`));
    expect(events).toEqual(whole.slice(-9));
  });
});

describe("a stop in good order", () => {
  it("leaves tasks to the next start, and costs a batch no attempt", async () => {
    const lines = Array.from({ length: 20 }, (_none, index) => `good order ${index}: 40`);
    const batch = await json(
      "/lmsp/v1/tasks",
      send({ kind: "batch", requests: lines.map((input) => ({ model: "m", input })) }),
    );
    const running = await json("/lmsp/v1/responses", send({ model: "m", input: "in the end: 400", background: true }));
    const readers = [
      { path: `/lmsp/v1/tasks/${batch.id}/events` },
      { path: `/lmsp/v1/responses/${running.id}/events` },
    ].map(({ path }) => ({ path, reader: new Reader(path) }));
    await waitFor(() => (readers.every(({ reader }) => reader.seen.length > 2) ? true : undefined), 30_000);
    await service.stop();
    service = await forkProgram("durable", [home]);
    for (const { path, reader } of readers) await expectWhole(reader, path);
    expect(await json(`/lmsp/v1/tasks/${batch.id}`)).toMatchObject({
      state: "succeeded",
      attempt: 1,
      result: { lines: 20, failed: 0 },
    });
    expect(await json(`/lmsp/v1/responses/${running.id}`)).toMatchObject({ status: "completed", attempt: 2 });
  });
});
