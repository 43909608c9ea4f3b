import type { NearbyService, Neighbourhood } from "../ports/nearby.ts";
import { CoreError } from "../problems/core-error.ts";
import type { RuntimeSettings, RuntimeStatus } from "./runtime.ts";
import type { Runtimes } from "./runtimes.ts";

/** `approved`: a runtime uses it at this URL. */
export type NearbyState = "seen" | "approved" | "gone";

export interface NearbyEntry extends NearbyService {
  readonly state: NearbyState;
}

/** Services that were found on the local network. Each becomes a runtime only when a person approves it (LMSP §4). */
export class Nearby {
  readonly #neighbourhood: Neighbourhood;
  readonly #runtimes: Runtimes;

  constructor(neighbourhood: Neighbourhood, runtimes: Runtimes) {
    this.#neighbourhood = neighbourhood;
    this.#runtimes = runtimes;
  }

  list(): readonly NearbyEntry[] {
    const approved = this.#runtimes.added;
    return this.#neighbourhood.services().map((service) => {
      const isApproved = approved.some(({ serviceId, url }) => serviceId === service.id && url === service.url);
      return { ...service, state: isApproved ? "approved" : service.isGone ? "gone" : "seen" };
    });
  }

  /** Calls the listener after each change; the returned function ends that. */
  onChange(listener: () => void): () => void {
    const ends = [this.#neighbourhood.onChange(listener), this.#runtimes.onChange(listener)];
    return () => {
      for (const end of ends) end();
    };
  }

  /**
   * Makes a runtime of a found service, at the URL at which it answered. Its address is part of what is approved, since
   * anybody on the network can call themselves by its id: at another one it has to be approved again.
   * @param options.apiKey sent to it as a bearer token
   * @throws CoreError not-found; conflict when it is gone; invalid-request when it needs a token and none is given
   */
  async approve(id: string, { apiKey }: { readonly apiKey?: string } = {}): Promise<RuntimeStatus> {
    const service = this.#neighbourhood.services().find((each) => each.id === id);
    if (service === undefined) throw new CoreError("not-found", `No service '${id}' was found here.`, { param: "id" });
    if (service.isGone) throw new CoreError("conflict", `The service '${service.name}' is gone.`, { param: "id" });
    const before = this.#runtimes.added.find(({ serviceId }) => serviceId === id);
    const key = apiKey ?? (before?.url === service.url ? before.apiKey : undefined);
    if (service.auth === "bearer" && key === undefined) {
      const detail = `The service '${service.name}' needs a token: send one of its tokens as api_key.`;
      throw new CoreError("invalid-request", detail, { param: "api_key" });
    }
    const settings: RuntimeSettings = {
      id: before?.id ?? this.#freeId(service.name),
      kind: "lmsp",
      url: service.url,
      serviceId: id,
      ...(key === undefined ? {} : { apiKey: key }),
    };
    return before === undefined ? this.#runtimes.add(settings, "approved") : this.#runtimes.replace(settings);
  }

  /** The service's name as an id, with a number behind it when that is taken. */
  #freeId(name: string): string {
    const words = name.toLowerCase().replace(/[^a-z0-9._-]+/g, "-");
    const wanted = words.replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, "").slice(0, 48) || "nearby";
    for (let number = 1; ; number += 1) {
      const id = number === 1 ? wanted : `${wanted}-${number}`;
      if (!this.#runtimes.isTaken(id)) return id;
    }
  }
}
