export interface ApiProfileFlags {
  readonly plan?: string;
  readonly output?: string;
  readonly json?: boolean;
}

/** Where the outside suite's CI action names the two files. */
export const planVariable = "NNRP_CONFORMANCE_ADAPTER_PLAN";
export const resultsVariable = "NNRP_CONFORMANCE_ADAPTER_RESULTS";
