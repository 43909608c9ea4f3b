import { type ResponseRequest, requestDefaults } from "./request.ts";

/** What a door has read; null and undefined are the same as absent. */
export type GivenRequest = Pick<ResponseRequest, "model" | "input"> & {
  readonly [Member in keyof ResponseRequest]?: ResponseRequest[Member] | null | undefined;
};

type OptionalMember = {
  [Member in keyof ResponseRequest]-?: undefined extends ResponseRequest[Member] ? Member : never;
}[keyof ResponseRequest];

/** Members without a default. */
const optional: Readonly<Record<OptionalMember, true>> = {
  instructions: true,
  samplingDefaults: true,
  previousResponseId: true,
  keepAliveMs: true,
  deadlineMs: true,
  supersedes: true,
  via: true,
  trace: true,
};

/**
 * The whole request, with the defaults for what was left out. Written out member by member: what grows out of a spread
 * has a hidden class of its own each time, and everything that reads it would look its members up anew.
 */
export function makeRequest(given: GivenRequest): ResponseRequest {
  const request: ResponseRequest = {
    model: given.model,
    input: given.input,
    tools: given.tools ?? requestDefaults.tools,
    toolChoice: given.toolChoice ?? requestDefaults.toolChoice,
    parallelToolCalls: given.parallelToolCalls ?? requestDefaults.parallelToolCalls,
    output: given.output ?? requestDefaults.output,
    sampling: given.sampling ?? requestDefaults.sampling,
    reasoning: given.reasoning ?? requestDefaults.reasoning,
    candidates: given.candidates ?? requestDefaults.candidates,
    truncation: given.truncation ?? requestDefaults.truncation,
    metadata: given.metadata ?? requestDefaults.metadata,
    store: given.store ?? requestDefaults.store,
    background: given.background ?? requestDefaults.background,
    priority: given.priority ?? requestDefaults.priority,
    onDisconnect: given.onDisconnect ?? requestDefaults.onDisconnect,
    runtimeOptions: given.runtimeOptions ?? requestDefaults.runtimeOptions,
  };
  let name: OptionalMember;
  for (name in optional) if (given[name] != null) Object.assign(request, { [name]: given[name] });
  return request;
}
