import { describe, expect, it } from "vitest";
import { ScriptedBackend, scriptedModel } from "../testing/scripted-backend.ts";
import { Catalog } from "./catalog.ts";

describe("catalog", () => {
  it("gives a bare name to the first backend; every model has its long name", () => {
    const one = new ScriptedBackend("one", [scriptedModel("m")]);
    const two = new ScriptedBackend("two", [scriptedModel("m"), scriptedModel("acme/tiny:q4")]);
    const catalog = new Catalog([one, two]);
    expect(catalog.list().map(({ id }) => id)).toEqual(["m", "two/m", "acme/tiny:q4"]);
    expect(catalog.resolve("m").routes[0]?.backend).toBe(one);
    expect(catalog.resolve("one/m").routes[0]?.backend).toBe(one);
    expect(catalog.resolve("two/m").routes[0]?.backend).toBe(two);
    expect(catalog.resolve("two/acme/tiny:q4").model.id).toBe("acme/tiny:q4");
  });

  it("joins models with one digest, the loaded one first", () => {
    const details = { digest: "sha256:1" };
    const one = new ScriptedBackend("one", [scriptedModel("m", { details, state: "available" })]);
    const two = new ScriptedBackend("two", [scriptedModel("other-name", { details })]);
    const catalog = new Catalog([one, two]);
    expect(catalog.list()).toHaveLength(1);
    expect(catalog.resolve("m").routes.map(({ backend }) => backend.id)).toEqual(["two", "one"]);
    expect(catalog.resolve("other-name").model.id).toBe("m");
    expect(catalog.resolve("two/other-name").model.runtimes.map(({ id }) => id)).toEqual(["one", "two"]);
  });

  it("keeps two files of one backend apart, also with one digest", () => {
    const details = { digest: "sha256:1" };
    const catalog = new Catalog([
      new ScriptedBackend("one", [scriptedModel("a", { details }), scriptedModel("b", { details })]),
    ]);
    expect(catalog.list().map(({ id }) => id)).toEqual(["a", "b"]);
  });

  it("knows aliases and `:latest`; a real name wins over an alias", () => {
    const catalog = new Catalog([
      new ScriptedBackend("one", [scriptedModel("a:latest", { aliases: ["b", "x"] }), scriptedModel("b")]),
    ]);
    expect(catalog.resolve("a").model.id).toBe("a:latest");
    expect(catalog.resolve("x").model.id).toBe("a:latest");
    expect(catalog.resolve("b").model.id).toBe("b");
  });

  it("follows changes and counts them", () => {
    const backend = new ScriptedBackend("one", [scriptedModel("a")]);
    const catalog = new Catalog([backend]);
    const { version } = catalog;
    let told = 0;
    catalog.onChange(() => {
      told += 1;
    });
    expect(catalog.find("b")).toBeUndefined();
    backend.setModels([scriptedModel("b")]);
    expect(catalog.version).toBe(version + 1);
    expect(told).toBe(1);
    expect(catalog.resolve("b").model.id).toBe("b");
    expect(() => catalog.resolve("a")).toThrow(/Models here: b\./);
  });
});
