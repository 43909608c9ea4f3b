import { createHash, randomBytes } from "node:crypto";
import { type Command, InvalidArgumentError } from "commander";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Surroundings } from "../surroundings.ts";

interface TokenFlags {
  readonly principal: string;
  readonly scope?: readonly string[];
  readonly model?: readonly string[];
  readonly expires?: string;
  readonly json?: boolean;
}

const knownScopes = ["read", "infer", "manage", "admin"];

/** Adds `plenum token create`. */
export function addToken(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  const token = program.command("token").summary("make tokens").description("Makes bearer tokens for a service.");
  token
    .command("create")
    .summary("make a token and its configuration lines")
    .description(
      "Makes a token of 256 random bits and prints it once, with the lines for plenum.config.yaml. Only its SHA-256 is " +
        "written down: who loses the token makes another one. No service is asked or changed.",
    )
    .requiredOption("--principal <name>", "who owns what is made with the token: a person or an app")
    .option("--scope <scope>", `one of ${knownScopes.join(", ")}; may be repeated (default: read, infer)`, collectScope)
    .option("--model <pattern>", "model id or pattern with * that it may use; may be repeated (default: all)", collect)
    .option("--expires <instant>", "when it ends, such as 2030-01-31T00:00:00Z (default: never)", readInstant)
    .option("--json", "print token and configuration entry as JSON")
    .addHelpText(
      "after",
      `
Examples:
  plenum token create --principal ada
  plenum token create --principal ci --scope infer --model 'smollm2*' --expires 2030-01-31T00:00:00Z
  plenum token create --principal ops --scope read --scope admin --json`,
    )
    .action((flags: TokenFlags) => done(createToken(flags, around)));
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function collectScope(value: string, before: readonly string[] = []): readonly string[] {
  const scopes = value.split(",").map((scope) => scope.trim());
  const unknown = scopes.find((scope) => !knownScopes.includes(scope));
  if (unknown !== undefined) throw new InvalidArgumentError(`"${unknown}" is none of ${knownScopes.join(", ")}.`);
  return [...before, ...scopes];
}

function readInstant(value: string): string {
  const instant = new Date(value);
  if (Number.isNaN(instant.getTime())) throw new InvalidArgumentError("It is no instant such as 2030-01-31T00:00:00Z.");
  return instant.toISOString();
}

function createToken(flags: TokenFlags, around: Surroundings): ExitCode {
  const token = `plenum_${randomBytes(32).toString("base64url")}`;
  const entry = {
    principal: flags.principal,
    token_sha256: createHash("sha256").update(token).digest("hex"),
    scopes: [...new Set(flags.scope ?? ["read", "infer"])],
    ...(flags.model !== undefined && { models: flags.model }),
    ...(flags.expires !== undefined && { expires_at: flags.expires }),
  };
  if (flags.json) around.output.write(`${JSON.stringify({ token, config: entry }, null, 2)}\n`);
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
