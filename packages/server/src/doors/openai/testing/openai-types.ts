import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import ts from "typescript";

const resources = join(dirname(createRequire(import.meta.url).resolve("openai")), "resources");

/** The named declaration in a type file of the pinned `openai` package. */
function findInterface(file: string, name: string): ts.InterfaceDeclaration[] {
  const path = join(resources, file);
  const source = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
  const found: ts.InterfaceDeclaration[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isInterfaceDeclaration(node) && node.name.text === name) found.push(node);
    ts.forEachChild(node, visit);
  };
  visit(source);
  if (found.length === 0) throw new Error(`${file} has no ${name}: the package's types have moved`);
  return found;
}

function membersOf(declaration: ts.InterfaceDeclaration): readonly ts.PropertySignature[] {
  return declaration.members.filter((member) => ts.isPropertySignature(member));
}

/** Names of an interface's own members. */
export function fieldsOf(file: string, name: string): string[] {
  const [declaration] = findInterface(file, name);
  return declaration === undefined ? [] : membersOf(declaration).map((member) => member.name.getText());
}

/** Literals that the `type` member of each variant of `Tool` can have. */
export function toolTypes(): string[] {
  const file = "responses/responses.d.ts";
  const path = join(resources, file);
  const text = readFileSync(path, "utf8");
  const variants = /export type Tool = ([^;]+);/.exec(text)?.[1]?.split("|") ?? [];
  return variants.flatMap((variant) => {
    const name = variant.trim().split(".").at(-1) ?? "";
    return findInterface(file, name).flatMap((declaration) => {
      const type = membersOf(declaration).find((member) => member.name.getText() === "type");
      return [...(type?.type?.getText() ?? "").matchAll(/'([^']+)'/g)].map((match) => match[1] ?? "");
    });
  });
}
