import { readFile, writeFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { repairSqlite } from "./index.ts";
import { storages } from "./testing/fixtures.ts";
import { completed, delta, ended, record } from "./testing/fixtures-data.ts";
import { openPlain } from "./thread/database.ts";

const { file: freshFile, open } = storages();

async function filled(rows: number): Promise<string> {
  const file = await freshFile();
  const storage = await open({ file });
  for (let index = 0; index < rows; index += 1) {
    const first = record(`resp_${index}`, { request: { instructions: "x".repeat(3_000) } });
    storage.log.open(first.response.id, 1, { isDurable: true });
    storage.log.append(first.response.id, 1, 0, [delta("x".repeat(3_000)), completed(first)]);
    void storage.responses.put(ended(first));
  }
  await storage.settings.set("service/id", "kept");
  await storage.close();
  return file;
}

it("a second process is refused in a sentence that names the file, and disturbs nothing", async () => {
  const file = await freshFile();
  const first = await open({ file });
  await expect(open({ file })).rejects.toThrow(`The database ${file} is in use by another process`);
  await first.settings.set("a", 1);
  await first.close();
  expect(await (await open({ file })).settings.get("a")).toBe(1);
});

it("a file that is in use, or is not there, is not repaired", async () => {
  const file = await freshFile();
  const storage = await open({ file });
  await expect(repairSqlite(file)).rejects.toThrow(`${file} is in use`);
  await storage.settings.set("a", 1);
  await storage.close();
  await expect(repairSqlite(`${file}.none`)).rejects.toThrow(/There is no database/);
});

it("a file that is no database is refused and left as it is; repair moves it aside", async () => {
  const file = await freshFile();
  await writeFile(file, "no database ".repeat(1000));
  await expect(open({ file })).rejects.toThrow(/is damaged.*plenum store repair --file/);
  expect(await readFile(file, "utf8")).toBe("no database ".repeat(1000));
  const report = await repairSqlite(file);
  expect(report.isComplete).toBe(false);
  expect(await readFile(report.movedTo, "utf8")).toBe("no database ".repeat(1000));
  await (await open({ file })).settings.set("a", 1);
});

it.each([0.3, 0.5, 0.8])(
  "damage at %d of the file is seen when it is opened; repair saves what can be read",
  async (part) => {
    const file = await filled(200);
    const bytes = await readFile(file);
    const at = Math.floor((bytes.length * part) / 4096) * 4096;
    bytes.fill(0xa5, at, at + 3 * 4096);
    await writeFile(file, bytes);
    await expect(open({ file })).rejects.toThrow(/is damaged.*plenum store repair/);
    expect(bytes.equals(await readFile(file))).toBe(true);
    const report = await repairSqlite(file);
    expect(bytes.equals(await readFile(report.movedTo))).toBe(true);
    expect(report.isComplete).toBe(false);
    expect(report.salvaged["responses"]).toBeGreaterThan(100);
    const repaired = await open({ file });
    expect(await repaired.settings.get("service/id")).toBe("kept");
    const page = await repaired.responses.list({ limit: 1000 });
    expect(page.data).toHaveLength(report.salvaged["responses"] ?? -1);
  },
);

it("a whole database is repaired without a loss", async () => {
  const file = await filled(50);
  const report = await repairSqlite(file);
  expect(report).toMatchObject({ isComplete: true, salvaged: { responses: 50, logs: 50, events: 50, settings: 1 } });
});

it("a database of a newer version is refused and left as it is", async () => {
  const file = await filled(1);
  const database = openPlain(file);
  database.exec("PRAGMA user_version = 99");
  database.close();
  await expect(open({ file })).rejects.toThrow(/was made by a newer version/);
  expect((await readFile(file)).readInt32BE(60)).toBe(99);
});

it("a path that can't be a file is refused", async () => {
  const file = `${await filled(1)}/plenum.db`;
  await expect(open({ file })).rejects.toThrow(`The database ${file} can't be used`);
});
