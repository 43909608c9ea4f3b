import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chatModel, embeddingModel, measured, type RunningService, skipReason, startService } from "../e2e/service.ts";
import { contentsOf, noPython, type RunningScript, startScript } from "./script.ts";

const reason = noPython ?? skipReason;
const title = `official Python clients${reason === undefined ? "" : `, skipped: ${reason}`}`;

/** The official clients from PyPI, unmodified, against a real model: each check of a script is a test here. */
describe.skipIf(reason !== undefined)(title, () => {
  let service: RunningService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service?.stop());

  for (const client of ["openai", "ollama"]) {
    const script = `${client}_client.py`;
    const { version, checks } = contentsOf(script);

    describe(`${client} ${version}`, () => {
      let running: RunningScript;
      beforeAll(() => {
        running = startScript(script, [service.url, chatModel, embeddingModel]);
      });
      afterAll(() => running?.stop());

      it.each(checks)("%s", async (name) => {
        const { ok, detail, ms } = await running.check(name);
        expect(ok, detail).toBe(true);
        measured(`${client} ${version} ${name}`, `${ms} ms${detail === "" ? "" : `, ${detail}`}`);
      });

      it("leaves nothing running", async () => {
        expect(await service.metric("plenum_running")).toBe(0);
      });
    });
  }
});
