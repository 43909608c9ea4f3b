/** The service document of `GET /.well-known/lmsp` (LMSP §1). */
export interface ServiceDocument {
  readonly lmsp_version: string;
  readonly service: {
    /** Made once and kept; replicas of one service share it. */
    readonly id: string;
    readonly instance?: string;
    readonly name: string;
    readonly software: { readonly name: string; readonly version: string };
  };
  readonly auth: { readonly required: boolean; readonly schemes: readonly string[] };
  readonly interfaces: readonly ServiceInterface[];
  readonly features?: {
    readonly event_resume?: boolean;
    readonly idempotency?: boolean;
    readonly priorities?: boolean;
    readonly tasks?: readonly string[];
  };
  readonly limits?: { readonly request_bytes?: number; readonly event_retention_s?: number };
}

/** One endpoint through which the service can be used. */
export interface ServiceInterface {
  /** `lmsp`, `openai`, `ollama`, `nnrp`, or a kind that this client does not know. */
  readonly kind: string;
  /** Base URL. */
  readonly url: string;
  readonly version?: string;
  readonly operations?: readonly string[];
  /** Of `nnrp`: `tcp`, `websocket`, … */
  readonly transport?: string;
  readonly profile?: string;
  readonly compatibility_levels?: readonly number[];
  /** Of `nnrp`: URL of the capability document. */
  readonly capabilities?: string;
}
