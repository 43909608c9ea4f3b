/** What the service runs with, after file, environment and flags. Paths are absolute, durations in milliseconds. */
export interface Config {
  /** Name that people see in the service document and on the network. Default: the machine's host name. */
  readonly name: string;
  /** Address to listen on. Default 127.0.0.1: this machine only. */
  readonly host: string;
  /** TCP port, 0 … 65535. Default 7411; 0: any free port. */
  readonly port: number;
  /** Base URL that clients use when a proxy stands before the service, without a slash at its end. Absent: the checked Host of each request. */
  readonly publicUrl?: string;
  /** Folder of all state. Default `~/.plenum`. */
  readonly home: string;
  /** Folder of model files. Default `<home>/models`. */
  readonly models: string;
  /** Further host names, in lower case and without port, that a request's Host may have. Default none. */
  readonly hosts: readonly string[];
  /** Web origins (`https://host:port`) that may call from a browser; `*`: any. Default none beyond the local ones. */
  readonly corsOrigins: readonly string[];
  /** Addresses or CIDR ranges of proxies whose `X-Forwarded-*` headers are believed. Default none. */
  readonly trustedProxies: readonly string[];
  readonly limits: LimitsConfig;
  readonly store: StoreConfig;
  readonly auth: { readonly tokens: readonly TokenConfig[] };
  /** True: may listen beyond loopback without a token. Default false: then the first start makes one. */
  readonly insecureOpen: boolean;
  readonly log: { readonly level: LogLevel; readonly format: LogFormat };
  /** Absolute paths of PEM files, for addresses with TLS. Absent: there can be none. */
  readonly tls?: TlsFiles;
  readonly nnrp: NnrpConfig;
  readonly embedded: EmbeddedConfig;
  /** Servers that run models, in the file's order. Default none. */
  readonly runtimes: readonly RuntimeConfig[];
  /** True: looks for services of the local network, and announces this one when it listens beyond loopback. Default: true when it does. */
  readonly discovery: boolean;
  /** Further names of models, each with its model's name. Default none. */
  readonly aliases: ReadonlyMap<string, string>;
  /** Models of a runtime (`runtime/model`) that are the same as another one, with a name of that. Default none. */
  readonly sameAs: ReadonlyMap<string, string>;
  readonly pull: PullConfig;
  /** False: runtimes that already run on this machine are not looked for. Default true. */
  readonly findLocalRuntimes: boolean;
  /** False: never fetches the starter model. Default true: fetched when the folder holds no model file. */
  readonly starterModel: boolean;
  /** Configuration file that was read, absolute. Absent: there was none. */
  readonly file?: string;
}

export interface PullConfig {
  /** Base URL of the hub, without a slash at its end. Default https://huggingface.co. */
  readonly hubUrl: string;
  /** Token of the hub, from `HF_TOKEN`; a secret, never to be logged. Absent: only public repositories can be read. */
  readonly hubToken?: string;
}

/** Where the service keeps what outlives a request. */
interface StoreConfig {
  /** `sqlite`: a file. `memory`: everything ends with the process. Default `sqlite`. */
  readonly kind: "sqlite" | "memory";
  /** File of the database. Default `<home>/plenum.db`. */
  readonly path: string;
  /** Most bytes of the file; past that what ended longest ago goes. Default 2147483648 (2 GiB); 0: no limit. */
  readonly maxBytes: number;
  /** `never`: no text of a request or an answer is written. Default `always`. */
  readonly content: "always" | "never";
  /** Milliseconds that a task, background responses among them, is kept after its end. Default 604800000 (7 days). */
  readonly taskRetentionMs: number;
}

export interface LimitsConfig {
  /** Bytes of a request's body. Default 33554432 (32 MiB). */
  readonly requestBytes: number;
  /** Responses that wait at once; more are refused as `overloaded`. Default 512; 0: none waits. */
  readonly queue: number;
  /** Of these, responses of one principal. Absent: three quarters of `queue`. */
  readonly queuePerPrincipal?: number;
  /** Bytes of one response's event log; past that its head goes. Default 8388608 (8 MiB). */
  readonly logBytesPerResponse: number;
  /** Bytes of all event logs together. Default 268435456 (256 MiB). */
  readonly logBytesTotal: number;
  /** Milliseconds that a stored response's events stay readable after its end. Default 3600000 (`event_retention_s` 3600); 0: not at all. */
  readonly eventRetentionMs: number;
  /** Milliseconds that an unstored response's text stays readable after its end. Default 60000 (`text_retention_s` 60); 0: not at all. */
  readonly textRetentionMs: number;
  /** Milliseconds in which a lost reader may come back before the run is cancelled. Default 60000 (`resume_window_s` 60); 0: cancelled at once. */
  readonly resumeWindowMs: number;
  /** Milliseconds that a request waits for its model to load. Default 120000. */
  readonly loadTimeoutMs: number;
  /** Milliseconds in which a request's headers must have arrived. Default 30000. */
  readonly headerTimeoutMs: number;
  /** Milliseconds that a connection may stay silent while the service waits for its bytes. Default 75000; 0: for ever. */
  readonly idleTimeoutMs: number;
  /** Milliseconds that running responses get to finish when the service stops. Default 30000; 0: none. */
  readonly drainMs: number;
  /** Milliseconds from acceptance after which a response without a deadline of its own is stopped. Default 0: none. */
  readonly defaultDeadlineMs: number;
}

export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

export interface NnrpConfig {
  /** Addresses beside WebSocket at `/nnrp` of the HTTP port: `tcp://`, `tls://`, `ws://`, `wss://`, `unix://`, `npipe://`. Default none. */
  readonly listen: readonly string[];
  /** Connections at once. Default 1024. */
  readonly connections: number;
  /** Sessions of one connection. Default 64. */
  readonly sessionsPerConnection: number;
  /** Operations of one session in flight. Default 64. */
  readonly operationsPerSession: number;
  /** Bytes of a received packet. Default 16777216 (16 MiB). */
  readonly frameBytes: number;
  /** Milliseconds from connecting to the hello. Default 10000. */
  readonly handshakeTimeoutMs: number;
  /** Milliseconds without a packet and without an operation. Default 600000; 0: for ever. */
  readonly idleTimeoutMs: number;
}

export type Scope = "read" | "infer" | "manage" | "admin";

export interface TokenConfig {
  /** Who owns what is made with this token. Several tokens may name one principal. */
  readonly principal: string;
  /** SHA-256 of the token, 64 hex digits in lower case. */
  readonly tokenSha256: string;
  readonly scopes: readonly Scope[];
  /** Catalog ids, or patterns with `*`, that it may use. Absent: every model. */
  readonly models?: readonly string[];
  /** Milliseconds since the epoch. Absent: never. */
  readonly expiresAtMs?: number;
  /** Highest priority that a request may ask for, -8 … 8. Absent: 8. */
  readonly topPriority?: number;
  /** Requests accepted in any 60 s. Absent: no limit. */
  readonly requestsPerMinute?: number;
  /** Tokens of prompts and answers that ended in any 60 s. Absent: no limit. */
  readonly tokensPerMinute?: number;
  /** Responses that wait or run at once. Absent: no limit. */
  readonly concurrency?: number;
}

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
export type LogFormat = "json" | "pretty";

export interface EmbeddedConfig {
  /** False: no model file is served. Default true. */
  readonly enabled: boolean;
  /** Responses that one model runs at once, 1 … 64. Default 4. */
  readonly parallel: number;
  /** Tokens of prompt and answer together. Absent: as trained, lowered to fit memory. */
  readonly contextTokens?: number;
  /** Threads of the engine. Absent: the machine's cores. */
  readonly threads?: number;
  /** `auto`: the installed GPU build that loads; `off`: the processor. A build that does not load falls back to it. Default `auto`. */
  readonly gpu: "auto" | "off" | "cuda" | "vulkan";
  /** Milliseconds that an idle model stays loaded. Default 1800000 (`keep_alive: 30m`); 0: unloaded after each use; -1: never unloaded. */
  readonly keepAliveMs: number;
  /** Memory that all loaded models may take together: up to 1 a share of the machine's or container's, else bytes. Default 0.8. */
  readonly memoryBudget: number;
  /** Settings of single models, by file name or catalog id. */
  readonly models: Readonly<Record<string, EmbeddedModelConfig>>;
}

export type RuntimeKind = "ollama" | "openai-compatible" | "llama-server" | "vllm" | "lm-studio" | "nnrp" | "lmsp";

export interface RuntimeConfig {
  /** Its id: `<name>/<model>` always names a model. */
  readonly name: string;
  readonly kind: RuntimeKind;
  /** Base URL without `/v1` or `/api` and without a slash at its end. */
  readonly url: string;
  /** Bearer token; a secret, never to be logged. Absent: none is sent. */
  readonly apiKey?: string;
  /** Absolute path of a PEM file of certificates that are trusted instead of the platform's. Only for kind `nnrp`. */
  readonly ca?: string;
  /** Sent with every request; may hold secrets. Default none. */
  readonly headers: Readonly<Record<string, string>>;
  /** Responses that one of its models runs at once, 1 … 65536. Absent: as its kind has it. */
  readonly parallel?: number;
  /** Milliseconds until the head of an answer. Absent: 600000. */
  readonly headTimeoutMs?: number;
  /** Milliseconds of silence within an answer. Absent: 300000. */
  readonly silenceTimeoutMs?: number;
  /** Its own model names, or patterns with `*`, that are offered. Absent: every model. */
  readonly models?: readonly string[];
}

export interface EmbeddedModelConfig {
  /** Catalog id. Absent: made from the file. */
  readonly id?: string;
  /** Further names. Default none. */
  readonly aliases: readonly string[];
  /** As in `embedded`. Absent: the value there. */
  readonly contextTokens?: number;
  /** As in `embedded`. Absent: the value there. */
  readonly parallel?: number;
}
