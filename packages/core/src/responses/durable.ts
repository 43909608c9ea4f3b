import type { Storage } from "../ports/storage.ts";
import { CoreError } from "../problems/core-error.ts";

/** How a storage keeps what it is given. */
export type Durability = Pick<Storage, "isDurable" | "keepsContent" | "writeFault">;

/**
 * What has to be kept before it is accepted. A storage in memory is taken as it is: that nothing survives the process
 * was the operator's choice.
 * @param withText what holds text of clients, in the plural, such as `batches`; undefined: nothing does.
 * @throws CoreError insufficient-storage, unsupported-capability.
 */
export function requireDurable(storage: Durability, withText: string | undefined): void {
  if (storage.writeFault !== undefined) throw new CoreError("insufficient-storage", storage.writeFault);
  if (withText === undefined || storage.keepsContent) return;
  throw new CoreError(
    "unsupported-capability",
    `This service keeps no text on disk (store.content: never), so there are no ${withText}.`,
    { capability: "background", param: "background" },
  );
}
