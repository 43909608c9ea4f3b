import type {
  LmspPrincipal,
  LmspRuntime,
  LmspToken,
  MetricsHistory,
  NearbyService,
  NewToken,
  RuntimeRequest,
  TokenRequest,
} from "./admin.ts";
import { type Http, withQuery } from "./http.ts";
import type { Page } from "./models.ts";
import type { CallOptions } from "./responses-api.ts";

/** Principals and tokens need the scope `admin`, runtimes and nearby services `manage`, metrics `read`. */
export interface AdminApi {
  readonly principals: {
    list(options?: CallOptions): Promise<Page<LmspPrincipal>>;
    create(principal: { readonly id: string; readonly name?: string }, options?: CallOptions): Promise<LmspPrincipal>;
    /** With all its tokens. */
    delete(id: string, options?: CallOptions): Promise<void>;
  };
  readonly tokens: {
    list(options?: CallOptions): Promise<Page<LmspToken>>;
    /** The token itself is in this answer and in no other. */
    create(request: TokenRequest, options?: CallOptions): Promise<NewToken>;
    /** A new token with the same rights. @param graceS seconds that the old one still works. @default 0 */
    rotate(id: string, graceS?: number, options?: CallOptions): Promise<NewToken>;
    /** It stops working at once. */
    revoke(id: string, options?: CallOptions): Promise<void>;
  };
  readonly runtimes: {
    list(options?: CallOptions): Promise<Page<LmspRuntime>>;
    add(request: RuntimeRequest, options?: CallOptions): Promise<LmspRuntime>;
    /** Only what was added or approved; the configuration's own stay. @throws LmspError `conflict` */
    remove(id: string, options?: CallOptions): Promise<void>;
  };
  readonly nearby: {
    list(options?: CallOptions): Promise<Page<NearbyService>>;
    /** Its models join the catalog. @param apiKey token for it, where it needs one */
    approve(id: string, apiKey?: string, options?: CallOptions): Promise<LmspRuntime>;
  };
  /** @param span how far back, such as `1h`. @param step of time, such as `10s` */
  metrics(span?: string, step?: string, options?: CallOptions): Promise<MetricsHistory>;
}

const root = "/lmsp/v1";

/** The calls of operators. */
export function createAdminApi(http: Http): AdminApi {
  const list = <Item>(path: string) => {
    return ({ signal }: CallOptions = {}) => http.json<Page<Item>>({ path: `${root}/${path}`, signal });
  };
  const post = <Answer>(path: string, body: unknown, { signal }: CallOptions = {}) =>
    http.json<Answer>({ method: "POST", path: `${root}/${path}`, body, signal });
  const remove = (path: string) => {
    return (id: string, { signal }: CallOptions = {}) =>
      http.nothing({ method: "DELETE", path: `${root}/${path}/${encodeURIComponent(id)}`, signal });
  };
  return {
    principals: {
      list: list("principals"),
      create: (principal, options) => post("principals", principal, options),
      delete: remove("principals"),
    },
    tokens: {
      list: list("tokens"),
      create: (request, options) => post("tokens", request, options),
      rotate: (id, graceS = 0, options = {}) =>
        post(`tokens/${encodeURIComponent(id)}/rotate`, { grace_s: graceS }, options),
      revoke: remove("tokens"),
    },
    runtimes: {
      list: list("runtimes"),
      add: (request, options) => post("runtimes", request, options),
      remove: remove("runtimes"),
    },
    nearby: {
      list: list("nearby"),
      approve: (id, apiKey, options) =>
        post(`nearby/${encodeURIComponent(id)}/approve`, apiKey === undefined ? {} : { api_key: apiKey }, options),
    },
    metrics: (span, step, { signal } = {}) =>
      http.json({ path: withQuery(`${root}/metrics`, { window: span, step }), signal }),
  };
}
