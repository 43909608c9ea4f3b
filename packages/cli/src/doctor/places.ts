import type { Config } from "@plenum/server";
import type { ConnectionFlags } from "../connection.ts";
import type { PlaceFlags } from "../own-config.ts";

export type DoctorFlags = ConnectionFlags & PlaceFlags & { readonly json?: boolean };

/** What the checks know of the configuration; with a wrong one, what they can do without. */
export interface Places {
  readonly home: string;
  readonly models: string;
  readonly host: string;
  readonly port: number;
  /** Undefined: it can't be used. */
  readonly config: Config | undefined;
}
