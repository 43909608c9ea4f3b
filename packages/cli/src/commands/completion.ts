import { Argument, type Command } from "commander";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Surroundings } from "../surroundings.ts";

type Shell = "bash" | "zsh" | "fish";

/** Adds `plenum completion`. */
export function addCompletion(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  program
    .command("completion")
    .summary("completion for your shell")
    .description("Prints a script that completes commands and flags; load it at the start of your shell.")
    .addArgument(new Argument("<shell>").choices(["bash", "zsh", "fish"]))
    .addHelpText(
      "after",
      `
Examples:
  plenum completion bash >> ~/.bashrc
  plenum completion zsh > "\${fpath[1]}/_plenum"
  plenum completion fish > ~/.config/fish/completions/plenum.fish`,
    )
    .action((shell: Shell) => {
      around.output.write(scripts[shell](wordsOf(program)));
      done(exitCodes.ok);
    });
}

/** What may follow each command: its subcommands and flags. */
type Words = ReadonlyMap<string, { readonly commands: readonly string[]; readonly flags: readonly string[] }>;

function wordsOf(program: Command): Words {
  const words = new Map<string, { commands: string[]; flags: string[] }>();
  const visit = (command: Command, path: string): void => {
    const flags = command.options.flatMap(({ long }) => (long ? [long] : []));
    words.set(path, { commands: command.commands.map((sub) => sub.name()), flags: [...flags, "--help"] });
    for (const sub of command.commands) visit(sub, `${path} ${sub.name()}`.trim());
  };
  visit(program, "");
  return words;
}

const scripts: Record<Shell, (words: Words) => string> = {
  bash: (words) => `_plenum() {
  local path="" word reply="" index
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    case "$path|$word" in
${[...words.keys()]
  .filter((path) => path !== "")
  .map((path) => `      "${parentOf(path)}|${lastOf(path)}") path="${path}" ;;`)
  .join("\n")}
    esac
  done
  case "$path" in
${[...words].map(([path, { commands, flags }]) => `    "${path}") reply="${[...commands, ...flags].join(" ")}" ;;`).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$reply" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _plenum plenum
`,
  zsh: (words) => `#compdef plenum
autoload -U +X bashcompinit && bashcompinit
${scripts.bash(words)}`,
  fish: (words) =>
    [...words]
      .flatMap(([path, { commands, flags }]) => {
        const condition = path === "" ? "__fish_use_subcommand" : `__fish_seen_subcommand_from ${path.split(" ")[0]}`;
        const sub = path.includes(" ") ? `${condition}; and __fish_seen_subcommand_from ${lastOf(path)}` : condition;
        return [
          ...commands.map((name) => `complete -c plenum -f -n '${sub}' -a ${name}`),
          ...flags.map((flag) => `complete -c plenum -n '${sub}' -l ${flag.slice(2)}`),
        ];
      })
      .join("\n")
      .concat("\n"),
};

function parentOf(path: string): string {
  return path.split(" ").slice(0, -1).join(" ");
}

function lastOf(path: string): string {
  return path.split(" ").at(-1) ?? "";
}
