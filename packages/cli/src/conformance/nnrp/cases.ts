import type { CapabilityDocument } from "@plenum/profile";
import { claimsOf } from "./capability-source.ts";
import type { Case } from "./case.ts";
import { diagnosticsCases } from "./diagnostics-cases.ts";
import { negativeCases } from "./negative-cases.ts";
import { runProfileCase } from "./profile-case.ts";
import { type Recipe, readRecipes } from "./recipes.ts";
import type { Judgement, Target } from "./visit.ts";

export interface ModelNames {
  /** Answers chats. @default the document's `example-model`, else its first model */
  readonly model?: string;
  /** Always fails in the backend. @default the document's `backend-error` */
  readonly errorModel?: string;
}

const exampleModel = "example-model";
const failingModel = "backend-error";

/** What is checked of a service that claims this. */
export function casesFor(document: CapabilityDocument, names: ModelNames): readonly Case[] {
  const models = document.models.map(({ id }) => id);
  const model = names.model ?? (models.includes(exampleModel) ? exampleModel : (models[0] ?? exampleModel));
  const errorModel = names.errorModel ?? (models.includes(failingModel) ? failingModel : undefined);
  const claims = claimsOf(document);
  const recipes = readRecipes((name) => (name === failingModel ? (errorModel ?? failingModel) : model));
  return [
    ...recipes.map((recipe) => toCase(recipe, claims, errorModel)),
    ...diagnosticsCases(model, claims),
    ...negativeCases(model, claims),
  ];
}

function toCase(recipe: Recipe, claims: ReadonlySet<string>, errorModel: string | undefined): Case {
  const skip = whyNot(recipe, claims, errorModel);
  const run = (target: Target): Promise<Judgement> => runProfileCase(target, recipe);
  return { id: recipe.id, run, ...(skip === undefined ? {} : { skip }) };
}

function whyNot(recipe: Recipe, claims: ReadonlySet<string>, errorModel: string | undefined): string | undefined {
  const missing = recipe.needs.find((need) => !claims.has(need));
  if (missing !== undefined) return `not claimed: ${missing}`;
  if (recipe.modelId === failingModel && errorModel === undefined) return "name a model that fails with --error-model";
  const [expected] = recipe.expect.events;
  const isRefusal = JSON.stringify(expected?.fields).includes("unsupported_operation");
  // Made for services of level 1; negative.unknown-operation asks the same of all.
  if (isRefusal && claims.has(`api.${recipe.operation}`)) return `the service offers ${recipe.operation}`;
  return undefined;
}
