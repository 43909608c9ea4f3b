import { testSha256 } from "@plenum/core/testing";
import { SessionErrorCode } from "@plenum/nnrp";
import { createProfileClient } from "@plenum/profile";
import { describe, expect, it } from "vitest";
import { callDoor } from "../shared/testing/call-door.ts";
import { type Bench, chat, envelope, read, setUp } from "./testing/set-up.ts";

const tokens = [
  { principal: "ann", sha256: testSha256("right"), scopes: ["read", "infer"] as const },
  { principal: "bob", sha256: testSha256("other"), scopes: ["read"] as const, models: ["e-*"] },
];
const closed = (): Bench => setUp({ tokens });
const block = (text: string) => new TextEncoder().encode(text);
const upgrade = (target: string, headers: Readonly<Record<string, string>> = {}) => ({ upgrade: { target, headers } });

describe("a token", () => {
  it.each([
    ["of the upgrade's header", upgrade("/nnrp", { authorization: "Bearer right" })],
    ["of the upgrade's query", upgrade("/nnrp?token=right")],
    ["of the hello", { authBlock: block("right") }],
    ["of the hello, as a header has it", { authBlock: block("Bearer right") }],
  ])("%s holds for the session's requests", async (_name, connecting) => {
    const session = await closed().session({}, connecting);
    expect(await read(session.submit({ body: chat() }))).toMatchObject({ terminal: { type: "response.completed" } });
  });

  it("of the session's opening goes before the hello's", async () => {
    const session = await closed().session({ authBlock: block("right") }, { authBlock: block("other") });
    expect(await read(session.submit({ body: chat() }))).toMatchObject({ terminal: { type: "response.completed" } });
  });

  it.each([
    ["of the upgrade's header", {}, upgrade("/nnrp", { authorization: "Bearer wrong" })],
    ["of the upgrade's query", {}, upgrade("/nnrp?token=wrong")],
    ["of the hello", {}, { authBlock: block("wrong") }],
    ["of the session's opening", { authBlock: block("wrong") }, {}],
  ])("%s that is wrong refuses the session", async (_name, session, connecting) => {
    await expect(closed().session(session, connecting)).rejects.toMatchObject({
      code: "session-rejected",
      nnrpCode: SessionErrorCode.authFailed,
      message: expect.stringContaining("The token is not known here"),
    });
  });

  it.each([
    ["none", undefined, 401, "invalid_api_key"],
    ["a wrong one", "Bearer wrong", 401, "invalid_api_key"],
    ["no bearer", "Basic right", 401, "invalid_api_key"],
    ["one without the scope", "Bearer other", 403, "forbidden"],
  ])("of a request: %s", async (_name, authorization, status, code) => {
    const bench = closed();
    const session = await bench.session();
    const { terminal, end } = await read(
      session.submit({ body: chat({}, authorization === undefined ? {} : { authorization }) }),
    );
    expect(terminal).toMatchObject({
      type: "response.error",
      error: { code, message: expect.stringMatching(/token/) },
    });
    expect(end).toMatchObject({ status });
    expect(bench.backend.requests).toEqual([]);
    // The session goes on.
    expect(await read(session.submit({ body: chat({}, { authorization: "Bearer right" }) }))).toMatchObject({
      end: { status: 200 },
    });
  });

  it("decides about models, and owns what it made", async () => {
    const bench = closed();
    const of = async (token: string) =>
      createProfileClient(await bench.session(), { authorization: `Bearer ${token}` });
    const ann = await of("right");
    const bob = await of("other");
    expect((await ann.models.list()).data.map(({ id }) => id)).toEqual(["m-tiny", "e-tiny"]);
    expect((await bob.models.list()).data.map(({ id }) => id)).toEqual(["e-tiny"]);
    const { id } = await ann.chat.create({ model: "m-tiny", messages: [{ role: "user", content: "Hi" }] });
    const follow = async (client: typeof ann) => {
      const call = client.responses.follow({ id: String(id) });
      for await (const _ of call);
      return call.end?.event.type;
    };
    expect([await follow(ann), await follow(bob)]).toEqual(["response.completed", "response.error"]);
  });
});

it("where there are none, any will do", async () => {
  const session = await setUp().session({}, { authBlock: block("dummy") });
  const submitted = session.submit({ body: chat({}, { authorization: "Bearer another" }) });
  expect(await read(submitted)).toMatchObject({ end: { status: 200 } });
});

describe("the capability document", () => {
  const path = "/.well-known/nnrp-openai-compatible";

  it("is shown to everybody, its models to who has a token", async () => {
    const bench = closed();
    const ask = async (headers: Readonly<Record<string, string>>) =>
      JSON.parse((await callDoor(bench.door.pages, bench.core, { method: "GET", path, headers })).text);
    expect(await ask({})).toMatchObject({ compatibility_levels: [1, 2, 3], models: [] });
    expect((await ask({ authorization: "Bearer other" })).models).toEqual([{ id: "e-tiny", owned_by: "scripted" }]);
  });

  it("follows the catalog", async () => {
    const bench = setUp();
    const [chats, embeds] = bench.backend.models();
    if (chats === undefined || embeds === undefined) throw new Error("two models are scripted");
    const levels = () => bench.door.levels();
    expect(levels()).toEqual([1, 2, 3]);
    bench.backend.setModels([chats]);
    expect(levels()).toEqual([1, 2]);
    bench.backend.setModels([embeds]);
    expect(levels()).toEqual([3]);
    bench.backend.setModels([]);
    const answer = await callDoor(bench.door.pages, bench.core, { method: "GET", path });
    expect(JSON.parse(answer.text)).toMatchObject({
      profile: "openai-compatible",
      schema_version: "openai-compatible/1",
      compatibility_levels: [],
      operations: [{ name: "models.list" }],
      extensions: [{ name: "responses.events", critical: false }],
    });
  });

  it("of level 1 alone has nothing beyond it, nor has the door", async () => {
    const bench = setUp({ door: { level: 1 } });
    const answer = await callDoor(bench.door.pages, bench.core, { method: "GET", path });
    expect(JSON.parse(answer.text)).toMatchObject({
      compatibility_levels: [1],
      operations: [
        { name: "chat.completions.create", streaming: true, non_streaming: true, tool_calls: true, cancellation: true },
      ],
      extensions: [],
    });
    const session = await bench.session();
    for (const operation of ["responses.create", "models.list", "responses.events"]) {
      const body = { event: envelope(operation, { model: "m-tiny", input: "Hi", id: "x" }) };
      const { terminal } = await read(session.submit({ body }));
      expect(terminal).toMatchObject({ error: { code: "unsupported_operation" } });
    }
  });

  it("at its WebSocket address, a plain request is asked to upgrade", async () => {
    const bench = setUp();
    const answer = await callDoor(bench.door.pages, bench.core, { method: "GET", path: "/nnrp" });
    expect([answer.status, answer.headers["upgrade"]]).toEqual([426, "websocket"]);
    const wrong = await callDoor(bench.door.pages, bench.core, { method: "POST", path, body: {} });
    expect([wrong.status, JSON.parse(wrong.text).error.code]).toEqual([405, "method_not_allowed"]);
  });
});
