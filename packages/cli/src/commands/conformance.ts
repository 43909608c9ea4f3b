import { type Command, InvalidArgumentError, Option } from "commander";
import type { TargetFlags as LmspTargetFlags } from "../conformance/lmsp/target-flags.ts";
import { type ApiProfileFlags, planVariable, resultsVariable } from "../conformance/nnrp/api-profile-flags.ts";
import type { TargetFlags } from "../conformance/nnrp/target-flags.ts";
import { type WireTargetFlags, type WireTransport, wireTransports } from "../conformance/nnrp/wire-target-flags.ts";
import type { ExitCode } from "../exit-codes.ts";
import { wholeWithin } from "../read-number.ts";
import type { Surroundings } from "../surroundings.ts";

/** Adds `plenum conformance lmsp` and `plenum conformance nnrp`. */
export function addConformance(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  const conformance = program
    .command("conformance")
    .summary("judge implementations of a protocol")
    .description("Judges implementations of a protocol, this one's among them.");
  addJudgeService(conformance, around, done);
  const nnrp = conformance
    .command("nnrp")
    .summary("judge NNRP and its profile openai-compatible/1")
    .description(
      "Judges services that speak NNRP with the profile openai-compatible/1, and is judged by outside suites.",
    );
  addRunCases(nnrp, around, done);
  addApiProfile(nnrp, around, done);
  addWireTarget(nnrp, around, done);
}

function addJudgeService(conformance: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  conformance
    .command("lmsp <url>")
    .summary("judge a service that speaks LMSP")
    .description(
      "Judges any LMSP service from outside: its document, catalog, problems, streams and their resuming, tasks, tokens, and " +
        "page 8's rules for the compatible interfaces. It makes and deletes responses of its own and changes nothing else. " +
        "What the service does not declare is skipped.",
    )
    .option("--token <token>", "bearer token (PLENUM_TOKEN)")
    .option("--other-token <token>", "token of another principal, to whom nothing of the first is there")
    .option("--model <id>", "answers chats (default: the first that can)")
    .option("--only <prefix>", "only cases whose id begins so, such as events; may be repeated", collect)
    .option("--timeout <seconds>", "longest time of a request, 1 … 600", wholeWithin(1, 600), 30)
    .option("--output <file>", "where the report goes, as JSON")
    .option("--json", "print the report as JSON")
    .addHelpText(
      "after",
      `
Examples:
  plenum conformance lmsp http://127.0.0.1:7411
  plenum conformance lmsp http://studio.local:7411 --token plenum_… --other-token plenum_… --output report.json
  plenum conformance lmsp http://127.0.0.1:7411 --only events --only tasks`,
    )
    .action(async (url: string, flags: LmspTargetFlags) => {
      const { judgeService } = await import("../conformance/lmsp/target-command.ts");
      done(await judgeService(url, flags, around));
    });
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function addRunCases(nnrp: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  nnrp
    .command("run", { isDefault: true })
    .summary("judge a service; `run` may be left out")
    .description(
      "Judges any service: the recipes of nnrp-conformance, what becomes of nnrp.diagnostics, and wrong requests. Each case " +
        "goes over a connection of its own, and every packet of the service is checked. What the service does not claim " +
        "in its capability document is skipped.",
    )
    .requiredOption(
      "--target <address>",
      "such as nnrp://host:port, tcp://…, tls://…, ws://…/nnrp, wss://… or unix:///path",
    )
    .option("--capabilities <source>", "capability document: a file or an HTTP address (default: asked of the service)")
    .option("--model <name>", "answers chats (default: example-model, else the first model)")
    .option("--error-model <name>", "always fails in the backend (default: backend-error, where there is one)")
    .option("--token <token>", "bearer token, sent in each request (PLENUM_TOKEN)")
    .option("--timeout <seconds>", "longest time of a case, 1 … 600", wholeWithin(1, 600), 30)
    .option("--output <file>", "where the report goes, as JSON")
    .option("--emit-vectors <file>", "where every packet of every case goes, as JSON")
    .option("--json", "print the report as JSON")
    .addHelpText(
      "after",
      `
Examples:
  plenum conformance nnrp --target nnrp://127.0.0.1:7412
  plenum conformance nnrp --target ws://127.0.0.1:7411/nnrp --model smollm2:135m --output report.json
  plenum conformance nnrp --target unix:///run/nnrp.sock --capabilities capabilities.json --emit-vectors vectors.json`,
    )
    .action(async (flags: TargetFlags) => {
      const { judgeTarget } = await import("../conformance/nnrp/target-command.ts");
      done(await judgeTarget(flags, around));
    });
}

function addApiProfile(nnrp: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  nnrp
    .command("api-profile")
    .summary("run an API profile plan of nnrp-conformance")
    .description(
      "Runs the cases of a plan that nnrp-conformance made (`api-profile-plan`) and writes its case results. Each case " +
        "goes over an NNRP connection of its own to this service's door and core, with a backend whose answers are fixed.",
    )
    .option("--plan <file>", `execution plan (${planVariable})`)
    .option("--output <file>", `where the case results go (${resultsVariable})`)
    .option("--json", "print the case results as JSON")
    .addHelpText(
      "after",
      `
Examples:
  plenum conformance nnrp api-profile --plan plan.json --output results.json`,
    )
    .action(async (flags: ApiProfileFlags) => {
      const { apiProfile } = await import("../conformance/nnrp/api-profile-command.ts");
      done(await apiProfile(flags, around));
    });
}

function addWireTarget(nnrp: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  nnrp
    .command("wire-target")
    .summary("stand as a target of nnrp-conformance's live scenarios")
    .description(
      "As a server: opens this service's door and core with fixed answers on free ports, writes the target manifest, and " +
        "stays until SIGTERM or Ctrl-C. As a client: writes the manifest with free ports, waits until the suite listens " +
        "there, does one exchange on each, and ends.",
    )
    .addOption(
      new Option("--role <role>", "server or client; the suite is the other")
        .choices(["server", "client"])
        .makeOptionMandatory(),
    )
    .requiredOption("--ready-output <file>", "where the target manifest goes, once everything is open")
    .option("--transports <list>", "tcp, ipc, websocket (default: all; as a client: tcp, websocket)", readTransports)
    .option("--tls <folder>", "cert.der and key.der (PKCS #8) for localhost: WebSocket is then wss")
    .option("--wait <seconds>", "as a client: how long the suite may take, 1 … 3600", wholeWithin(1, 3600), 60)
    .option("--json", "print the manifest as JSON")
    .addHelpText(
      "after",
      `
Examples:
  plenum conformance nnrp wire-target --role server --ready-output target.json
  plenum conformance nnrp wire-target --role client --ready-output target.json --transports tcp`,
    )
    .action(async (flags: WireTargetFlags) => {
      const { wireTarget } = await import("../conformance/nnrp/wire-target-command.ts");
      done(await wireTarget(flags, around));
    });
}

function readTransports(value: string): readonly WireTransport[] {
  const names = value.split(",").map((name) => name.trim());
  const transports = wireTransports.filter((name) => names.includes(name));
  if (transports.length === new Set(names).size) return transports;
  throw new InvalidArgumentError("It is no list such as tcp,ipc,websocket.");
}
