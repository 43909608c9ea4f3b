import { type Case, needsModel, type Visit } from "../case.ts";
import { expectProblem } from "../expectations.ts";
import { root } from "../requests.ts";
import { asValue, type Value } from "../value.ts";

export const catalogCases: readonly Case[] = [
  { id: "catalog.list", section: "§4", run: listIsWhole },
  { id: "catalog.get", section: "§4", skip: needsModel, run: eachIsFound },
  { id: "catalog.etag", section: "§4", run: listIsCached },
  { id: "catalog.unknown", section: "§4", run: unknownIsNotFound },
];

const states = ["available", "loading", "loaded", "unavailable"];

async function listIsWhole({ probe, expect }: Visit): Promise<void> {
  const answer = await probe.ask(`${root}/models`);
  const page = asValue(answer.json);
  expect(answer.status === 200, `It answers ${answer.status}.`);
  expect(page.at("data").isList, "It has no list `data`.");
  expect(page.at("next_cursor").raw !== undefined, "It has no `next_cursor`.");
  const ids = page.at("data").list.map((model) => model.at("id").text ?? "");
  expect(new Set(ids).size === ids.length, "A model is listed twice.");
  for (const model of page.at("data").list) checkModel(model, expect);
}

function checkModel(model: Value, expect: Visit["expect"]): void {
  const id = model.at("id").json;
  expect((model.at("id").text ?? "") !== "", "A model has no id.");
  expect((model.at("name").text ?? "") !== "", `${id} has no name.`);
  expect(model.at("aliases").isList, `${id} has no list \`aliases\`.`);
  expect(states.includes(model.at("state").text ?? ""), `${id} is in the state ${model.at("state").json}.`);
  expect(model.at("capabilities").isObject, `${id} has no capabilities.`);
  const capabilities = model.at("capabilities").raw;
  if (typeof capabilities === "object" && capabilities !== null) {
    for (const [name, value] of Object.entries(capabilities)) {
      expect(typeof value === "boolean", `${id}: capabilities.${name} is ${JSON.stringify(value)}.`);
    }
  }
  for (const emulated of model.at("emulated").list) {
    const name = emulated.text ?? "";
    expect(model.at("capabilities", name).raw === true, `${id} emulates ${name}, which it does not have.`);
  }
  expect(model.at("runtimes").list.length > 0, `${id} has no runtime.`);
}

async function eachIsFound({ probe, expect, model }: Visit): Promise<void> {
  const list = asValue((await probe.ask(`${root}/models`)).json).at("data").list;
  const listed = list.find((entry) => entry.at("id").text === model);
  expect(listed !== undefined, `${model} is not listed.`);
  const names = [
    model,
    encodeURIComponent(model),
    ...(listed?.at("aliases").list ?? []).map((name) => name.text ?? ""),
  ];
  for (const name of names) {
    const { status, json } = await probe.ask(`${root}/models/${name}`);
    expect(status === 200, `/models/${name} answers ${status}.`);
    expect(asValue(json).at("id").text === model, `/models/${name} is ${asValue(json).at("id").json}.`);
  }
}

async function listIsCached({ probe, expect }: Visit): Promise<void> {
  const { headers } = await probe.ask(`${root}/models`);
  const etag = headers.get("etag");
  expect(etag !== null, "The catalog has no ETag.");
  if (etag === null) return;
  const again = await probe.ask(`${root}/models`, { headers: { "if-none-match": etag } });
  expect(again.status === 304, `If-None-Match with its ETag answers ${again.status}.`);
  expect(again.text === "", "A 304 has a body.");
  const other = await probe.ask(`${root}/models`, { headers: { "if-none-match": '"another"' } });
  expect(other.status === 200, `If-None-Match with another ETag answers ${other.status}.`);
}

async function unknownIsNotFound(visit: Visit): Promise<void> {
  const answer = await visit.probe.ask(`${root}/models/no/such:model`);
  expectProblem(visit, "An unknown model", answer, "model-not-found", 404);
}
