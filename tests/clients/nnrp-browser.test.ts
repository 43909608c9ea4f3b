import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { connect } from "@plenum/nnrp/browser";
import type { createProfileClient, nnrpFetch } from "@plenum/profile";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  chatModel,
  embeddingModel,
  endless,
  type Json,
  measured,
  type RunningService,
  skipReason,
  startService,
  waitFor,
} from "../e2e/service.ts";
import { noChromium, type OpenPage, openPage } from "./chromium.ts";

/** What the page holds. */
declare const plenum: {
  readonly connect: typeof connect;
  readonly createProfileClient: typeof createProfileClient;
  readonly nnrpFetch: typeof nnrpFetch;
};

const reason = noChromium ?? skipReason;
const title = `NNRP from a page in Chromium${reason === undefined ? "" : `, skipped: ${reason}`}`;
const token = "token-of-the-page";

describe.skipIf(reason !== undefined)(title, () => {
  const folder = mkdtempSync(join(tmpdir(), "plenum-nnrp-browser-"));
  let service: RunningService;
  let open: OpenPage;
  let endpoint: string;

  beforeAll(async () => {
    const file = join(folder, "plenum.config.yaml");
    const sha256 = createHash("sha256").update(token).digest("hex");
    const tokens = [{ principal: "page", token_sha256: sha256, scopes: ["read", "infer"] }];
    writeFileSync(file, JSON.stringify({ auth: { tokens } }));
    service = await startService({ args: ["--config", file] });
    endpoint = `${service.url.replace("http", "ws")}/nnrp`;
    open = await openPage();
    console.log(`Chromium ${open.version}`);
  });
  afterAll(async () => {
    await open?.close();
    await service?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A page can set no header of a WebSocket, so its token is in the address. */
  const withToken = () => `${endpoint}?token=${encodeURIComponent(token)}`;

  it("lists models", async () => {
    const ids = await open.page.evaluate(async (address) => {
      const connection = await plenum.connect(address);
      const client = plenum.createProfileClient(await connection.openSession());
      const { data } = await client.models.list();
      await connection.close();
      return data.map(({ id }) => id);
    }, withToken());
    expect(ids).toEqual(expect.arrayContaining([chatModel, embeddingModel]));
  });

  it("streams a chat, event by event", async () => {
    const { pieces, whole, capabilities } = await open.page.evaluate(
      async ([address, model]) => {
        const connection = await plenum.connect(address);
        const client = plenum.createProfileClient(await connection.openSession());
        const document = await client.loadCapabilities();
        const stream = client.chat.stream({
          model,
          messages: [{ role: "user", content: "Say hello." }],
          max_tokens: 16,
          temperature: 0,
        });
        const texts: string[] = [];
        for await (const event of stream) {
          if (event.type === "response.output_text.delta") texts.push(event.delta);
        }
        const answer = await stream.final();
        await connection.close();
        return {
          pieces: texts,
          whole: answer.choices[0]?.message.content,
          capabilities: document?.compatibility_levels,
        };
      },
      [withToken(), chatModel] as const,
    );
    expect(pieces.length).toBeGreaterThan(3);
    expect(pieces.join("")).toBe(whole);
    expect(capabilities).toEqual([1, 2, 3]);
  });

  it("cancels in the middle of a stream, and the service stops", async () => {
    const listed = async (status: string): Promise<Json[]> => {
      const headers = { authorization: `Bearer ${token}` };
      return (await service.json(`/lmsp/v1/responses?door=nnrp&status=${status}`, { headers })).body.data;
    };
    expect(await listed("cancelled")).toEqual([]);
    const { deltas, end, ms } = await open.page.evaluate(
      async ([address, model, unending]) => {
        const connection = await plenum.connect(address);
        const client = plenum.createProfileClient(await connection.openSession());
        const call = client.call("chat.completions.create", {
          ...unending,
          model,
          messages: [{ role: "user", content: "Write a very long story." }],
          stream: true,
          max_tokens: 4_000,
        });
        let seen = 0;
        let cancelledAt = 0;
        for await (const event of call) {
          if (event.type !== "response.output_text.delta") continue;
          seen += 1;
          if (seen !== 5) continue;
          cancelledAt = performance.now();
          call.cancel();
        }
        const took = performance.now() - cancelledAt;
        await connection.close();
        return { deltas: seen, end: call.end?.event.type, ms: took };
      },
      [withToken(), chatModel, endless] as const,
    );
    expect(end).toBe("response.cancelled");
    expect(deltas).toBeGreaterThanOrEqual(5);
    await waitFor(async () => (await listed("cancelled")).length === 1 && (await listed("in_progress")).length === 0);
    measured("nnrp in Chromium: cancel to the end", `${ms.toFixed(1)} ms`);
  });

  it("has a fetch for SDKs", async () => {
    const { status, type, body } = await open.page.evaluate(
      async ([address, model]) => {
        const overNnrp = plenum.nnrpFetch(() => plenum.connect(address));
        const answer = await overNnrp("http://over-nnrp/v1/chat/completions", {
          method: "POST",
          body: JSON.stringify({
            model,
            messages: [{ role: "user", content: "Say hello." }],
            max_tokens: 4,
            stream: true,
          }),
        });
        const text = await answer.text();
        await overNnrp.close();
        return { status: answer.status, type: answer.headers.get("content-type"), body: text };
      },
      [withToken(), chatModel] as const,
    );
    expect([status, type]).toEqual([200, expect.stringContaining("text/event-stream")]);
    expect(body.split("\n\n").slice(-2)).toEqual(["data: [DONE]", ""]);
  });

  it.each([
    ["no token", ""],
    ["a wrong token", "?token=wrong"],
  ])("is told of %s", async (_, query) => {
    const told = await open.page.evaluate(async (address) => {
      const connection = await plenum.connect(address);
      try {
        await plenum.createProfileClient(await connection.openSession()).models.list();
        return "an answer";
      } catch (error) {
        return String(error);
      } finally {
        await connection.close();
      }
    }, endpoint + query);
    expect(told).toMatch(/token/i);
  });

  it("leaves no error in the page", () => {
    expect(open.errors).toEqual([]);
  });
});
