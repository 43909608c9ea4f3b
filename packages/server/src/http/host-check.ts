import { isIP } from "node:net";

/** Who may reach the service from where (LMSP §2). */
export interface HostRules {
  /** Further host names, lower case, without port. */
  readonly hosts: readonly string[];
  /** Web origins that may call; `*`: any. */
  readonly corsOrigins: readonly string[];
}

/** Schemes of desktop apps' pages; no foreign website can have them. */
const appSchemes = /^(app|file|tauri|vscode-webview|vscode-file):\/\//;

/** Loopback, an IP literal, a `.local` name, or a configured one: a DNS name of a stranger's could be rebound to us. */
export function isAllowedHost(host: string | undefined, rules: HostRules): boolean {
  const name = nameOf(host);
  if (name === undefined) return false;
  return isLoopbackName(name) || isIP(name) !== 0 || name.endsWith(".local") || rules.hosts.includes(name);
}

/** Loopback on any port, an app's own scheme, the service itself, or a configured origin. */
export function isAllowedOrigin(origin: string, host: string | undefined, rules: HostRules): boolean {
  if (rules.corsOrigins.includes("*") || rules.corsOrigins.includes(origin)) return true;
  if (appSchemes.test(origin)) return true;
  const match = /^https?:\/\/(.+)$/.exec(origin);
  if (match?.[1] === undefined) return false;
  const name = nameOf(match[1]);
  return (name !== undefined && isLoopbackName(name)) || match[1] === host?.toLowerCase();
}

function isLoopbackName(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost") || name === "::1" || /^127(\.\d{1,3}){3}$/.test(name);
}

/** Host name in lower case without port, brackets and final dot; undefined when it is none. */
function nameOf(host: string | undefined): string | undefined {
  if (host === undefined) return undefined;
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:@/\s[\]]+))(?::\d{1,5})?$/i.exec(host);
  return (match?.[1] ?? match?.[2])?.toLowerCase().replace(/\.$/, "");
}
