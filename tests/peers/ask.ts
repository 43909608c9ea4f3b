import { type Json, post } from "../e2e/service.ts";

/** The answer of a request that goes well: a POST when there is a body. */
export async function ask(url: string, path: string, body?: Json): Promise<Json> {
  const answer = await fetch(url + path, body === undefined ? undefined : post(body));
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${text}`);
  return JSON.parse(text);
}
