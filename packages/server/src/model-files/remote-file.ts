import { isIP } from "node:net";

/** A file that can be downloaded. */
export interface RemoteFile {
  /** https, or http on this machine. */
  readonly url: string;
  /** Sent to the address itself and to no other that it redirects to; may hold secrets. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Absent: what the server says. */
  readonly sizeBytes?: number;
  /** Hex, lower case. Absent: nothing is expected. */
  readonly sha256?: string;
}

export interface RequestOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

const mostRedirects = 5;

/**
 * Whether an address may be asked: https, or http on this machine, which nobody can listen to.
 * @param from address that redirects there: one elsewhere never leads to this machine's own services
 */
export function isAllowedUrl(url: URL, from?: URL): boolean {
  if (url.protocol === "http:") return isLoopback(url) && (from === undefined || isLoopback(from));
  return url.protocol === "https:" && (from === undefined || !isLoopback(url) || isLoopback(from));
}

function isLoopback({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/**
 * GET, following redirects by the rule of `isAllowedUrl`.
 * @throws Error for a redirect that is not allowed; what `fetch` throws.
 */
export async function request(file: RemoteFile, { headers, signal }: RequestOptions): Promise<Response> {
  const first = new URL(file.url);
  let url = first;
  if (!isAllowedUrl(url)) throw new Error("only https addresses are asked, or http on this machine");
  for (let redirects = 0; ; redirects++) {
    const own = url.origin === first.origin ? file.headers : {};
    const answer = await fetch(url.href, {
      headers: { "accept-encoding": "identity", ...own, ...headers },
      redirect: "manual",
      signal,
    });
    const location = answer.headers.get("location");
    if (![301, 302, 303, 307, 308].includes(answer.status) || location === null) return answer;
    await answer.body?.cancel();
    if (redirects === mostRedirects) throw new Error(`it redirects more than ${mostRedirects} times`);
    if (!URL.canParse(location, url.href)) throw new Error("it redirects to no address");
    const next = new URL(location, url);
    if (!isAllowedUrl(next, url))
      throw new Error(`it redirects to ${next.protocol}//${next.host}, which is not followed`);
    url = next;
  }
}
