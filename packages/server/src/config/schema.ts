import { z } from "zod";
import { durationForm } from "./durations.ts";
import { parseNetwork } from "./networks.ts";
import { nnrpSchema } from "./nnrp-schema.ts";
import { flag, list, oneOf, pattern, section, text, wholeNumber } from "./options.ts";
import { runtimesSchema } from "./runtimes-schema.ts";
import { sizeForm } from "./sizes.ts";

/** `plenum.config.yaml`: what a person writes. Nothing here is changed on the way; `to-config.ts` does that. */

const limits = section({
  request_bytes: wholeNumber("Bytes of a request's body.", 1024).default(33_554_432),
  queue: wholeNumber(
    "Responses that wait at once; more are refused as overloaded. 0: none waits.",
    0,
    1_000_000,
  ).default(512),
  queue_per_principal: wholeNumber(
    "Responses of one principal that wait at once. Absent: three quarters of `queue`.",
    1,
    1_000_000,
  ).optional(),
  log_bytes_per_response: wholeNumber("Bytes of one response's event log; past that its head goes.", 4096).default(
    8_388_608,
  ),
  log_bytes_total: wholeNumber(
    "Bytes of all event logs together, and as many again for requests and outputs; past that the oldest ended ones go.",
    65_536,
  ).default(268_435_456),
  event_retention_s: wholeNumber(
    "Seconds that a stored response's events stay readable after its end. 0: not at all.",
    0,
  ).default(3600),
  text_retention_s: wholeNumber(
    "Seconds that the text of a response that is not stored stays readable after its end. 0: not at all.",
    0,
  ).default(60),
  resume_window_s: wholeNumber(
    "Seconds in which a lost reader may come back before its response is cancelled. 0: cancelled at once.",
    0,
  ).default(60),
  load_timeout_ms: wholeNumber("Milliseconds that a request waits for its model to load.", 1000).default(120_000),
  header_timeout_ms: wholeNumber("Milliseconds in which a request's headers must have arrived.", 1000).default(30_000),
  idle_timeout_ms: wholeNumber(
    "Milliseconds that a connection may stay idle, a request may take to arrive, and a client may take nothing of its stream. 0: for ever.",
    0,
  ).default(75_000),
  drain_ms: wholeNumber(
    "Milliseconds that running responses get to finish when the service stops. 0: none.",
    0,
  ).default(30_000),
  default_deadline_ms: wholeNumber(
    "Milliseconds from acceptance after which a response without a deadline of its own is stopped. 0: none.",
    0,
  ).default(0),
});

const tls = section({
  cert: text("PEM file of the certificate and of those between it and its root.", "a file"),
  key: text("PEM file of its key.", "a file"),
});

const store = section({
  kind: oneOf("`sqlite`: kept in a file. `memory`: everything ends with the process.", ["sqlite", "memory"]).default(
    "sqlite",
  ),
  path: text("File of the database. Absent: `plenum.db` in the home folder.", "a file").optional(),
  max_bytes: z
    .union([z.literal(0), z.int().min(16_777_216)], { error: "a whole number of 16777216 or more, or 0 for no limit" })
    .describe("Most bytes of the file; past that what ended longest ago goes. 0: no limit.")
    .default(2_147_483_648),
  content: oneOf(
    "`never`: no text of a request or an answer is written to disk; background responses and batches are refused.",
    ["always", "never"],
  ).default("always"),
  task_retention_s: wholeNumber(
    "Seconds that a task is kept after its end; a background response is a task.",
    0,
  ).default(604_800),
});

const token = section({
  principal: text("Who owns what is made with this token; several tokens may name one principal.", "a name"),
  token_sha256: pattern(
    "SHA-256 of the token; `plenum tokens create --for-config` prints it.",
    /^[0-9a-f]{64}$/,
    "the SHA-256 of the token, 64 hex digits in lower case (`plenum tokens create --for-config` makes both)",
  ),
  scopes: list(
    "What it allows: read (catalog, own responses), infer, manage (models, runtimes), admin (everything).",
    oneOf("A scope.", ["read", "infer", "manage", "admin"]),
    "a list of read, infer, manage, admin",
  ).min(1, { error: "at least one of read, infer, manage, admin" }),
  models: list(
    "Catalog ids, or patterns with `*`, that it may use. Absent: every model.",
    text("A catalog id or pattern.", "a model id or a pattern with *"),
    "a list of model ids",
  ).optional(),
  expires_at: z.iso
    .datetime({ offset: true, error: "an instant such as 2030-01-31T00:00:00Z" })
    .describe("Instant (RFC 3339) from which it is refused. Absent: never.")
    .optional(),
  top_priority: wholeNumber("Highest priority that a request may ask for. Absent: 8.", -8, 8).optional(),
  requests_per_minute: wholeNumber("Requests accepted in any 60 s. Absent: no limit.", 0).optional(),
  tokens_per_minute: wholeNumber(
    "Tokens of prompts and answers that ended in any 60 s. Absent: no limit.",
    0,
  ).optional(),
  concurrency: wholeNumber("Responses that wait or run at once. Absent: no limit.", 0).optional(),
});

const network = "an address or a CIDR range such as 192.168.0.0/16";

const contextTokens = wholeNumber(
  "Tokens of prompt and answer together. Absent: as trained, lowered to fit memory.",
  128,
  16_777_216,
).optional();

const embeddedModel = section({
  id: text("Catalog id. Absent: made from the file.", "a model id").optional(),
  aliases: list("Further names of the model.", text("A name.", "a name"), "a list of names").default([]),
  context_tokens: contextTokens,
  parallel: wholeNumber("Responses that run at once. Absent: the value of `embedded`.", 1, 64).optional(),
});

const durationError = { error: 'a duration such as "30m", milliseconds, or -1 for never unloaded' };

const budgetError = { error: 'a share such as "80%", a size such as "12GiB", or bytes' };

const embedded = section({
  enabled: flag("False: no model file is served.").default(true),
  parallel: wholeNumber("Responses that one model runs at once; more wait in the queue.", 1, 64).default(4),
  context_tokens: contextTokens,
  threads: wholeNumber("Threads of the engine. Absent: the machine's cores.", 1, 1024).optional(),
  gpu: oneOf(
    "Which build of the engine runs the models: `auto` the installed GPU build that loads, `off` the processor.",
    ["auto", "off", "cuda", "vulkan"],
  ).default("auto"),
  keep_alive: z
    .union([z.int(durationError).min(-1, durationError), z.string().regex(durationForm, durationError)], durationError)
    .describe("How long an idle model stays loaded. 0: unloaded after each use; -1: never unloaded.")
    .default("30m"),
  memory_budget: z
    .union([z.int(budgetError).min(1_048_576, budgetError), z.string().regex(sizeForm, budgetError)], budgetError)
    .describe("Memory that all loaded models may take together: a share of the machine's or container's, or a size.")
    .default("80%"),
  models: z
    .record(z.string(), embeddedModel, { error: "a mapping from file name or model id to its settings" })
    .describe("Settings of single models, by file name or catalog id.")
    .default({}),
});

const modelName = z
  .string({ error: "a model's name" })
  .regex(/^\S{1,256}$/, { error: "a model's name, without spaces" });

/** Scopes, levels and the rest as the file spells them. Unknown keys are errors. */
export const configSchema = section({
  name: text("Name that people see. Absent: the machine's host name.", "a name").optional(),
  host: text("Address to listen on; 0.0.0.0 or :: for every network.", "a host name or an IP address").default(
    "127.0.0.1",
  ),
  port: wholeNumber("TCP port. 0: any free one.", 0, 65_535).default(7411),
  public_url: z
    .url({ protocol: /^https?$/, error: "a URL such as https://models.example.com" })
    .describe("Base URL that clients use when a proxy stands before the service. Absent: the Host of each request.")
    .optional(),
  home: text("Folder of all state.", "a folder").default("~/.plenum"),
  models: text("Folder of model files. Absent: `models` in the home folder.", "a folder").optional(),
  hosts: list(
    "Further host names that a request may be sent to, beside loopback, IP addresses and .local names.",
    pattern("A host name.", /^[^\s:/]+$/, "a host name without scheme and port"),
    "a list of host names",
  ).default([]),
  cors_origins: list(
    "Web origins that may call from a browser, beside the local ones; `*`: any.",
    pattern("An origin.", /^(\*|[a-z][a-z0-9+.-]*:\/\/[^\s/]*)$/i, "an origin such as https://app.example.com, or *"),
    "a list of origins",
  ).default([]),
  trusted_proxies: list(
    "Addresses or CIDR ranges of proxies whose X-Forwarded-For, -Proto and -Host are believed.",
    text("A proxy or a range of them.", network).refine((written) => parseNetwork(written) !== undefined, network),
    "a list of addresses or CIDR ranges",
  ).default([]),
  limits: limits.prefault({}),
  store: store.prefault({}),
  auth: section({
    tokens: list("Bearer tokens; none: open on loopback.", token, "a list of tokens").default([]),
  }).prefault({}),
  insecure_open: flag("True: may listen beyond loopback without a token.").default(false),
  log: section({
    level: oneOf("Least important lines that are written.", [
      "trace",
      "debug",
      "info",
      "warn",
      "error",
      "fatal",
      "silent",
    ]).default("info"),
    format: oneOf("Absent: pretty on a terminal, json elsewhere.", ["json", "pretty"]).optional(),
  }).prefault({}),
  tls: tls.optional(),
  nnrp: nnrpSchema.prefault({}),
  embedded: embedded.prefault({}),
  runtimes: runtimesSchema,
  aliases: z
    .record(modelName, modelName, { error: "a mapping from a further name to a model's name" })
    .describe("Further names of models: the name that clients use, and the model that it stands for.")
    .default({}),
  same_as: z
    .record(modelName, modelName, { error: "a mapping from runtime/model to a model's name" })
    .describe(
      "Models of a runtime (`runtime/model`) that are the same as another one: one entry of the catalog with both runtimes.",
    )
    .default({}),
  pull: section({
    hub_url: z
      .url({ protocol: /^https?$/, error: "a URL such as https://huggingface.co" })
      .describe(
        "Base URL of the hub that `hf:` sources come from; http only on this machine. HF_TOKEN holds its token.",
      )
      .default("https://huggingface.co"),
  }).prefault({}),
  discovery: flag(
    "True: looks for services of the local network by mDNS, and announces this one when it listens beyond loopback. Absent: true when it does.",
  ).optional(),
  find_local_runtimes: flag("True: runtimes that already run on this machine are looked for and served.").default(true),
  starter_model: flag("True: a small model is fetched when the folder holds no model file.").default(true),
});

/** A checked file, with its defaults filled in. */
export type ConfigFile = z.output<typeof configSchema>;
