import { setTimeout } from "node:timers/promises";
import type { Client } from "@plenum/client";

/**
 * Id of the first chat model of a service that has just started and still looks through its folder.
 * @param waitMs longest wait, in milliseconds.
 * @returns undefined when none is known by then.
 */
export async function firstChatModel(client: Client, waitMs: number): Promise<string | undefined> {
  const signal = AbortSignal.timeout(waitMs);
  try {
    while (true) {
      const { data } = await client.models.list({ signal });
      const found = data.find((model) => model.capabilities.chat);
      if (found !== undefined) return found.id;
      await setTimeout(50, undefined, { signal });
    }
  } catch {
    // Time is up, or the catalog is refused: who asks for a model hears more from the service itself.
    return undefined;
  }
}
