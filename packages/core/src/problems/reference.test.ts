import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { problemCodes, problems } from "./table.ts";

it("the reference page and the table say the same", () => {
  const page = readFileSync(new URL("../../../../docs/reference/errors.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `([a-z-]+)` \| (\d+) \| (.+?) \| (yes|no) \|/gm)];
  const written = rows.map(([, code, status, title, retry]) => ({ code, status: Number(status), title, retry }));
  const real = problemCodes.map((code) => ({
    code,
    status: problems[code].status,
    title: problems[code].title,
    retry: problems[code].retry === "later" ? "yes" : "no",
  }));
  expect(written).toEqual(real);
});
