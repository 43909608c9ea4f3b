import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SessionErrorCode } from "@plenum/nnrp";
import { connect } from "@plenum/nnrp/node";
import { createProfileClient, nnrpFetch } from "@plenum/profile";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chatModel, embeddingModel, endless, type RunningService, skipReason, startService } from "../e2e/service.ts";
import { noPeer, runPeerClient } from "./nnrp-peer.ts";

/** A running service with real models, and NNRP clients: the real peer's, and our own. */

const folder = mkdtempSync(join(tmpdir(), "nnrp-door-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const messages = [{ role: "user" as const, content: "Say hello." }];
const bounded = { model: chatModel, messages, max_tokens: 8, temperature: 0 };
const tools = [
  {
    type: "function",
    function: {
      name: "get_weather",
      parameters: { type: "object", properties: { city: { enum: ["Paris", "Rome"] } }, required: ["city"] },
    },
  },
];

const requests = {
  chat: { operation: "chat.completions.create", body: bounded },
  stream: { operation: "chat.completions.create", body: { ...bounded, stream: true } },
  slow: {
    operation: "chat.completions.create",
    body: { model: chatModel, messages, stream: true, max_tokens: 1500, ...endless },
  },
  tools: {
    operation: "chat.completions.create",
    body: { ...bounded, max_tokens: 64, stream: true, tools, tool_choice: "required" },
  },
  diagnostics: {
    operation: "chat.completions.create",
    body: { ...bounded, stream: true },
    nnrp: { diagnostics: true, openai_chunk: true },
  },
  response: {
    operation: "responses.create",
    body: { model: chatModel, input: "Say hello.", max_output_tokens: 8, stream: true },
  },
  models: { operation: "models.list", body: {} },
  embeddings: { operation: "embeddings.create", body: { model: embeddingModel, input: ["a", "b"] } },
  unknownModel: { operation: "chat.completions.create", body: { ...bounded, model: "nope" } },
  unknownOperation: { operation: "images.generate", body: {} },
};
const files = Object.fromEntries(
  Object.entries(requests).map(([name, request]) => {
    const path = join(folder, `${name}.json`);
    writeFileSync(path, JSON.stringify({ request_id: `req_${name}`, ...request }));
    return [name, path];
  }),
) as Record<keyof typeof requests, string>;

describe.skipIf(skipReason !== undefined)(
  `NNRP against plenum serve${skipReason ? `, skipped: ${skipReason}` : ""}`,
  () => {
    let service: RunningService;
    const endpoints: Record<string, string> = {};

    beforeAll(async () => {
      const args = ["--nnrp", "tcp://127.0.0.1:0", "--nnrp", `unix://${folder}/plenum.sock`];
      service = await startService({ args });
      const { body } = await service.json("/.well-known/lmsp");
      for (const { kind, transport, url } of body.interfaces) {
        if (kind === "nnrp") endpoints[transport] = url.replace(/^nnrp:/, "tcp:");
      }
    });
    afterAll(async () => {
      expect(await service?.stop()).toBe(0);
    });

    const isIdle = async () => {
      while ((await service.metric("plenum_running")) > 0) await new Promise((done) => setTimeout(done, 20));
    };

    describe.skipIf(noPeer !== undefined)(`the real peer's client${noPeer ? `, skipped: ${noPeer}` : ""}`, () => {
      const at = (carrier: string) => endpoints[carrier] ?? "";

      describe.each(["tcp", "websocket", "ipc"])("over %s", (carrier) => {
        it.each(["chat", "stream", "tools", "diagnostics", "response", "models", "embeddings"] as const)(
          "%s",
          async (name) => {
            const { code, outcomes } = await runPeerClient(at(carrier), [files[name]]);
            expect([code, outcomes]).toEqual([0, ["response.completed"]]);
          },
        );

        it.each(["cancel", "abort", "frame"])("%s in the middle of a stream", async (kind) => {
          const words = ["--cancel-after", "2", "--cancel-kind", kind];
          const { code } = await runPeerClient(at(carrier), [files.slow], words);
          // After its FRAME_CANCEL the peer's client takes what was on its way for an error of the session.
          expect(kind === "frame" ? [0, 2] : [0]).toContain(code);
          await isIdle();
        });

        it("several requests at once in one session", async () => {
          const names = ["chat", "stream", "models", "embeddings"] as const;
          const { code, outcomes } = await runPeerClient(
            at(carrier),
            names.map((name) => files[name]),
            ["--concurrent"],
          );
          expect([code, outcomes]).toEqual([0, names.map(() => "response.completed")]);
        });
      });

      it.each([
        ["--deadline-ms", []],
        ["--expire-ms", ["--schedule-flags", "3"]],
      ])("%s stops a stream", async (what, words) => {
        const { code, outcomes } = await runPeerClient(at("tcp"), [files.slow], [what, "300", ...words]);
        expect([code, outcomes]).toEqual([0, ["drop"]]);
        await isIdle();
      });

      it("a priority with the request shows in the response", async () => {
        const words = ["--priority", "0", "--priority-class", "background"];
        const { code } = await runPeerClient(at("tcp"), [files.chat], words);
        expect(code).toBe(0);
        const { body } = await service.json("/lmsp/v1/responses?door=nnrp&limit=1");
        // The update comes behind the submit: it counts where it is there when the response is made.
        expect([4, -4]).toContain(body.data[0].priority);
      });

      it.each([
        ["unknownModel", "unsupported_model"],
        ["unknownOperation", "unsupported_operation"],
      ] as const)("%s is an error, and the session goes on", async (name, error) => {
        const { code, outcomes, lines } = await runPeerClient(at("tcp"), [files[name], files.models]);
        expect([code, outcomes]).toEqual([0, ["response.error", "response.completed"]]);
        expect(JSON.stringify(lines)).toContain(error);
      });

      it("a session that is refused", async () => {
        const { code, lines } = await runPeerClient(at("tcp"), [files.chat], ["--session-profile", "1"]);
        expect(code).toBe(2);
        const status = expect.objectContaining({ protocol_error_code: SessionErrorCode.profileUnsupported });
        expect(lines).toContainEqual(expect.objectContaining({ status }));
      });

      it("several clients beside each other", async () => {
        const runs = await Promise.all(
          ["tcp", "websocket", "ipc"].map((carrier) => runPeerClient(at(carrier), [files.stream, files.response])),
        );
        expect(runs.map(({ code }) => code)).toEqual([0, 0, 0]);
      });
    });

    describe.each(["tcp", "websocket", "ipc"])("our own client over %s", (carrier) => {
      const open = async () => connect(endpoints[carrier] ?? "");

      it("runs several sessions at once, and cancels one", async () => {
        const connection = await open();
        const [first, second] = [
          await connection.openSession(),
          await connection.openSession({ priority: "background" }),
        ];
        const endlessly = createProfileClient(first).chat.stream(requests.slow.body);
        const other = createProfileClient(second).chat.create(bounded);
        for await (const event of endlessly) if (event.type === "response.output_text.delta") break;
        expect(await other).toMatchObject({ object: "chat.completion" });
        await isIdle();
        await connection.close();
      });

      it("carries OpenAI's own SDK", async () => {
        const fetch = nnrpFetch(open);
        const openai = new OpenAI({ baseURL: "http://nnrp/v1", apiKey: "none", fetch });
        const stream = await openai.chat.completions.create({ ...bounded, stream: true });
        let text = "";
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
        const whole = await openai.chat.completions.create(bounded);
        expect(text).toBe(whole.choices[0]?.message.content);
        await fetch.close();
      });

      it("resumes a session that lost its connection, once", async () => {
        const lost = await open();
        const { resumeTicket } = await lost.openSession({ allowResume: true });
        if (resumeTicket === undefined) throw new Error("no ticket came");
        lost.destroy();
        await lost.closed;
        const again = await open();
        const session = await again.openSession({ resume: resumeTicket });
        expect(session.resumed).toBe(true);
        expect(await createProfileClient(session).models.list()).toMatchObject({ object: "list" });
        await expect((await open()).openSession({ resume: resumeTicket })).rejects.toMatchObject({
          nnrpCode: SessionErrorCode.resumeRejected,
        });
        await again.close();
      });
    });

    it("leaves nothing running", async () => {
      await isIdle();
      expect(await service.metric("plenum_responses_active")).toBe(0);
    });
  },
);
