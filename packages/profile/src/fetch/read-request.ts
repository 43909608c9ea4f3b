import { type Route, routeOf } from "./route.ts";

export interface ReadRequest {
  readonly method: string;
  readonly url: URL;
  readonly route: Route | undefined;
  readonly headers: Headers;
  readonly body: string;
  readonly signal: AbortSignal | undefined;
}

/** What a `fetch` was called with. */
export async function readRequest(input: string | URL | Request, init: RequestInit): Promise<ReadRequest> {
  if (input instanceof Request || (typeof init.body !== "string" && init.body != null)) {
    const request = new Request(input, init);
    const { method, headers, signal } = request;
    return { ...place(method, request.url), headers, body: await request.text(), signal };
  }
  const body = typeof init.body === "string" ? init.body : "";
  const signal = init.signal ?? undefined;
  return { ...place(init.method ?? "GET", String(input)), headers: new Headers(init.headers), body, signal };
}

function place(given: string, href: string): Pick<ReadRequest, "method" | "url" | "route"> {
  const method = given.toUpperCase();
  const url = new URL(href);
  return { method, url, route: routeOf(method, url) };
}
