import { describe, expect, it } from "vitest";
import type { ResponseEvent } from "../events/response-events.ts";
import { CoreError } from "../problems/core-error.ts";
import type { Response } from "../responses/response.ts";
import type { EventLog, EventLogLimits } from "./event-log.ts";

const response: Response = {
  id: "resp_a",
  status: "completed",
  model: "m",
  door: "lmsp",
  output: [],
  finishes: [],
  timings: {},
  attempt: 1,
  priority: 0,
  createdAt: 0,
  metadata: {},
};

const delta = (text: string): ResponseEvent => ({
  type: "response.output_text.delta",
  atMs: 1,
  itemId: "msg_a_0",
  index: 0,
  delta: text,
});
const completed: ResponseEvent = { type: "response.completed", atMs: 2, response };

function codeOf(run: () => unknown): string | undefined {
  try {
    run();
  } catch (error) {
    return error instanceof CoreError ? error.code : String(error);
  }
  return undefined;
}

/**
 * What every event log does alike.
 * @param options with which its logs are opened.
 */
export function testEventLog(
  name: string,
  create: (limits: EventLogLimits) => EventLog | Promise<EventLog>,
  options: { readonly isDurable?: boolean } = {},
): void {
  const roomy: EventLogLimits = { bytesPerResponse: 1_000_000, bytesTotal: 10_000_000 };

  describe(`event log: ${name}`, () => {
    it("numbers from 1 without a gap and gives each reader its own place", async () => {
      const log = await create(roomy);
      log.open("a", 1, options);
      expect(log.append("a", 1, 0, [delta("x"), delta("y")])).toBe(2);
      const early = log.read("a", { after: 0, visibility: "live" });
      const late = log.read("a", { after: 2, visibility: "live" });
      expect(early.take().map(({ sequence }) => sequence)).toEqual([1, 2]);
      expect(late.take()).toEqual([]);
      log.append("a", 1, 2, [delta("z")]);
      expect(early.take().map(({ sequence }) => sequence)).toEqual([3]);
      expect(late.take().map(({ sequence }) => sequence)).toEqual([3]);
    });

    it("replays from any place exactly what was written", async () => {
      const log = await create(roomy);
      log.open("a", 1, options);
      const events = Array.from({ length: 50 }, (_, index) => delta(String(index)));
      let last = 0;
      for (const event of events) last = log.append("a", 1, last, [event]);
      for (let after = 0; after <= 50; after += 1) {
        const reader = log.read("a", { after, visibility: "live" });
        expect(reader.take().map(({ event }) => event)).toEqual(events.slice(after));
        reader.close();
      }
    });

    it("takes at most as many as asked", async () => {
      const log = await create(roomy);
      log.open("a", 1, options);
      log.append("a", 1, 0, [delta("1"), delta("2"), delta("3")]);
      const reader = log.read("a", { after: 0, visibility: "live" });
      expect(reader.take(2)).toHaveLength(2);
      expect(reader.take(2)).toHaveLength(1);
    });

    it("refuses an old epoch and a wrong place", async () => {
      const log = await create(roomy);
      log.open("a", 2, options);
      expect(codeOf(() => log.append("a", 1, 0, [delta("x")]))).toBe("conflict");
      expect(codeOf(() => log.append("a", 2, 5, [delta("x")]))).toBe("conflict");
      expect(codeOf(() => log.append("unknown", 2, 0, [delta("x")]))).toBe("not-found");
      expect(log.append("a", 2, 0, [delta("x")])).toBe(1);
    });

    it("ends a reader after the terminal event", async () => {
      const log = await create(roomy);
      log.open("a", 1, options);
      log.append("a", 1, 0, [delta("x"), completed]);
      const reader = log.read("a", { after: 0, visibility: "live" });
      expect(reader.ended).toBe(false);
      reader.take();
      expect(reader.ended).toBe(true);
      expect(log.extent("a")).toMatchObject({ first: 1, last: 2, ended: true });
    });

    it("tells readers of appends and progress until they close", async () => {
      const log = await create(roomy);
      log.open("a", 1, options);
      const reader = log.read("a", { after: 0, visibility: "live" });
      let calls = 0;
      reader.onReadable(() => {
        calls += 1;
      });
      log.append("a", 1, 0, [delta("x")]);
      log.announce("a", { kind: "loading" });
      log.announce("a", { kind: "queued", position: 2 });
      expect(calls).toBe(3);
      expect(reader.takeProgress()).toEqual({ kind: "queued", position: 2 });
      expect(reader.takeProgress()).toBeUndefined();
      reader.close();
      log.append("a", 1, 1, [delta("y")]);
      expect(calls).toBe(3);
      expect(log.extent("a")?.readers).toBe(0);
    });

    it("a reader that comes later gets the latest progress, until something is appended", async () => {
      const log = await create(roomy);
      log.open("a", 1, options);
      log.announce("a", { kind: "queued", position: 2 });
      log.announce("a", { kind: "queued", position: 1 });
      expect(log.read("a", { after: 0, visibility: "live" }).takeProgress()).toEqual({ kind: "queued", position: 1 });
      log.append("a", 1, 0, [delta("x")]);
      expect(log.read("a", { after: 0, visibility: "live" }).takeProgress()).toBeUndefined();
    });

    it("drops the head past the cap of a response, names the first kept number, keeps the terminal event", async () => {
      const log = await create({ bytesPerResponse: 8_000, bytesTotal: 10_000_000 });
      log.open("a", 1, options);
      const slow = log.read("a", { after: 0, visibility: "live" });
      let last = 0;
      for (let index = 0; index < 200; index += 1) last = log.append("a", 1, last, [delta("0123456789")]);
      log.append("a", 1, last, [completed]);
      const extent = log.extent("a");
      expect(extent?.bytes).toBeLessThanOrEqual(12_000);
      expect(codeOf(() => slow.take())).toBe("events-expired");
      try {
        log.read("a", { after: 0, visibility: "live" });
        expect.unreachable();
      } catch (error) {
        expect(error).toMatchObject({ code: "events-expired", details: { firstSequence: extent?.first } });
      }
      const reader = log.read("a", { after: (extent?.first ?? 0) - 1, visibility: "live" });
      expect(reader.take().at(-1)?.event.type).toBe("response.completed");
    });

    it("drops the oldest finished logs past the total budget; running ones that fill it leave no room", async () => {
      const log = await create({ bytesPerResponse: 1_000_000, bytesTotal: 50_000 });
      for (const id of ["a", "b"]) {
        log.open(id, 1, options);
        let last = 0;
        for (let index = 0; index < 40; index += 1) last = log.append(id, 1, last, [delta("0123456789")]);
        log.append(id, 1, last, [completed]);
      }
      expect(log.hasRoom).toBe(true);
      log.open("c", 1, options);
      let last = 0;
      for (let index = 0; index < 50; index += 1) last = log.append("c", 1, last, [delta("0123456789")]);
      expect(log.extent("a")).toBeUndefined();
      expect(log.extent("c")?.last).toBe(50);
      for (let index = 0; index < 100; index += 1) last = log.append("c", 1, last, [delta("0123456789")]);
      expect(log.hasRoom).toBe(false);
      log.drop("c");
      expect(log.bytes).toBe(0);
      expect(log.hasRoom).toBe(true);
    });

    it("a log that goes for the budget does not live on in its readers", async () => {
      const log = await create({ bytesPerResponse: 1_000_000, bytesTotal: 20_000 });
      log.open("a", 1, options);
      const stalled = log.read("a", { after: 0, visibility: "live" });
      log.append("a", 1, 0, [...Array.from({ length: 20 }, () => delta("0123456789")), completed]);
      log.open("b", 1, options);
      log.append(
        "b",
        1,
        0,
        Array.from({ length: 60 }, () => delta("0123456789")),
      );
      expect(log.extent("a")).toBeUndefined();
      expect(codeOf(() => stalled.take())).toBe("events-expired");
    });

    it("lets a reader finish a dropped log, and knows it no more", async () => {
      const log = await create(roomy);
      log.open("a", 1, options);
      const reader = log.read("a", { after: 0, visibility: "live" });
      log.append("a", 1, 0, [delta("x"), completed]);
      log.drop("a");
      expect(reader.take()).toHaveLength(2);
      expect(reader.ended).toBe(true);
      expect(codeOf(() => log.read("a", { after: 0, visibility: "live" }))).toBe("not-found");
    });

    it("commits what was appended", async () => {
      const log = await create(roomy);
      log.open("a", 1, options);
      const last = log.append("a", 1, 0, [delta("x")]);
      await log.committed("a", last);
      const reader = log.read("a", { after: 0, visibility: "committed" });
      expect(reader.take()).toHaveLength(1);
    });
  });
}
