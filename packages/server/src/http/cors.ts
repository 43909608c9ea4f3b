import { CoreError } from "@plenum/core";
import { type HostRules, isAllowedHost, isAllowedOrigin } from "./host-check.ts";

/** What of a request decides whether a browser's page may speak to us. */
export interface BrowserFacts {
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly secFetchSite: string | undefined;
}

const exposedHeaders =
  "X-Request-Id, X-LMSP-Response-Id, X-LMSP-Without-Effect, Location, Retry-After, ETag, X-Should-Retry";

/**
 * Refuses foreign hosts and origins before anything is read.
 * @throws CoreError host-refused, with what the operator can set.
 */
export function refuseForeign({ host, origin, secFetchSite }: BrowserFacts, rules: HostRules): void {
  if (!isAllowedHost(host, rules)) {
    throw new CoreError("host-refused", `The host '${host ?? ""}' is not one of this service; add it to 'hosts'.`, {
      param: "Host",
    });
  }
  if (origin !== undefined) {
    if (isAllowedOrigin(origin, host, rules)) return;
    throw new CoreError("host-refused", `Pages of '${origin}' may not call; add it to 'cors_origins'.`, {
      param: "Origin",
    });
  }
  if (secFetchSite === "cross-site") {
    throw new CoreError("host-refused", "Pages of other sites may not call; add theirs to 'cors_origins'.", {
      param: "Sec-Fetch-Site",
    });
  }
}

/** Headers that let an allowed page read the answer, also when it is an error; each name before its value. */
export function corsHeaders(origin: string | undefined, isAllowed: boolean): readonly string[] {
  const vary = ["vary", "Origin"];
  if (origin === undefined || !isAllowed) return vary;
  return [...vary, "access-control-allow-origin", origin, "access-control-expose-headers", exposedHeaders];
}

/** Answer to a preflight: no token is needed, and every header asked for is allowed. */
export function preflightHeaders(requestedHeaders: string | undefined): Record<string, string> {
  return {
    "access-control-allow-methods": "GET, HEAD, POST, PATCH, DELETE",
    "access-control-allow-headers": requestedHeaders ?? "authorization, content-type",
    "access-control-max-age": "600",
  };
}
