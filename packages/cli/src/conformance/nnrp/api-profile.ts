import { parseEndpoint } from "@plenum/nnrp";
import { openCarrier } from "@plenum/nnrp/node";
import { profileName, schemaVersion } from "@plenum/profile";
import type { ConformanceService } from "@plenum/server/conformance";
import { type CaseResult, toResult } from "./case-result.ts";
import { type ProfileCase, readProfileCase, runProfileCase, SuiteFileError, toObject, toText } from "./profile-case.ts";
import type { Target } from "./visit.ts";

/** An execution plan of the outside suite (schema `api-profile-execution-plan`), as far as it is needed. */
export interface ProfilePlan {
  readonly adapter: string;
  readonly cases: readonly ProfileCase[];
}

/** Case results of the outside suite (schema `api-profile-case-results`). */
export interface ProfileResults {
  readonly profile: string;
  readonly schema_version: string;
  readonly adapter: string;
  readonly results: readonly CaseResult[];
}

/** @throws SuiteFileError */
export function readProfilePlan(value: unknown): ProfilePlan {
  const { profile, schema_version: version, adapter, cases } = toObject(value, "The plan");
  if (profile !== profileName) throw new SuiteFileError(`profile must be ${profileName}.`);
  if (version !== schemaVersion) throw new SuiteFileError(`schema_version must be ${schemaVersion}.`);
  if (!Array.isArray(cases)) throw new SuiteFileError("cases must be a list.");
  return {
    adapter: toText(adapter, "adapter"),
    cases: cases.map((each, index) => readProfileCase(each, `cases[${index}]`)),
  };
}

/** A service of this process as a target, over TCP. */
export async function targetOf(service: ConformanceService, timeoutMs: number): Promise<Target> {
  const endpoint = parseEndpoint(await service.listen("tcp://127.0.0.1:0"));
  if (endpoint.kind === "application") throw new TypeError("A listener's address names its carrier.");
  return { open: (signal) => openCarrier(endpoint.locator, { signal }), timeoutMs };
}

/** Runs every case of a plan, each over a connection of its own. */
export async function runProfilePlan({ adapter, cases }: ProfilePlan, target: Target): Promise<ProfileResults> {
  const results: CaseResult[] = [];
  for (const each of cases) results.push(toResult(each.id, await runProfileCase(target, each)));
  return { profile: profileName, schema_version: schemaVersion, adapter, results };
}
