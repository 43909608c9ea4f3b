import { execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  chatModel,
  cleanEnv,
  endless,
  measured,
  post,
  type RunningService,
  skipReason,
  starterModelFile,
  startService,
  waitFor,
} from "./service.ts";

const command = fileURLToPath(new URL("../../packages/cli/bin/plenum.mjs", import.meta.url));

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function run(file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  return new Promise((done) => {
    execFile(file, args, { env: { ...cleanEnv(), ...env } }, (error, out, err) => {
      done({ code: error === null ? 0 : typeof error.code === "number" ? error.code : 1, out, err });
    });
  });
}
const plenum = (args: readonly string[], env?: NodeJS.ProcessEnv) => run(process.execPath, [command, ...args], env);

/** Without them a small model may fill its whole context. */
const short = ["--max-tokens", "24", "--temperature", "0"];

describe.skipIf(skipReason !== undefined)("the command line", () => {
  let service: RunningService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service?.stop());

  it("plenum models lists what the service has", async () => {
    const table = await plenum(["models", "--url", service.url]);
    expect(table).toMatchObject({ code: 0, out: expect.stringContaining(chatModel) });
    const json = await plenum(["models", "--url", service.url, "--json"]);
    expect(JSON.parse(json.out)).toBeDefined();
  });

  it("plenum run streams an answer", async () => {
    const { code, out } = await plenum(["run", "smollm2", "Say hello.", ...short, "--url", service.url]);
    expect(code).toBe(0);
    expect(out.trim().length).toBeGreaterThan(2);
  });

  it("plenum run says which models there are when the name is wrong", async () => {
    const { code, err } = await plenum(["run", "nope", "Hi", "--url", service.url]);
    expect(code).not.toBe(0);
    expect(err).toContain(chatModel);
  });

  it("plenum run starts a service for the time of the command when none answers", async () => {
    const home = await mkdtemp(join(tmpdir(), "plenum-run-"));
    const models = join(home, "models");
    await mkdir(models);
    await symlink(starterModelFile ?? "", join(models, "smollm2-135m-instruct-q4_1.gguf"));
    const { code, out, err } = await plenum(["run", "smollm2", "Say hello.", ...short], {
      PLENUM_HOME: home,
      PLENUM_PORT: "1",
      PLENUM_URL: "",
    });
    expect(code, err).toBe(0);
    expect(out.trim().length).toBeGreaterThan(2);
    await rm(home, { recursive: true, force: true });
  });

  it("curl chats, and resumes a native stream with Last-Event-ID", async () => {
    const json = ["-H", "content-type: application/json"];
    const chat = await run("curl", [
      "-s",
      `${service.url}/v1/chat/completions`,
      ...json,
      "-d",
      '{"model":"smollm2","messages":[{"role":"user","content":"Hi"}],"max_tokens":4}',
    ]);
    expect(JSON.parse(chat.out).choices).toHaveLength(1);

    const body = JSON.stringify({
      model: "smollm2",
      input: "Count from one to thirty.",
      stream: true,
      output: { max_tokens: 60 },
      sampling: { temperature: 0 },
    });
    // The first reader is killed in the middle.
    const first = spawn("curl", ["-sN", "-D", "-", `${service.url}/lmsp/v1/responses`, ...json, "-d", body]);
    let seen = "";
    await new Promise<void>((done) => {
      first.stdout.on("data", (chunk: Buffer) => {
        seen += chunk.toString();
        if (/^id: 15$/m.test(seen)) first.kill("SIGKILL");
      });
      first.on("close", () => done());
    });
    const id = /x-lmsp-response-id: (\S+)/i.exec(seen)?.[1];
    const whole = seen.slice(seen.indexOf("\r\n\r\n") + 4, seen.lastIndexOf("\n\n") + 2);
    const last = [...whole.matchAll(/^id: (\d+)$/gm)].at(-1)?.[1] ?? "";
    const rest = await run("curl", [
      "-sN",
      "-H",
      `Last-Event-ID: ${last}`,
      `${service.url}/lmsp/v1/responses/${id}/events`,
    ]);
    const replay = await run("curl", ["-sN", `${service.url}/lmsp/v1/responses/${id}/events`]);
    const numbers = [...(whole + rest.out).matchAll(/^id: (\d+)$/gm)].map(([, number]) => Number(number));
    expect(numbers).toEqual(numbers.map((_number, index) => index + 1));
    const logged = (text: string): string =>
      text
        .split("\n\n")
        .filter((block) => block.includes("id: "))
        .map((block) => block.slice(block.indexOf("id: ")))
        .join("\n\n");
    expect(logged(whole + rest.out)).toBe(logged(replay.out));
  });
});

describe("plenum serve", () => {
  it("says in one sentence that a port is in use, with the flag that mends it", async () => {
    const service = await startService({ models: [], waitUntilReady: false });
    const port = new URL(service.url).port;
    const { code, err } = await plenum(["serve", "--port", port, "--no-starter-model"]);
    expect(code).toBe(1);
    expect(err.trim().split("\n")).toHaveLength(1);
    expect(err).toContain("--port");
    await service.stop();
  });

  it("listens at once, is ready later, and stops on a signal", async () => {
    const beganAt = performance.now();
    const service = await startService({ waitUntilReady: false });
    measured("from start to listening", `${(performance.now() - beganAt).toFixed(0)} ms`);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    expect([200, 503]).toContain((await fetch(`${service.url}/readyz`)).status);
    expect(await service.stop()).toBe(0);
  });

  it.skipIf(skipReason !== undefined)("lets requests of every door wait while the first model loads", async () => {
    const service = await startService({ waitUntilReady: false });
    const messages = [{ role: "user", content: "Hi" }];
    const asked = [
      ["/lmsp/v1/responses", { model: "smollm2", input: "Hi", output: { max_tokens: 3 } }],
      ["/v1/chat/completions", { model: "smollm2", messages, max_tokens: 3 }],
      ["/api/chat", { model: "smollm2", messages, options: { num_predict: 3 }, stream: false }],
      ["/v1/embeddings", { model: "all-minilm", input: "Hi" }],
    ] as const;
    const beganAt = performance.now();
    const answers = await Promise.all(asked.map(([path, body]) => service.json(path, post(body))));
    measured(
      "four answers through three doors, sent before the model was loaded",
      `${(performance.now() - beganAt).toFixed(0)} ms`,
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(answers[0]?.body.timings.load).toBeGreaterThan(0);
    await service.stop();
  });

  it("is never open to a network: it makes the first token where only its owner reads it", async () => {
    const service = await startService({ args: ["--host", "0.0.0.0"], models: [], waitUntilReady: false });
    try {
      const file = await waitFor(() => /The first token, with every right, is in (\S+)/.exec(service.output())?.[1]);
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      const token = (await readFile(file, "utf8")).trim();
      expect(service.output()).not.toContain(token);
      const asked = (headers: Record<string, string>) => fetch(`${service.url}/v1/models`, { headers });
      expect((await asked({})).status).toBe(401);
      expect((await asked({ authorization: `Bearer ${token}` })).status).toBe(200);
    } finally {
      await service.stop();
    }
  });

  it.skipIf(skipReason !== undefined)(
    "lets a running answer finish when it is told to stop, and says that it drains",
    async () => {
      const service = await startService();
      const messages = [{ role: "user", content: "Write a story." }];
      const chat = { model: "smollm2", messages, max_tokens: 200, ...endless };
      const whole = service.json("/v1/chat/completions", post(chat));
      const streamed = fetch(`${service.url}/v1/chat/completions`, post({ ...chat, stream: true })).then((answer) =>
        answer.text(),
      );
      await new Promise((done) => setTimeout(done, 300));
      const stopped = service.stop();
      await new Promise((done) => setTimeout(done, 100));
      const late = await service.json("/v1/chat/completions", post(chat));
      expect(late.status).toBe(503);
      expect(late.body.error.message).toMatch(/stopping/);
      expect((await fetch(`${service.url}/readyz`)).status).toBe(503);
      expect((await whole).body.choices).toHaveLength(1);
      expect(await streamed).toMatch(/data: \[DONE\]\n\n$/);
      expect(await stopped).toBe(0);
    },
  );
});
