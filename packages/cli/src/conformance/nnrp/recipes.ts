import { readFileSync } from "node:fs";
import type { JsonObject } from "@plenum/profile";
import { type ProfileCase, readProfileCase, toObject, toText } from "./profile-case.ts";

/** A recipe of the suite, ready for one service. */
export interface Recipe extends ProfileCase {
  /** Tokens such as `api.streaming`; all must be claimed. */
  readonly needs: readonly string[];
  /** Its model. */
  readonly modelId: string;
}

/** The parameter in requests. */
const placeholder = /^\$\{MODEL_ID\}$/;

/** Three folders up both from `src` and from `dist`. */
const folder = new URL("../../../contracts/openai-compatible-1/", import.meta.url);

/**
 * The suite's recipes.
 * @param modelFor gives the service's model for a model of the recipes: `example-model` or `backend-error`.
 */
export function readRecipes(modelFor: (name: string) => string): readonly Recipe[] {
  const { recipe_manifests: paths } = readJson("manifest.json");
  if (!Array.isArray(paths)) return [];
  return paths.map((path) => readRecipe(toText(path, "recipe_manifests"), modelFor));
}

function readRecipe(path: string, modelFor: (name: string) => string): Recipe {
  const recipe = readJson(path);
  const parameters = recipe["parameters"] === undefined ? {} : toObject(recipe["parameters"], `${path}.parameters`);
  const modelId = toText(parameters["MODEL_ID"] ?? "example-model", `${path}.parameters.MODEL_ID`);
  const fill = (value: unknown): unknown =>
    fillIn(value, (text) => (placeholder.test(text) || text === modelId ? modelFor(modelId) : text));
  const needs = recipe["required_capabilities"];
  return {
    ...readProfileCase({ ...recipe, request: fill(recipe["request"]) }, path),
    needs: Array.isArray(needs) ? needs.map((need) => toText(need, `${path}.required_capabilities`)) : [],
    modelId,
  };
}

function readJson(path: string): JsonObject {
  return toObject(JSON.parse(readFileSync(new URL(path, folder), "utf8")), path);
}

/** The value with each text in it replaced. */
function fillIn(value: unknown, replace: (text: string) => string): unknown {
  if (typeof value === "string") return replace(value);
  if (Array.isArray(value)) return value.map((member) => fillIn(member, replace));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, fillIn(member, replace)]));
}
