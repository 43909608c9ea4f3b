import type { ApplicationEndpoint, Locator } from "./endpoint.ts";

/** The choice among carriers for one service (section 10), without doing anything. */

/** `auto` measures; `prefer-x` decides only between equals; `force-x` takes only x. */
export type TransportPolicy = "auto" | `${"prefer" | "force"}-${Locator["carrier"]}`;

/** Why a route was not taken. */
export type RejectionReason =
  | "policy-disallowed"
  | "local-unavailable"
  | "security-unsatisfied"
  | "probe-failed"
  /** Another route was better. */
  | "not-chosen";

export interface Rejection {
  readonly locator: Locator;
  readonly reason: RejectionReason;
}

/** What probing a route showed. */
export interface ProbeResult {
  readonly locator: Locator;
  readonly successes: number;
  readonly medianBytesPerSecond: number;
  readonly medianRoundTripMs: number;
}

const rank: readonly Locator["carrier"][] = ["ipc", "quic", "tcp", "websocket"];

/** The routes to a service: what its address implies, and what was given beside it. */
export function routesTo(application: ApplicationEndpoint, given: readonly Locator[]): readonly Locator[] {
  const { secure, host, port } = application;
  const implied: Locator[] =
    port === undefined || given.some(({ carrier }) => carrier === "tcp")
      ? []
      : [{ carrier: "tcp", secure, host, port }];
  return [...implied, ...given];
}

/** Sorts out what cannot be used. `available` are the carriers of this platform. */
export function eligibleRoutes(
  routes: readonly Locator[],
  needsSecurity: boolean,
  policy: TransportPolicy,
  available: ReadonlySet<Locator["carrier"]>,
): { readonly eligible: readonly Locator[]; readonly rejected: readonly Rejection[] } {
  const eligible: Locator[] = [];
  const rejected: Rejection[] = [];
  for (const locator of routes) {
    if (policy.startsWith("force-") && policy !== `force-${locator.carrier}`) {
      rejected.push({ locator, reason: "policy-disallowed" });
    } else if (!available.has(locator.carrier)) rejected.push({ locator, reason: "local-unavailable" });
    else if (needsSecurity && !locator.secure) rejected.push({ locator, reason: "security-unsatisfied" });
    else eligible.push(locator);
  }
  return { eligible, rejected };
}

/** The best first; those without a success are left out. */
export function orderByProbes(results: readonly ProbeResult[], policy: TransportPolicy): readonly ProbeResult[] {
  const preferred = (result: ProbeResult) => (policy === `prefer-${result.locator.carrier}` ? 0 : 1);
  return results
    .filter(({ successes }) => successes > 0)
    .sort(
      (a, b) =>
        b.successes - a.successes ||
        b.medianBytesPerSecond - a.medianBytesPerSecond ||
        a.medianRoundTripMs - b.medianRoundTripMs ||
        preferred(a) - preferred(b) ||
        rank.indexOf(a.locator.carrier) - rank.indexOf(b.locator.carrier),
    );
}
