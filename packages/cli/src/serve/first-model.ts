import type { Client } from "@plenum/client";

/** Id of a service's first chat model; undefined when it has none, or does not tell before the signal. */
export async function firstChatModel(client: Client, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { data } = await client.models.list({ signal });
    return data.find(({ capabilities }) => capabilities.chat)?.id;
  } catch {
    // The catalog is refused or late: who asks for a model hears more from the service itself.
    return undefined;
  }
}
