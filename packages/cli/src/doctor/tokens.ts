import type { Check } from "./check.ts";
import type { Places } from "./places.ts";

/** Whether the service that would start here can be used by whom it should, and by nobody else. */
export async function checkTokens({ config }: Places): Promise<readonly Check[]> {
  // A wrong configuration is told already.
  if (config === undefined) return [];
  const { isLoopbackHost } = await import("@plenum/server");
  const { auth, host, insecureOpen } = config;
  const id = "tokens";
  const isOpen = auth.tokens.length === 0;
  const data = { host, tokens: auth.tokens.length };
  if (isOpen && isLoopbackHost(host)) {
    const detail = `Tokens: none in the configuration, and none is needed on ${host} (this machine only)`;
    return [{ id, state: "ok", detail, data }];
  }
  if (isOpen && insecureOpen) {
    const todo = [
      "plenum tokens create --principal NAME --scope admin   (and take insecure_open out of the configuration)",
    ];
    return [
      { id, state: "note", detail: `Tokens: none, so everyone who reaches ${host} can use the service`, todo, data },
    ];
  }
  if (isOpen) {
    const detail = `Tokens: none in the configuration; ${host} needs one, and the first start makes it`;
    return [{ id, state: "ok", detail, data }];
  }
  const expired = auth.tokens.filter(({ expiresAtMs }) => expiresAtMs !== undefined && expiresAtMs <= Date.now());
  const detail = `Tokens: ${auth.tokens.length} for ${host}`;
  if (expired.length === 0) return [{ id, state: "ok", detail, data }];
  const isUsable = expired.length < auth.tokens.length;
  const todo = expired.map(({ principal }) => `plenum tokens create --principal ${JSON.stringify(principal)}`);
  return [{ id, state: isUsable ? "note" : "problem", detail: `${detail}, ${expired.length} expired`, todo, data }];
}
