import { describe, expect, it } from "vitest";
import { ScriptedBackend, scriptedModel } from "../testing/scripted-backend.ts";
import { Catalog } from "./catalog.ts";
import { catalogChanges } from "./changes.ts";

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

  it("shows the names that lead to an entry, and no others", () => {
    const details = { digest: "sha256:1" };
    const catalog = new Catalog([
      new ScriptedBackend("one", [scriptedModel("m", { details, aliases: ["short"] }), scriptedModel("other")]),
      new ScriptedBackend("two", [scriptedModel("m-two", { details, aliases: ["short", "other"] })]),
    ]);
    expect(catalog.find("m")?.model.aliases).toEqual(["m-two", "short"]);
    expect(catalog.find("other")?.model.id).toBe("other");
  });

  it("joins what the operator calls the same; a down runtime does not stand before a healthy one", () => {
    const one = new ScriptedBackend("one", [scriptedModel("m", { state: "unavailable" })]);
    const two = new ScriptedBackend("two", [scriptedModel("m-two", { state: "available" }), scriptedModel("n")]);
    const catalog = new Catalog([one, two], {
      sameAs: new Map([
        ["two/m-two", "m"],
        ["two/gone", "m"],
        ["two/n", "gone"],
      ]),
    });
    expect(catalog.list().map(({ id }) => id)).toEqual(["m", "n"]);
    expect(catalog.resolve("m").model).toMatchObject({ state: "available", aliases: ["m-two"] });
    expect(catalog.resolve("m").routes.map(({ backend }) => backend.id)).toEqual(["two", "one"]);
    expect(catalog.resolve("two/m-two").model.id).toBe("m");
    expect(catalog.resolve("m").model.runtimes.map(({ id, state }) => [id, state])).toEqual([
      ["one", "unavailable"],
      ["two", "available"],
    ]);
  });

  it("has the operator's aliases, also of a name that comes later; a real name wins", () => {
    const backend = new ScriptedBackend("one", [scriptedModel("m:latest")]);
    const catalog = new Catalog([backend], {
      aliases: new Map([
        ["gpt-4o", "m"],
        ["later", "x"],
        ["m:latest", "x"],
      ]),
    });
    expect(catalog.resolve("gpt-4o").model.aliases).toEqual(["gpt-4o"]);
    expect(catalog.find("later")).toBeUndefined();
    backend.setModels([scriptedModel("m:latest"), scriptedModel("x")]);
    expect(catalog.resolve("later").model.id).toBe("x");
    expect(catalog.resolve("m:latest").model.id).toBe("m:latest");
    catalog.setAliases(new Map());
    expect(catalog.find("later")).toBeUndefined();
  });

  it("tells what changed between two looks", () => {
    const backend = new ScriptedBackend("one", [scriptedModel("a"), scriptedModel("b"), scriptedModel("c")]);
    const catalog = new Catalog([backend]);
    const before = catalog.list();
    backend.setModels([scriptedModel("a"), scriptedModel("b", { state: "loading" }), scriptedModel("d")]);
    const { added, changed, removed } = catalogChanges(before, catalog.list());
    expect(added.map(({ id }) => id)).toEqual(["d"]);
    expect(changed).toMatchObject([{ id: "b", state: "loading" }]);
    expect(removed.map(({ id }) => id)).toEqual(["c"]);
    backend.setModels([scriptedModel("a"), scriptedModel("b"), scriptedModel("c")]);
    expect(catalogChanges(before, catalog.list())).toEqual({ added: [], changed: [], removed: [] });
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
