import { createHash, randomBytes } from "node:crypto";
import type { LmspToken, NewToken, TokenRequest } from "@plenum/client";
import { type Command, InvalidArgumentError } from "commander";
import { type JsonFlags, withConnection, writeJson } from "../connection.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { type PlaceFlags, withPlaces } from "../own-config.ts";
import { readWhole, wholeWithin } from "../read-number.ts";
import { type Surroundings, withoutControls } from "../surroundings.ts";
import { table } from "../table.ts";
import { withTokens } from "../tokens/with-tokens.ts";

type Flags = JsonFlags & PlaceFlags;

interface CreateFlags extends Flags {
  readonly principal: string;
  readonly name?: string;
  readonly scope?: readonly TokenRequest["scopes"][number][];
  readonly model?: readonly string[];
  readonly expires?: string;
  readonly requestsPerMinute?: number;
  readonly tokensPerMinute?: number;
  readonly concurrency?: number;
  readonly topPriority?: number;
  readonly forConfig?: boolean;
}

interface ListFlags extends Flags {
  readonly principal?: string;
}

interface RotateFlags extends Flags {
  readonly grace: number;
}

const knownScopes: readonly TokenRequest["scopes"][number][] = ["read", "infer", "manage", "admin"];

/** Adds `plenum tokens create|list|rotate|revoke`. */
export function addTokens(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  const tokens = program
    .command("tokens")
    .summary("make, list, exchange and end tokens")
    .description(
      "Tokens of a service. The service is asked; where none answers and no address is named, those in this machine's " +
        "own folder are changed.",
    );
  addCreate(tokens, around, done);
  withPlaces(withConnection(tokens.command("list")))
    .summary("list them")
    .description("Lists tokens: whose, what for, within which limits, when used last. Never the tokens themselves.")
    .option("--principal <id>", "only of this principal")
    .option("--json", "print the list as JSON")
    .addHelpText("after", "\nExamples:\n  plenum tokens list\n  plenum tokens list --principal ada --json")
    .action(async (flags: ListFlags) => done(await list(flags, around)));
  withPlaces(withConnection(tokens.command("rotate <id>")))
    .summary("exchange one for another")
    .description("Makes a token with the same rights and prints it once; the old one ends after the grace.")
    .option("--grace <seconds>", "how long the old one still works, up to 2592000 (30 days)", readGrace, 0)
    .option("--json", "print the new token as JSON")
    .addHelpText("after", "\nExamples:\n  plenum tokens rotate tok_0a1b\n  plenum tokens rotate tok_0a1b --grace 3600")
    .action(async (id: string, flags: RotateFlags) => done(await rotate(id, flags, around)));
  withPlaces(withConnection(tokens.command("revoke <id>")))
    .summary("end one at once")
    .description("Ends a token at once; what is open with it is cut.")
    .option("--json", "print the id as JSON")
    .addHelpText("after", "\nExamples:\n  plenum tokens revoke tok_0a1b")
    .action(async (id: string, flags: Flags) => done(await revoke(id, flags, around)));
}

const readGrace = wholeWithin(0, 2_592_000);

function addCreate(tokens: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  withPlaces(withConnection(tokens.command("create")))
    .summary("make one")
    .description(
      "Makes a token of 256 random bits and prints it once: only its SHA-256 is kept, and who loses it makes another " +
        "one. The first token of a service must have the scope admin; from then on every request needs one.",
    )
    .requiredOption("--principal <id>", "who owns what is made with the token: a person or an app")
    .option("--name <text>", "what it is for, for people to read")
    .option("--scope <scope>", `one of ${knownScopes.join(", ")}; may be repeated (default: read, infer)`, collectScope)
    .option("--model <pattern>", "model id or pattern with * that it may use; may be repeated (default: all)", collect)
    .option("--expires <instant>", "when it ends, such as 2030-01-31T00:00:00Z (default: never)", readInstant)
    .option("--requests-per-minute <number>", "requests accepted in any 60 s (default: no limit)", readWhole)
    .option("--tokens-per-minute <number>", "tokens of prompts and answers in any 60 s (default: no limit)", readWhole)
    .option("--concurrency <number>", "responses that wait or run at once (default: no limit)", readWhole)
    .option("--top-priority <number>", "highest priority that it may ask for, -8 … 8 (default: 8)", readPriority)
    .option("--for-config", "print lines for plenum.config.yaml instead; no service is asked or changed")
    .option("--json", "print the token with its rights as JSON")
    .addHelpText(
      "after",
      `
Examples:
  plenum tokens create --principal ops --scope admin
  plenum tokens create --principal ada --name laptop
  plenum tokens create --principal ci --scope infer --model 'smollm2*' --requests-per-minute 60
  plenum tokens create --principal ada --for-config`,
    )
    .action(async (flags: CreateFlags) => done(await create(flags, around)));
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function collectScope(
  value: string,
  before: readonly (typeof knownScopes)[number][] = [],
): readonly (typeof knownScopes)[number][] {
  const scopes = value.split(",").map((word) => {
    const scope = knownScopes.find((known) => known === word.trim());
    if (scope === undefined) throw new InvalidArgumentError(`"${word.trim()}" is none of ${knownScopes.join(", ")}.`);
    return scope;
  });
  return [...before, ...scopes];
}

function readInstant(value: string): string {
  const instant = new Date(value);
  if (Number.isNaN(instant.getTime())) throw new InvalidArgumentError("It is no instant such as 2030-01-31T00:00:00Z.");
  return instant.toISOString();
}

function readPriority(value: string): number {
  const number = /^-?\d$/.test(value) ? Number(value) : Number.NaN;
  if (!(Math.abs(number) <= 8)) throw new InvalidArgumentError("It is no whole number from -8 to 8.");
  return number;
}

async function create(flags: CreateFlags, around: Surroundings): Promise<ExitCode> {
  if (flags.forConfig) return createForConfig(flags, around);
  const { principal, name, model: models, expires } = flags;
  const limits = limitsOf(flags);
  const request: TokenRequest = {
    principal,
    scopes: scopesOf(flags),
    ...(name !== undefined && { name }),
    ...(models !== undefined && { models }),
    ...(expires !== undefined && { expires_at: expires }),
    ...(Object.keys(limits).length > 0 && { limits }),
  };
  return withTokens(flags, around, async (tokens, signal) => {
    showNew(await tokens.create(request, { signal }), flags, around);
  });
}

function scopesOf({ scope }: CreateFlags): TokenRequest["scopes"] {
  return [...new Set(scope ?? (["read", "infer"] as const))];
}

function limitsOf(flags: CreateFlags): NonNullable<TokenRequest["limits"]> {
  const { requestsPerMinute, tokensPerMinute, concurrency, topPriority } = flags;
  return {
    ...(requestsPerMinute !== undefined && { requests_per_minute: requestsPerMinute }),
    ...(tokensPerMinute !== undefined && { tokens_per_minute: tokensPerMinute }),
    ...(concurrency !== undefined && { concurrency }),
    ...(topPriority !== undefined && { top_priority: topPriority }),
  };
}

/** The token alone on the output, so that a script can take it; what else there is to say beside it. */
function showNew(made: NewToken, flags: JsonFlags, around: Surroundings): void {
  if (flags.json) {
    writeJson(around, made);
    return;
  }
  around.errors.write(
    withoutControls(
      `Token ${made.id} of ${made.principal} (${made.scopes.join(", ")}), shown only now. Clients send it as ` +
        "`Authorization: Bearer …`; OpenAI clients take it as their API key, plenum by PLENUM_TOKEN.\n",
    ),
  );
  around.output.write(`${made.token}\n`);
}

function createForConfig(flags: CreateFlags, around: Surroundings): ExitCode {
  const token = `plenum_${randomBytes(32).toString("base64url")}`;
  const entry = {
    principal: flags.principal,
    token_sha256: createHash("sha256").update(token).digest("hex"),
    scopes: scopesOf(flags),
    ...(flags.model !== undefined && { models: flags.model }),
    ...(flags.expires !== undefined && { expires_at: flags.expires }),
    ...limitsOf(flags),
  };
  if (flags.json) writeJson(around, { token, config: entry });
  else around.output.write(explain(token, entry));
  return exitCodes.ok;
}

function explain(token: string, entry: Readonly<Record<string, unknown>>): string {
  // JSON is YAML: a name with a colon or a quote stays one value.
  const lines = Object.entries(entry).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  return `The token (shown only now):

  ${token}

Put this into plenum.config.yaml and start the service again:

auth:
  tokens:
    - ${lines.join("\n      ")}

Clients send it as \`Authorization: Bearer …\`; OpenAI clients take it as their API key, plenum by PLENUM_TOKEN.
`;
}

async function list(flags: ListFlags, around: Surroundings): Promise<ExitCode> {
  return withTokens(flags, around, async (tokens, signal) => {
    const page = await tokens.list({ signal });
    const data = page.data.filter(({ principal }) => flags.principal === undefined || principal === flags.principal);
    if (flags.json) writeJson(around, { ...page, data });
    else if (data.length > 0) around.output.write(withoutControls(table([headings, ...data.map(rowOf)])));
    else around.errors.write("There are no tokens.\n");
  });
}

const headings = ["ID", "PRINCIPAL", "NAME", "SCOPES", "MODELS", "LIMITS", "EXPIRES", "LAST USED"];

function rowOf(token: LmspToken): readonly string[] {
  const limits = Object.entries(token.limits ?? {}).map(([name, value]) => `${name}=${value}`);
  return [
    token.id,
    token.principal,
    token.name ?? "-",
    token.scopes.join(","),
    token.models?.join(",") ?? "all",
    limits.join(",") || "-",
    token.expires_at ?? "never",
    token.last_used_at ?? "-",
  ];
}

async function rotate(id: string, flags: RotateFlags, around: Surroundings): Promise<ExitCode> {
  return withTokens(flags, around, async (tokens, signal) => {
    showNew(await tokens.rotate(id, flags.grace, { signal }), flags, around);
  });
}

async function revoke(id: string, flags: Flags, around: Surroundings): Promise<ExitCode> {
  return withTokens(flags, around, async (tokens, signal) => {
    await tokens.revoke(id, { signal });
    if (flags.json) writeJson(around, { revoked: id });
    else around.output.write(withoutControls(`${id} has ended.\n`));
  });
}
