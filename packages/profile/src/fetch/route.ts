import type { OperationName } from "../profile.ts";

/** What a URL asks for. */
export type Route =
  | { readonly operation: OperationName }
  /** One model out of the list. */
  | { readonly operation: "models.list"; readonly model: string };

const posts: readonly (readonly [string, OperationName])[] = [
  ["/chat/completions", "chat.completions.create"],
  ["/responses", "responses.create"],
  ["/embeddings", "embeddings.create"],
];

/** Finds the operation by the end of the path, whatever the base URL is. @returns undefined for anything else. */
export function routeOf(method: string, url: URL): Route | undefined {
  const path = url.pathname.replace(/\/+$/, "");
  if (method === "POST") {
    const found = posts.find(([end]) => path.endsWith(end));
    return found && { operation: found[1] };
  }
  if (method !== "GET") return undefined;
  if (path.endsWith("/models")) return { operation: "models.list" };
  const [, id] = /\/models\/([^/].*)$/.exec(path) ?? [];
  const model = id && decoded(id);
  return model ? { operation: "models.list", model } : undefined;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
